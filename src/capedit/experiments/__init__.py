"""The paper's tables and plots."""

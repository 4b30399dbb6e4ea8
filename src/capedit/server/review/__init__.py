"""The review app: people go through the edit log of a run and decide, operation by operation."""

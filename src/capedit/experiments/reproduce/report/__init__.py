"""Tables as Markdown, LaTeX, CSV and a web page."""

from capedit.experiments.reproduce.report.write import Report, write_report

__all__ = ["Report", "write_report"]

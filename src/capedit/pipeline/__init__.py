"""Whole datasets: edit every caption, log every edit, undo any of them."""

from capedit.pipeline.log import EditLog, EditRow, LogError, Status, edits_folder

__all__ = ["EditLog", "EditRow", "LogError", "Status", "edits_folder"]

"""Whole datasets: edit every caption, log every edit, undo any of them."""

from capedit.pipeline.engine import EngineName
from capedit.pipeline.errors import OutputError, RunError
from capedit.pipeline.fixing import fix
from capedit.pipeline.log import EditLog, EditRow, LogError, Status, edits_folder
from capedit.pipeline.previewing import Preview, preview
from capedit.pipeline.progress import Progress, Stage
from capedit.pipeline.run import Run
from capedit.pipeline.settings import Limits, Treatment
from capedit.pipeline.undoing import undo

__all__ = [
    "EditLog",
    "EditRow",
    "EngineName",
    "Limits",
    "LogError",
    "OutputError",
    "Preview",
    "Progress",
    "Run",
    "RunError",
    "Stage",
    "Status",
    "Treatment",
    "edits_folder",
    "fix",
    "preview",
    "undo",
]

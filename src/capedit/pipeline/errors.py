"""What can stop a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capedit.errors import CapeditError


class RunError(CapeditError):
    """A run that cannot begin or go on; nothing is lost by it."""


class FatalError(RunError):
    """What stops one shard will stop them all, so the run stops at once."""


class OutputError(FatalError):
    """What has been done cannot be written."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns trouble with the disk into an `OutputError` that names it."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        reason = error.strerror or error
        raise OutputError(f"{where}: cannot be written ({reason}); what is done is kept, run again to go on") from error

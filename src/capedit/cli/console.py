"""What all commands share: the two consoles, exit codes, and ways to end."""

import json
import sys
from enum import IntEnum
from typing import Any, NoReturn

from rich.console import Console
from rich.markup import escape

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


class ExitCode(IntEnum):
    """What a script can tell from the exit of a command."""

    OK = 0
    FAILED = 1  # the command could not do its job
    USAGE = 2  # wrong options; typer's own
    PARTIAL = 3  # done, but some records were bad: they are named on standard error
    INTERRUPTED = 130


def fail(message: str) -> NoReturn:
    err.print(f"[bold red]error:[/] {escape(message)}")
    sys.exit(ExitCode.FAILED)


def warn(message: str) -> None:
    err.print(f"[yellow]warning:[/] {escape(message)}")


def print_json(data: Any) -> None:
    """One object on standard output, for machines."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")

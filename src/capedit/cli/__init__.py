"""The command line: one table of commands, each a thin door to the library."""

import sys
from collections.abc import Callable

import typer

from capedit.cli.console import ExitCode, fail
from capedit.cli.convert import convert
from capedit.cli.diff import diff
from capedit.cli.features import features
from capedit.cli.score import score
from capedit.cli.stats import stats
from capedit.cli.version import version
from capedit.errors import CapeditError

COMMANDS: dict[str, Callable[..., None]] = {
    "diff": diff,
    "convert": convert,
    "stats": stats,
    "score": score,
    "features": features,
    "version": version,
}

app = typer.Typer(
    name="capedit",
    help="Repair image captions by editing them: keep, delete and add words, and show every step.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, command in COMMANDS.items():
    app.command(name)(command)


def main(arguments: list[str] | None = None) -> None:
    """Run a command line. What the user can mend ends in one clear line and exit code 1, never in a traceback."""
    try:
        app(arguments)
    except (CapeditError, OSError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    main()

"""The command line: one table of commands, each a thin door to the library."""

import sys
from importlib import import_module

import typer

from capedit.cli.console import ExitCode, fail
from capedit.errors import CapeditError

COMMANDS = {
    "edit": "capedit.cli.edit:edit",
    "diff": "capedit.cli.diff:diff",
    "convert": "capedit.cli.convert:convert",
    "stats": "capedit.cli.stats:stats",
    "score": "capedit.cli.score:score",
    "fix": "capedit.cli.fix:fix",
    "undo": "capedit.cli.undo:undo",
    "bench": "capedit.cli.bench:bench",
    "features": "capedit.cli.features:features",
    "build": "capedit.cli.build:build",
    "train": "capedit.cli.train:train",
    "export": "capedit.cli.export:export",
    "models": "capedit.cli.models:models",
    "reproduce": "capedit.cli.reproduce:reproduce",
    "review": "capedit.cli.review:review",
    "serve": "capedit.cli.serve:serve",
    "version": "capedit.cli.version:version",
}
"""Where each command, or group of commands, is defined. Only the one that is called is imported."""


def application(names: list[str]) -> typer.Typer:
    """The command line with these commands."""
    app = typer.Typer(
        name="capedit",
        help="Repair image captions by editing them: keep, delete and add words, and show every step.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(lambda: None)  # so that a single command keeps its name
    for name in names:
        module, attribute = COMMANDS[name].split(":")
        command = getattr(import_module(module), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def main(arguments: list[str] | None = None) -> None:
    """Run a command line. What the user can mend ends in one clear line and exit code 1, never in a traceback."""
    arguments = sys.argv[1:] if arguments is None else arguments
    called = [name for name in arguments[:1] if name in COMMANDS]
    try:
        application(called or list(COMMANDS))(arguments)
    except (CapeditError, OSError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)

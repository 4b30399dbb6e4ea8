"""The option `--device` of commands that train."""

from typing import Annotated

import typer

Device = Annotated[
    str | None,
    typer.Option(
        envvar="CAPEDIT_DEVICE",
        help="cpu, cuda or cuda:N. [a GPU if torch finds one, of each process its own; else cpu]",
        show_default=False,
    ),
]

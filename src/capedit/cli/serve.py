"""`capedit serve`."""

from pathlib import Path
from typing import Annotated

import typer

from capedit.cli.console import err, out
from capedit.errors import CapeditError, MissingExtraError

HostOption = Annotated[str, typer.Option(help="Address to bind to; beyond this machine a token is needed.")]
TokenOption = Annotated[
    str | None,
    typer.Option(
        envvar="CAPEDIT_TOKEN", help="What callers must know. Made up where --host is not loopback.", show_default=False
    ),
]
AllowHostOption = Annotated[
    list[str] | None,
    typer.Option("--allow-host", help="Another name the server may be called by, without a token.", show_default=False),
]
DEFAULT_PORT = 8765


def serve(
    model: Annotated[str, typer.Option(help="A model folder, or `default`.")] = "default",
    host: HostOption = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any that is free.", min=0, max=65535)] = DEFAULT_PORT,
    token: TokenOption = None,
    allow_host: AllowHostOption = None,
    examples: Annotated[
        Path | None, typer.Option(help="A dataset whose first pictures the page offers to try.", show_default=False)
    ] = None,
    threads: Annotated[int, typer.Option(help="Cores to compute on; 0 means all.", min=0)] = 0,
    max_waiting: Annotated[int, typer.Option(help="Captions in the house at once; then 429.", min=1)] = 128,
    max_body: Annotated[float, typer.Option(help="Of a request, in megabytes.", min=0.01)] = 16,
    max_pixels: Annotated[float, typer.Option(help="Of an image, in millions.", min=0.01)] = 32,
    timeout: Annotated[float, typer.Option(help="Seconds for an answer.", min=0.1)] = 30,
    open: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
) -> None:
    """Serve the editor over HTTP, with a page to play with it.

    Example: `capedit serve --open`, then `curl -F image=@photo.jpg -F caption="a dog" localhost:8765/api/v1/edit`
    """
    try:
        from capedit.server.app import service_app
        from capedit.server.examples import examples_from
        from capedit.server.run import access_for, open_browser
        from capedit.server.run import serve as run
        from capedit.server.settings import Limits
    except ImportError as error:
        raise missing_web(error) from error
    from capedit.editing import Editor

    limits = Limits(
        body_bytes=int(max_body * 2**20), pixels=int(max_pixels * 1e6), waiting=max_waiting, seconds=timeout
    )
    access = access_for(host, token, tuple(allow_host or ()))
    err.print("[dim]loading the model ...[/]")
    editor = Editor.load(model, threads=threads)
    app = service_app(
        editor, limits=limits, access=access, examples=None if examples is None else examples_from(examples)
    )

    def ready(address: str) -> None:
        page = signed_in(address, access.token)
        out.print(f"{editor.model} at {page}")
        err.print("[dim]Ctrl-C stops[/]")
        if open:
            open_browser(page)

    run(app, host, port, limits, ready)


def signed_in(address: str, token: str | None) -> str:
    """The address that signs a browser in. What follows # never leaves the browser."""
    return f"{address}#token={token}" if token else address


def missing_web(error: ImportError) -> CapeditError:
    """The extra that brings what a server needs; a mistake of our own is none."""
    if (error.name or "").startswith("capedit"):
        raise error
    return MissingExtraError("the server", "web", error)

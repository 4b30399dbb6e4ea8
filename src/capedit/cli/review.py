"""`capedit review`."""

import getpass
from pathlib import Path
from typing import Annotated, Any

import typer

from capedit.cli.console import ExitCode, err, out, print_json, warn
from capedit.cli.serve import AllowHostOption, HostOption, TokenOption, missing_web, signed_in
from capedit.data import FORMATS, Written
from capedit.pipeline.run import Rewritten
from capedit.server.review.export import Undecided, apply_decisions
from capedit.server.review.export import export_captions as write_captions
from capedit.server.review.export import export_pairs as write_pairs
from capedit.server.review.review import Review

DEFAULT_PORT = 8766


def review(
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The output of `capedit fix`.", show_default=False)],
    export: Annotated[
        Path | None,
        typer.Option(help="Write the dataset as decided to this path, and open no page.", show_default=False),
    ] = None,
    export_pairs: Annotated[
        Path | None,
        typer.Option(help="Write the decisions as training pairs, and open no page.", show_default=False),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help=f"Format of the export, where its path does not tell: {', '.join(FORMATS)}.")
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Have OUT itself say what was decided, and open no page.")
    ] = False,
    undecided: Annotated[
        Undecided, typer.Option(help="Captions nobody has decided on: as in OUT, as they were, as refined, left out.")
    ] = Undecided.OUTPUT,
    host: HostOption = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any that is free.", min=0, max=65535)] = DEFAULT_PORT,
    token: TokenOption = None,
    allow_host: AllowHostOption = None,
    reviewer: Annotated[
        str | None, typer.Option(help="The name that decisions carry; the page can change it.", show_default=False)
    ] = None,
    open: Annotated[bool, typer.Option("--open/--no-open", help="Show the page in a browser.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Print an account of an export as JSON.")] = False,
) -> None:
    """Review the edits of a run in the browser: accept or reject word by word.

    Every decision is saved at once, in a journal beside the log. Examples: `capedit review fixed.jsonl`, then
    `capedit review fixed.jsonl --export reviewed.jsonl`
    """
    if export is not None or export_pairs is not None or apply:
        looked_at = Review(output, read_only=True)
        written = []
        if export is not None:
            written.append(write_captions(looked_at, export, to, undecided))
        if export_pairs is not None:
            written.append(write_pairs(looked_at, export_pairs, to))
        rewritten = apply_decisions(looked_at) if apply else None
        _account(written, rewritten, as_json=json)
        return
    try:
        from capedit.server.app import review_app
        from capedit.server.run import access_for, open_browser
        from capedit.server.run import serve as run
        from capedit.server.settings import Limits
    except ImportError as error:
        raise missing_web(error) from error

    access = access_for(host, token, tuple(allow_host or ()))
    name = reviewer if reviewer is not None else _user() if access.token is None else ""
    going_on = Review(output)
    app = review_app(going_on, reviewer=name, access=access)

    def ready(address: str) -> None:
        page = signed_in(address, access.token)
        out.print(f"{len(going_on.log):,} captions to review at {page}", soft_wrap=True)
        err.print(f"[dim]decisions go to {going_on.journal}; Ctrl-C stops[/]")
        if open:
            open_browser(page)

    run(app, host, port, Limits(), ready)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a machine without users, such as a container
        return "reviewer"


def _account(exports: list[Written], applied: Rewritten | None, *, as_json: bool) -> None:
    for written in exports:
        for problem in written.problems:
            warn(str(problem))
    if applied is not None and applied.conflicts:
        rows = ", ".join(map(str, applied.conflicts[:10]))
        warn(f"{len(applied.conflicts)} captions were left alone, as somebody has changed them since (rows {rows} ...)")
    if as_json:
        told: dict[str, Any] = {
            "exports": [
                {"path": str(one.path), "format": one.format, "instances": one.count, "problems": len(one.problems)}
                for one in exports
            ]
        }
        if applied is not None:
            told["applied"] = {"captions": applied.captions, "conflicts": list(applied.conflicts)}
        print_json(told)
    else:
        for one in exports:
            out.print(f"{one.count:,} captions: {one.format}, {one.path}")
        if applied is not None:
            out.print(f"{applied.captions:,} captions changed in the output")
    if any(len(one.problems) for one in exports) or (applied is not None and applied.conflicts):
        raise typer.Exit(ExitCode.PARTIAL)

"""`capedit features`."""

import os
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from capedit.cli.console import ExitCode, err, out, print_json, warn
from capedit.vision.extraction import Account, extract, find_images
from capedit.vision.registry import load_encoder
from capedit.vision.shard import Precision
from capedit.vision.store import FeatureStore
from capedit.vision.store_writer import StoreWriter
from capedit.vision.tokens import WITHHELD, VisualTokens

_SHOWN = 10  # failures named on the console; the store's failures.jsonl has all


def features(
    images: Annotated[list[Path], typer.Argument(help="Folders, image files, or .txt lists of paths.")],
    store: Annotated[Path, typer.Option("--out", help="The feature store to fill; it is resumed if it exists.")],
    encoder: Annotated[
        str, typer.Option(help="default, lite0, lite1, lite2, clip:MODEL[:PRETRAINED], or an .onnx file.")
    ] = "default",
    grid: Annotated[int | None, typer.Option(min=1, help="Pool the feature map to GRID x GRID cells.")] = None,
    dtype: Annotated[Precision, typer.Option(help="How features are kept.")] = Precision.FLOAT16,
    withheld: Annotated[
        bool, typer.Option("--withheld", help="Keep a blank image too, for captions whose image may not be seen.")
    ] = False,
    workers: Annotated[int, typer.Option(min=0, help="Threads; 0 for one per core.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the account as JSON.")] = False,
) -> None:
    """Encode images into a feature store. Images it holds already are skipped, so a broken run goes on where it was."""
    workers = workers or os.cpu_count() or 1
    engine = load_encoder(encoder, grid=grid, threads=1)
    entries = find_images(images)
    if not entries:
        warn("no images found")
    started = time.monotonic()
    account = Account()
    with StoreWriter(store, engine, dtype) as writer, _progress() as progress:
        if withheld and WITHHELD not in writer:
            writer.add(WITHHELD, VisualTokens.blank(engine.dim))
        task = progress.add_task(escape(engine.name), total=len(entries), failed=0)

        def show(current: Account) -> None:
            nonlocal account
            account = current
            progress.update(task, completed=current.done, failed=current.failed)

        interrupted = False
        try:
            extract(entries, engine, writer, workers=workers, report=show)
        except KeyboardInterrupt:
            interrupted = True
    _tell(FeatureStore(store), account, len(entries), time.monotonic() - started, as_json=json)
    if interrupted:
        err.print("interrupted; run the same command again to go on")
        raise typer.Exit(ExitCode.INTERRUPTED)
    if account.failed:
        raise typer.Exit(ExitCode.PARTIAL)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failed]} failed"),
        console=err,
    )


def _tell(store: FeatureStore, account: Account, found: int, seconds: float, *, as_json: bool) -> None:
    failures = store.failures()
    if as_json:
        print_json(
            {
                "store": str(store.path),
                "encoder": store.header.encoder,
                "encoder_hash": store.header.encoder_hash,
                "dtype": store.header.precision,
                "images": found,
                "stored": account.stored,
                "already": account.already,
                "failed": account.failed,
                "seconds": round(seconds, 2),
                "in_store": len(store),
            }
        )
    else:
        rate = f", {account.stored / seconds:.0f} images/s" if account.stored else ""
        out.print(
            f"{found} images: {account.stored} stored, {account.already} already there, {account.failed} failed "
            f"({seconds:.1f} s{rate}); the store holds {len(store)}"
        )
    for failure in failures[:_SHOWN]:
        warn(f"{failure.source}: {failure.reason}")
    if len(failures) > _SHOWN:
        warn(f"{len(failures) - _SHOWN} more in {store.path / 'failures.jsonl'}")

"""`capedit fix`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from capedit.cli.console import ExitCode, err, out, print_json, warn
from capedit.cli.datasets import FieldOption, FormatOption, parse_fields
from capedit.data import FORMATS, Dataset, open_dataset
from capedit.edits import Operation, Script, render_plain, render_terminal
from capedit.edits.tokens import tokenize
from capedit.pipeline import EngineName, Preview, Run, RunError, Status, Treatment, preview
from capedit.pipeline import fix as fix_dataset
from capedit.pipeline.log import EditRow
from capedit.pipeline.progress import Progress as Moment
from capedit.pipeline.progress import Report, Stage


def fix(
    source: Annotated[Path, typer.Argument(metavar="DATASET", help="Captions with images.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--out", "-o", help="The dataset to write.", show_default=False)
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Change DATASET itself, after keeping a journal.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and write nothing.")] = False,
    sample: Annotated[
        int | None, typer.Option(min=1, help="With --dry-run: look at about so many captions only.", show_default=False)
    ] = None,
    format: FormatOption = None,
    to: Annotated[
        str | None, typer.Option(help=f"Output format, where OUT does not tell: {', '.join(FORMATS)}.")
    ] = None,
    field: FieldOption = None,
    images: Annotated[
        str | None, typer.Option(help="Folder of the images, or a pattern: 'images/{image_id:012d}.jpg'.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Look at these captions only: words<=20, source=machine, id=@FILE, ...; all must hold."),
    ] = None,
    model: Annotated[str, typer.Option(help="A model folder; default: the bundled model.")] = "default",
    encoder: Annotated[str, typer.Option(help="The encoder that the model was trained with.")] = "default",
    features: Annotated[Path | None, typer.Option(help="A feature store to look images up in.")] = None,
    min_confidence: Annotated[float | None, typer.Option(min=0, max=1, help="Make no operation below this.")] = None,
    review_below: Annotated[
        float, typer.Option(min=0, max=1, help="Hold an edit with less confidence for review.")
    ] = 0.0,
    keep_bias: Annotated[float | None, typer.Option(help="Higher deletes less.")] = None,
    max_edits: Annotated[
        int | None, typer.Option(min=0, help="Leave a caption alone that needs more operations.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Most rounds of insertion.")] = None,
    protect: Annotated[
        list[str] | None, typer.Option(help="Words that are never deleted: a list (a,b,c) or a file of them.")
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="Who does the work.")] = EngineName.LOCAL,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Processes or Ray actors; 0: this process. Default: one a core.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the account as JSON.")] = False,
) -> None:
    """Edit every caption of a dataset. A log beside the output tells of every edit; `capedit undo` takes them back.

    A run that was interrupted goes on when the same command is given again.
    Example: `capedit fix captions.jsonl --out fixed.jsonl --review-below 0.6`
    """
    given = {
        "min_confidence": min_confidence,
        "keep_bias": keep_bias,
        "max_edits": max_edits,
        "rounds": rounds,
        "protected": sorted(_protected(protect)) if protect else None,
    }
    treatment = Treatment(
        model,
        encoder,
        None if features is None else str(features),
        {name: value for name, value in given.items() if value is not None},
        review_below,
        tuple(only or ()),
    )
    dataset = open_dataset(source, format, fields=parse_fields(field), images=images)
    if sample is not None and not dry_run:
        raise RunError("--sample is an option of --dry-run")
    started = time.monotonic()
    with _shown() as report:
        if dry_run:
            seen = preview(dataset, treatment, sample=sample, engine=engine, workers=workers, report=report)
        else:
            run = _fix(dataset, output, to, in_place, treatment, engine, workers, report)
    seconds = time.monotonic() - started
    if dry_run:
        _tell_preview(seen, seconds, as_json=json)
        return
    _tell_run(run, seconds, as_json=json)
    if run.manifest.problems or run.manifest.set_aside or run.manifest.counts.get("failed"):
        raise typer.Exit(ExitCode.PARTIAL)


def _fix(
    dataset: Dataset,
    output: Path | None,
    to: str | None,
    in_place: bool,
    treatment: Treatment,
    engine: EngineName,
    workers: int | None,
    report: Report,
) -> Run:
    try:
        return fix_dataset(
            dataset,
            output,
            format=to,
            in_place=in_place,
            treatment=treatment,
            engine=engine,
            workers=workers,
            report=report,
        )
    except KeyboardInterrupt:
        err.print("interrupted; give the same command again to go on")
        raise


def _protected(options: list[str]) -> set[str]:
    """Words, or files of words, as the editor knows them."""
    texts = [Path(option).read_text(encoding="utf-8") if Path(option).is_file() else option for option in options]
    return {word for text in texts for word in tokenize(" ".join(text.replace(",", " ").split()))}


@contextmanager
def _shown() -> Iterator[Report]:
    """A bar with rate and time to go on a terminal; elsewhere a line now and then."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
    )
    last = time.monotonic()
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("starting", total=None, told="")

        def report(now: Moment) -> None:
            nonlocal last
            editing = now.stage is Stage.EDITING
            told = _words(now) if editing else ""
            bar.update(task, description=now.stage, total=1.0 if editing else None, completed=now.share, told=told)
            if editing and not err.is_terminal and time.monotonic() - last > 10:
                last = time.monotonic()
                err.print(f"{now.share:4.0%}  {told}")

        yield report


def _words(now: Moment) -> str:
    total = f" of {now.total:,}" if now.total is not None else ""
    left = "" if now.remaining is None else f", {_time(now.remaining)} to go"
    aside = f", {now.set_aside} shards set aside" if now.set_aside else ""
    changed = f", {now.statuses[Status.CHANGED]:,} changed" if now.statuses else ""
    return f"{now.captions:,}{total} captions{changed}, {now.rate:,.0f}/s{left}{aside}"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _tell_run(run: Run, seconds: float, *, as_json: bool) -> None:
    manifest = run.manifest
    if as_json:
        print_json(
            {
                "out": str(run.out),
                "log": str(run.log.folder),
                "counts": manifest.counts,
                "collapsed": manifest.collapsed,
                "set_aside": manifest.set_aside,
                "problems": manifest.problems,
                "warnings": manifest.warnings,
                "model": manifest.model,
                "encoder": manifest.encoder,
                "seconds": round(seconds, 2),
            }
        )
        return
    total = sum(manifest.counts.values())
    out.print(f"{total:,} captions: {_counted(manifest.counts)} ({seconds:.1f} s)")
    _tell_collapsed(manifest.collapsed)
    for text in manifest.warnings:
        warn(text)
    for number, reason in list(manifest.set_aside.items())[:10]:
        warn(f"shard {number} set aside: {reason}")
    if manifest.problems:
        warn(f"{manifest.problems} bad records, named in {run.folder / 'problems.jsonl'}")
    out.print(f"output  {run.out}", markup=False)
    out.print(f"log     {run.log.folder}", markup=False)
    out.print(f"undo    capedit undo {run.out}", markup=False)


def _tell_preview(seen: Preview, seconds: float, *, as_json: bool) -> None:
    if as_json:
        values: dict[str, Any] = {name: getattr(seen, name) for name in Preview.__dataclass_fields__}
        print_json(values | {"samples": [_as_json(row) for row in seen.samples], "seconds": round(seconds, 2)})
        return
    of = "" if seen.total in (None, seen.captions) else f" of {seen.total:,}"
    out.print(f"{seen.captions:,}{of} captions: {_counted(seen.counts)} ({seconds:.1f} s); nothing was written")
    _tell_collapsed(seen.collapsed)
    if seen.problems:
        warn(f"{seen.problems} bad records")
    if not seen.samples:
        return
    out.print("\nconfidence of the edits")
    _tell_bars({f"{at / 10:.1f}-{(at + 1) / 10:.1f}": count for at, count in enumerate(seen.confidence)})
    out.print("\nsteps (words deleted and added)")
    _tell_bars({f"{steps:7d}": count for steps, count in seen.steps.items()})
    if seen.reasons:
        out.print("\nnot changed because")
        for reason, count in seen.reasons.items():
            out.print(f"{count:9,}  {reason}", markup=False)
    out.print("\nsamples, the least sure first")
    for row in seen.samples:
        out.print(f"{row.confidence or 0:.2f} {row.status:8}", end="", style="dim")
        typer.echo(_diff(row))


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {status}" for status, count in counts.items()) or "none"


def _tell_collapsed(collapsed: dict[str, int]) -> None:
    for text, count in collapsed.items():
        warn(f"{count:,} different captions would become {text!r}: held for review")


def _tell_bars(counts: dict[str, int]) -> None:
    most = max(counts.values(), default=0)
    for label, count in counts.items():
        out.print(f"{label} {count:9,}  {'█' * round(40 * count / most) if most else ''}", markup=False)


def _diff(row: EditRow) -> str:
    script = Script(Operation(one.op, one.token, one.probability) for one in row.operations)
    return render_terminal(script) if out.is_terminal else render_plain(script)


def _as_json(row: EditRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "original": row.original,
        "refined": row.refined,
        "operations": [one.to_json() for one in row.operations],
        "confidence": row.confidence,
        "fits": row.fits,
        "status": row.status,
        "reason": row.reason,
    }

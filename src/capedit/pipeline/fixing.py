"""Edit every caption of a dataset: plan, edit shard by shard, gather the log, write the output.

A run that was killed at any moment goes on where it was when it is asked for again. Its state is in the folder beside
the output (`edits_folder`): `run.json`, and in `work/` the plan and the rows of the shards that are done. What has been
decided is never decided again, so the end does not depend on how often a run was cut short.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq

from capedit import __version__
from capedit.data import Dataset, ImageFile, write_dataset
from capedit.data.atomic import sync
from capedit.data.formats import format_for_output, has_suffix
from capedit.data.side import side_folder
from capedit.editing import Bundle, Knobs
from capedit.pipeline.durable import locked, place, remove_leftovers
from capedit.pipeline.engine import EngineName, open_pool, work_through
from capedit.pipeline.errors import RunError, writing
from capedit.pipeline.gather import gather
from capedit.pipeline.journal import Journal
from capedit.pipeline.log import EditLog, edits_folder
from capedit.pipeline.manifest import FILE, Manifest, State, fingerprint
from capedit.pipeline.output import (
    Handling,
    WriteFile,
    as_read,
    changed_files,
    companions,
    copy_rest,
    matched,
    new_captions,
    revised,
    write_companions,
    write_units,
)
from capedit.pipeline.plan import Plan, make_plan
from capedit.pipeline.progress import Meter, Progress, Report, Stage
from capedit.pipeline.refine import Stamp
from capedit.pipeline.run import Run, note_output, retire
from capedit.pipeline.selection import Selection
from capedit.pipeline.settings import Source, Treatment, base_folder
from capedit.pipeline.shards import part_file, problem_line, problems_file
from capedit.pipeline.visuals import open_store
from capedit.pipeline.workbench import Task, Unit
from capedit.vision import Encoder

PROBLEMS = "problems.jsonl"


def ignore(progress: Progress) -> None:
    """A report that nobody reads."""


def fix(
    dataset: Dataset,
    out: str | Path | None = None,
    *,
    format: str | None = None,
    in_place: bool = False,
    treatment: Treatment | None = None,
    engine: EngineName = EngineName.LOCAL,
    workers: int | None = None,
    report: Report = ignore,
) -> Run:
    """Edit a dataset to `out`, or in place. A run that was cut short goes on; one that is finished is left alone."""
    asked = _asked(dataset, out, format, in_place, (treatment or Treatment()).settled())
    target = Path(asked.source.path) if in_place or out is None else Path(out).absolute()
    folder = edits_folder(target)
    with locked(folder):
        manifest = _begin(asked, target, folder)
        task = _task(manifest, target, folder)
        if manifest.state is State.EDITING:
            _edit(manifest, task, folder, engine, workers, report)
        if manifest.state is State.WRITING:
            report(Progress(Stage.WRITING))
            _write(manifest, task, target, folder, engine, workers)
        shutil.rmtree(task.work, ignore_errors=True)
    return Run(target)


def _asked(
    dataset: Dataset, out: str | Path | None, format: str | None, in_place: bool, treatment: Treatment
) -> Manifest:
    """The manifest of the run that is asked for, after everything has been checked that can be checked at once."""
    source = Source.of(dataset)
    if in_place == (out is not None):
        raise RunError("say where the output goes, or that the dataset is to be changed in place: one of the two")
    if in_place and format not in (None, dataset.format.name):
        raise RunError(f"in place, the format stays what it is ({dataset.format.name})")
    output = dataset.format
    if out is not None:
        output = format_for_output(Path(out), format, dataset.format)
        _check_apart(Path(source.path), Path(out).absolute())
    bundle, encoder = check_treatment(treatment)
    return Manifest(
        source,
        treatment,
        in_place,
        output.name,
        rewritten=in_place or (output is dataset.format and _same_layout(dataset, Path(out or ""))),
        model=bundle.label,
        encoder=encoder.hash,
        version=__version__,
        time=_now().isoformat(),
        input=fingerprint(dataset),
        warnings=_warnings(dataset, None if out is None else Path(out).absolute()),
    )


def check_treatment(treatment: Treatment) -> tuple[Bundle, Encoder]:
    """Find out now what would stop every worker later."""
    Selection.parse(treatment.only)
    bundle, encoder = treatment.bundle(), treatment.load_encoder()
    if encoder.hash != bundle.encoder:
        raise RunError(f"{bundle.folder}: trained with encoder {bundle.encoder}, not {encoder.hash} ({encoder.name})")
    try:
        replace(bundle.knobs, **treatment.chosen_knobs())
    except TypeError as error:
        raise RunError(f"no such knob ({error}); known: {', '.join(Knobs.__dataclass_fields__)}") from error
    open_store(treatment.features, encoder)
    return bundle, encoder


def _check_apart(source: Path, out: Path) -> None:
    if out == source or out.resolve() == source.resolve():
        raise RunError(f"{out}: is the dataset itself; to change it, say so (--in-place)")
    if source.is_dir() and out.resolve().is_relative_to(source.resolve()):
        raise RunError(f"{out}: is inside the dataset; write it elsewhere")


def _same_layout(dataset: Dataset, out: Path) -> bool:
    """Whether the output has the files of the dataset, so that each can be made from its own."""
    if not dataset.path.is_file():
        return not has_suffix(out, dataset.format)
    suffixes = sorted(dataset.format.suffixes, key=len, reverse=True)
    mine = next((s for s in suffixes if dataset.path.name.lower().endswith(s)), None)
    return mine is not None and out.name.lower().endswith(mine) and (mine.endswith(".gz") == out.name.endswith(".gz"))


def _warnings(dataset: Dataset, out: Path | None) -> list[str]:
    home = dataset.path.absolute().parent
    if out is None or dataset.images is not None or not dataset.path.is_file() or out.parent == home:
        return []
    first = next((one.image for one in islice(dataset, 100) if one.image is not None), None)
    if not isinstance(first, ImageFile) or Path(first.name).is_absolute():
        return []
    return [f"paths of images are kept as they are: they start from {home}, not from {out.parent}"]


def _now() -> datetime:
    """The time; a fixed one where builds are to be reproducible (SOURCE_DATE_EPOCH)."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)


def _begin(asked: Manifest, target: Path, folder: Path) -> Manifest:
    """The manifest to go on with: that of the run that is here, or a new one."""
    found = Manifest.load(folder) if (folder / FILE).exists() else None
    if found is not None and found.state is State.UNDONE and (found.in_place or not target.exists()):
        retire(folder)
        found = None
    if found is None:
        if not asked.in_place and (target.exists() or target.is_symlink()):
            raise RunError(f"{target}: is there already, and is never overwritten; choose another name")
        remove_leftovers(target)
        shutil.rmtree(folder / "work", ignore_errors=True)
        asked.save(folder)
        return asked
    if different := found.differences(asked):
        raise RunError(
            f"{target}: a run with other settings is here ({'; '.join(different)}). Undo it (capedit undo), write "
            f"elsewhere, or remove {folder}"
        )
    if found.state is State.EDITING and found.input != asked.input:
        raise RunError(f"{asked.source.path}: has changed since this run began; remove {folder} to begin anew")
    if found.state is State.UNDOING:
        raise RunError(f"{target}: an undo of this run was cut short; finish it first (capedit undo)")
    if found.state is State.UNDONE:
        raise RunError(f"{target}: this run was undone; remove the output to run it again")
    if found.state is State.DONE and not target.exists():
        raise RunError(f"{target}: is gone, but the record of its run is not; remove {folder} to run it again")
    if found.state is State.DONE and found.in_place and Run(target).touched():
        raise RunError(
            f"{target}: was fixed in place and has changed since; to fix it again, remove {folder} (which makes those "
            "edits final) or undo them first"
        )
    remove_leftovers(target)
    return found


def _task(manifest: Manifest, target: Path, folder: Path) -> Task:
    time = datetime.fromisoformat(manifest.time)
    stamp = Stamp(manifest.model, manifest.encoder, manifest.version, time, target.parent)
    return Task(manifest.source, manifest.treatment, stamp, folder / "work")


def _edit(
    manifest: Manifest, task: Task, folder: Path, engine: EngineName, workers: int | None, report: Report
) -> None:
    plan_folder = task.work / "plan"
    with writing(task.work):
        task.parts.mkdir(parents=True, exist_ok=True)
        for leftover in task.parts.glob("*.staged"):
            leftover.unlink(missing_ok=True)
    if not plan_folder.exists():
        remove_leftovers(plan_folder)
        report(Progress(Stage.READING))
        make_plan(task.source, Selection.parse(task.treatment.only), plan_folder)
    plan = Plan.load(plan_folder)
    set_aside = edit_shards(plan.shards, plan.captions, task, engine, workers, report)
    shutil.rmtree(folder / "log", ignore_errors=True)  # of a run that was killed before it said that it had written it
    report(Progress(Stage.LOGGING))
    gathered = gather(plan, task, set_aside, folder / "log")
    _tell_problems(plan, task, folder)
    manifest.counts = {status.value: gathered.statuses[status] for status in sorted(gathered.statuses)}
    manifest.collapsed = gathered.collapsed
    manifest.set_aside = {str(number): reason for number, reason in sorted(set_aside.items())}
    manifest.state = State.WRITING
    manifest.save(folder)


def edit_shards(
    shards: Iterable[Unit], captions: int | None, task: Task, engine: EngineName, workers: int | None, report: Report
) -> dict[int, str]:
    """Have the shards done that are not; gives those that were set aside, with the reason."""
    shards = list(shards)
    pending = [shard for shard in shards if not shard.is_done(task)]
    done = [part_file(task, shard.number) for shard in shards if shard.is_done(task)]
    before = sum(pq.read_metadata(file).num_rows for file in done)
    meter = Meter(report, len(shards), captions, len(done), before)
    set_aside: dict[int, str] = {}
    if pending:
        with open_pool(engine, workers, task) as pool:
            for outcome in work_through(pool, pending):
                meter.add(outcome.account)
                if outcome.account is None:
                    set_aside[outcome.unit.number] = outcome.reason or "no reason given"
    return set_aside


def _tell_problems(plan: Plan, task: Task, folder: Path) -> None:
    """All bad records of the run in one file, if there are any."""
    sources = [task.work / "plan" / "problems.jsonl"]
    sources += [path for shard in plan.shards if (path := problems_file(task, shard.number)).exists()]
    staged = task.work / "problems.staged"
    with writing(folder):
        with staged.open("wb") as target:
            for source in sources:
                with source.open("rb") as lines:
                    shutil.copyfileobj(lines, target)
        if staged.stat().st_size:
            place(staged, folder / PROBLEMS)


def _count_problems(folder: Path) -> int:
    if not (folder / PROBLEMS).exists():
        return 0
    with (folder / PROBLEMS).open("rb") as lines:
        return sum(1 for _ in lines)


def _write(manifest: Manifest, task: Task, target: Path, folder: Path, engine: EngineName, workers: int | None) -> None:
    log = EditLog(folder / "log")
    if manifest.in_place:
        _write_in_place(manifest, log, task, folder, engine, workers)
    elif not target.exists():  # it appears whole: if it is there, only the manifest has not heard of it
        if manifest.rewritten:
            _write_like(manifest.source, log, task, target, engine, workers)
        else:
            _convert(manifest, log, task, target)
    note_output(folder, target)
    manifest.problems = _count_problems(folder)
    manifest.state = State.DONE
    manifest.finished = _now().isoformat()
    manifest.save(folder)


def _write_in_place(
    manifest: Manifest, log: EditLog, task: Task, folder: Path, engine: EngineName, workers: int | None
) -> None:
    """Keep the originals of all files that will change; only then change them."""
    journal = Journal(folder / "journal", manifest.source)
    changed = changed_files(log, {})
    if not changed:
        return
    if not journal.hashes:
        if fingerprint(manifest.source.open()) != manifest.input:
            raise RunError(f"{manifest.source.path}: has changed since this run began; remove {folder} to begin anew")
        journal.keep([*changed, *companions(manifest.source, changed)])
    live = base_folder(manifest.source.open())
    single = Path(manifest.source.path).is_file()
    home = Path(manifest.source.path) if single else live
    units = write_units(journal.source, log, home, Handling.UNTOUCHED, decided={}, always=changed)
    _write_files([unit for unit in units if unit.always], task, engine, workers)
    if not single:
        write_companions(journal.source, changed, live, task.work / "staged")


def _write_files(units: list[WriteFile], task: Task, engine: EngineName, workers: int | None) -> None:
    """Write files, at the same time where there are several."""
    pending = [unit for unit in units if not unit.is_done(task)]
    alone = len(pending) < 2
    with open_pool(EngineName.LOCAL if alone else engine, 0 if alone else workers, task) as pool:
        for outcome in work_through(pool, pending):
            if outcome.account is None:
                raise RunError(f"the output cannot be written: {outcome.reason}")


def _write_like(
    source: Source, log: EditLog, task: Task, target: Path, engine: EngineName, workers: int | None
) -> None:
    """Write an output with the files of the source: in the work folder first, then all at once to its place."""
    dataset = source.open()
    staged = task.work / "out"
    single = dataset.path.is_file()
    units = write_units(source, log, staged / target.name if single else staged, Handling.NEW, decided={})
    _write_files(units, task, engine, workers)
    with writing(target):
        if single:
            beside = side_folder(dataset.path)
            if beside.is_dir():
                shutil.copytree(beside, target.with_name(target.name + ".capedit"), dirs_exist_ok=True)
            place(staged / target.name, target)
            return
        write_companions(source, changed_files(log, {}), staged, task.work / "staged")
        if dataset.path.is_dir():
            copy_rest(source, staged, task.work / "staged")
        os.sync()
        staged.replace(target)
        sync(target.parent)


def _convert(manifest: Manifest, log: EditLog, task: Task, target: Path) -> None:
    dataset = manifest.source.open()
    instances = revised(as_read(matched(dataset, new_captions(log, {}), base_folder(dataset))))
    with writing(target):
        written = write_dataset(instances, target, manifest.output_format, template=dataset)
        if len(written.problems):
            told, staged = edits_folder(target) / PROBLEMS, task.work / "problems.staged"
            before = told.read_bytes() if told.exists() else b""
            staged.write_bytes(before + "".join(map(problem_line, written.problems)).encode("utf-8"))
            place(staged, told)

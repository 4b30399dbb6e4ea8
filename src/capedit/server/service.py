"""The editing service behind the HTTP routes: admits, looks, edits, remembers."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from capedit.editing import Edit, Editor
from capedit.editing.editor import ROOM, read_caption
from capedit.editing.gaze import Gaze, gaze
from capedit.errors import CapeditError
from capedit.server.batching import Batcher, Gate, Job, Result, Work
from capedit.server.metrics import Metrics
from capedit.server.refusal import Refusal, busy
from capedit.server.settings import Limits
from capedit.server.sight import Sight, SightMemory, image_key, look, together


@dataclass(frozen=True)
class EditJob:
    """One caption to edit."""

    sight: Sight
    caption: str
    knobs: tuple[tuple[str, Any], ...]
    """Sorted, so that jobs with equal knobs can be told, and decoded together."""


@dataclass(frozen=True)
class GazeJob:
    """One caption of which we want to know where the model looks."""

    sight: Sight
    caption: str


class EditService:
    """An editor that many callers share. All computing is done by one thread, batch after batch."""

    def __init__(self, editor: Editor, limits: Limits, metrics: Metrics) -> None:
        self.editor, self.limits, self.metrics = editor, limits, metrics
        self.gate = Gate(limits.waiting)
        self.memory = SightMemory(limits.remembered)
        self._looking: dict[str, asyncio.Task[Sight]] = {}
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="capedit-compute")
        most = limits.computed_together
        self._lookers = Batcher(self._timed("look", self._look), most=most, executor=self._executor)
        self._editors = Batcher(self._timed("edit", self._edit), most=most, executor=self._executor)
        self._gazers = Batcher(self._timed("gaze", self._gaze), most=1, executor=self._executor)
        metrics.places.set(limits.waiting)
        metrics.waiting.set_function(lambda: self.gate.taken)
        metrics.remembered.set_function(lambda: len(self.memory))

    @property
    def max_words(self) -> int:
        """Of a caption that can be edited."""
        return self.editor.modules.max_words - ROOM

    @asynccontextmanager
    async def admitted(self, captions: int = 1) -> AsyncIterator[None]:
        """A place in the house and a time limit, or a refusal."""
        async with self.gate.admit(captions):
            try:
                async with asyncio.timeout(self.limits.seconds):
                    yield
            except TimeoutError as error:
                raise busy(
                    f"no answer within {self.limits.seconds:g} s: the service is overloaded", status=503
                ) from error

    async def remember(self, data: bytes) -> tuple[str, Sight]:
        """See an image, or remember it; several callers with the same image wait for one look."""
        key = image_key(data)
        sight = self.memory.get(key)
        if sight is not None:
            self.metrics.images.labels("remembered").inc()
            return key, sight
        looking = self._looking.get(key)
        if looking is None:
            looking = asyncio.create_task(self._see(key, data))
            self._looking[key] = looking
            looking.add_done_callback(lambda done: self._looked(key, done))
        # Shielded: one caller who leaves must not take the look from the others.
        return key, await asyncio.shield(looking)

    def recall(self, key: str) -> Sight:
        """An image that was sent before."""
        sight = self.memory.get(key)
        if sight is None:
            raise Refusal(404, "this image is not remembered (any more): send it again", field="image_id")
        self.metrics.images.labels("remembered").inc()
        return sight

    async def edit(self, sight: Sight, caption: str, knobs: dict[str, Any]) -> Edit:
        try:
            # Checked here, so that no caption can spoil the batch that others share with it.
            read_caption(caption, self.max_words)
            replace(self.editor.knobs, **knobs)
        except CapeditError:
            self.metrics.captions.labels("refused").inc()
            raise
        edit = await self._editors.submit(EditJob(sight, caption, tuple(sorted(knobs.items()))))
        self.metrics.captions.labels("changed" if edit.changed else "left").inc()
        for _, operation in edit.trace.changes():
            self.metrics.operations.labels(operation.op.lower()).inc()
        return edit

    async def gaze(self, sight: Sight, caption: str) -> Gaze:
        read_caption(caption, self.max_words)
        return await self._gazers.submit(GazeJob(sight, caption))

    async def close(self) -> None:
        """Finish what is under way."""
        for batcher in (self._lookers, self._editors, self._gazers):
            await batcher.drain()
        self._executor.shutdown()

    async def _see(self, key: str, data: bytes) -> Sight:
        sight = await self._lookers.submit(data)
        self.metrics.images.labels("encoded").inc()
        self.memory.put(key, sight)
        return sight

    def _looked(self, key: str, done: "asyncio.Task[Sight]") -> None:
        self._looking.pop(key, None)
        if not done.cancelled():
            done.exception()  # taken notice of, even where every caller has left

    def _look(self, images: Sequence[bytes]) -> Sequence[Sight | Exception]:
        return look(self.editor, images, self.limits.pixels)

    def _edit(self, jobs: Sequence[EditJob]) -> Sequence[Edit]:
        found: dict[int, Edit] = {}
        groups: dict[tuple[tuple[str, Any], ...], list[int]] = {}
        for at, job in enumerate(jobs):
            groups.setdefault(job.knobs, []).append(at)
        for knobs, members in groups.items():
            seen = together([jobs[at].sight for at in members])
            edits = self.editor.edit_seen(seen, [jobs[at].caption for at in members], **dict(knobs))
            found.update(zip(members, edits, strict=True))
        return [found[at] for at in range(len(jobs))]

    def _gaze(self, jobs: Sequence[GazeJob]) -> Sequence[Gaze]:
        return [gaze(self.editor, job.sight.tokens, job.caption, job.sight.seen) for job in jobs]

    def _timed(self, stage: str, work: Work[Job, Result]) -> Work[Job, Result]:
        def timed(jobs: Sequence[Job]) -> Sequence[Result | Exception]:
            self.metrics.batch.labels(stage).observe(len(jobs))
            started = time.perf_counter()
            try:
                return work(jobs)
            finally:
                self.metrics.compute_seconds.labels(stage).observe(time.perf_counter() - started)

        return timed

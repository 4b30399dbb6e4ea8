"""COCO-EE: captions of other images, close in wording and wrong in meaning, edited into the image's own.

The four steps of the paper, image by image: candidates (`candidates.py`), BLEU and SPICE (`filters.py`), pairing
(`pairing.py`). This file runs them over all images in chunks. Each finished chunk is a file in the work folder, so a
build that was stopped goes on where it was, and memory does not grow with the number of images.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from capedit.data.atomic import staged_file
from capedit.data.builders.candidates import FloatArray, Pools, Scorer, draw
from capedit.data.builders.captions import CaptionTable, IntArray, Tokens
from capedit.data.builders.filters import CaptionBleu, Meaning
from capedit.data.builders.flickr30k_ee import make_instance
from capedit.data.builders.pairing import nearest_caption
from capedit.data.errors import DataError
from capedit.data.instance import Instance

CHUNK_IMAGES = 1024
"""Images of a chunk: what an interruption can cost, half a minute or so."""
BLOCK_IMAGES = 64
"""Images scored at once against all captions: 100 MB of scores for COCO's 400,000."""


@dataclass(frozen=True)
class CocoEeOptions:
    """The defaults are the paper's."""

    candidates: int = 300
    """How many of the best-scored captions of other images are candidates."""
    draw: int = 30
    """How many of those are drawn at random; the paper did so to save computing."""
    min_bleu2: float = 0.4
    """BLEU-2 of a candidate against all captions of the image must be above this."""
    min_bleu3: float = 0.3
    """BLEU-3 likewise."""
    max_meaning: float = 0.35
    """SPICE (or what stands in for it) against all captions of the image must be below this."""
    seed: int = 0
    pool: int | None = None
    """Candidates come from pools of so many images, drawn at random; from all images of the split if there is none."""


@dataclass
class Tally:
    """How many images and candidates each step was given, and the seconds it took."""

    images: int = 0
    images_without_picture: int = 0
    images_with_instances: int = 0
    drawn: int = 0
    passed_bleu2: int = 0
    passed_bleu3: int = 0
    passed_meaning: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(("rank", "bleu", "meaning", "pair"), 0.0))

    def add(self, other: "Tally") -> None:
        for name, value in vars(other).items():
            if name != "seconds":
                setattr(self, name, getattr(self, name) + value)
        for step, seconds in other.seconds.items():
            self.seconds[step] += seconds


@dataclass(frozen=True)
class Pipeline:
    """All that the four steps need, ready to be run on any images."""

    table: CaptionTable
    scorer: Scorer
    pools: Pools
    bleu: CaptionBleu
    meaning: Meaning
    options: CocoEeOptions

    def run(self, images: range) -> tuple[IntArray, Tally]:
        """The pairs of some images, (pairs, 3): image, candidate and target caption, as numbers of the table."""
        tally = Tally(images=len(images))
        seen = [image for image in images if self.scorer.can_see(int(self.table.image_ids[image]))]
        tally.images_without_picture = len(images) - len(seen)
        pairs: list[tuple[int, int, int]] = []
        for start in range(0, len(seen), BLOCK_IMAGES):
            pairs += self._run_block(seen[start : start + BLOCK_IMAGES], tally)
        tally.images_with_instances = len({image for image, _, _ in pairs})
        return np.array(pairs, np.int64).reshape(-1, 3), tally

    def _run_block(self, images: list[int], tally: Tally) -> list[tuple[int, int, int]]:
        """The four steps, for as many images as are scored at once."""
        with _clock(tally, "rank"):
            drawn = self.draw_candidates(images)
        with _clock(tally, "bleu"):
            alike = [(i, c) for i, mine in zip(images, drawn, strict=True) for c in self.worded_alike(i, mine, tally)]
        with _clock(tally, "meaning"):
            wrong = self.meant_differently(alike, tally)
        with _clock(tally, "pair"):
            return [(image, candidate, self.target(image, candidate)) for image, candidate in wrong]

    def draw_candidates(self, images: list[int]) -> list[IntArray]:
        """Step 1: captions that score best for each image, and of these some at random."""
        ids = self.table.image_ids[images].tolist()
        ranked = self.pools.rank(images, self.scorer.embed_images(ids), self.options.candidates)
        return [draw(row, self.options.draw, self.options.seed, i) for row, i in zip(ranked, ids, strict=True)]

    def worded_alike(self, image: int, candidates: IntArray, tally: Tally) -> list[int]:
        """Step 2: those with enough words in a row in common with the image's captions."""
        scores = self.bleu.scores(candidates, self.table.of_image(image))
        bleu2, bleu3 = scores[:, 1] > self.options.min_bleu2, scores[:, 2] > self.options.min_bleu3
        kept: list[int] = candidates[bleu2 & bleu3].tolist()
        tally.drawn += len(candidates)
        tally.passed_bleu2 += int(bleu2.sum())
        tally.passed_bleu3 += len(kept)
        return kept

    def meant_differently(self, pairs: list[tuple[int, int]], tally: Tally) -> list[tuple[int, int]]:
        """Step 3: those that say something else. Pairs are (image, candidate)."""
        captions = self.table.captions
        scores = self.meaning.scores([captions[c] for _, c in pairs], [self._captions_of(i) for i, _ in pairs])
        kept = [pair for pair, score in zip(pairs, scores, strict=True) if score < self.options.max_meaning]
        tally.passed_meaning += len(kept)
        return kept

    def target(self, image: int, candidate: int) -> int:
        """Step 4: the image's own caption that takes the fewest steps to reach."""
        nearest = nearest_caption(self.table.captions[candidate], self._captions_of(image))
        return self.table.of_image(image)[nearest]

    def _captions_of(self, image: int) -> list[Tokens]:
        return [self.table.captions[number] for number in self.table.of_image(image)]


@dataclass(frozen=True)
class CocoEeBuild:
    """A finished build: its pairs, and what each step did."""

    table: CaptionTable
    pairs: IntArray  # (instances, 3)
    report: dict[str, Any]

    def __len__(self) -> int:
        return len(self.pairs)

    def instances(self) -> Iterator[Instance]:
        """The instances, numbered from 1, in the order of image ids."""
        for number, (image, reference, target) in enumerate(self.pairs.tolist(), start=1):
            captions = self.table.captions
            yield make_instance(number, int(self.table.image_ids[image]), captions[reference], captions[target])


def build_coco_ee(
    table: CaptionTable,
    scorer: Scorer,
    meaning: Meaning,
    options: CocoEeOptions,
    work: Path,
    *,
    watch: Callable[[int, int], None] = lambda done, images: None,
) -> CocoEeBuild:
    """Run the four steps over all images of a table, all of them of one split.

    `work` keeps finished chunks; called again with the same table, scorer and options it goes on, or, if nothing is
    left to do, just gathers them. `watch` is told how many images are done.
    """
    plan = {
        "captions": table.fingerprint(),
        "scorer": scorer.name,
        "meaning": meaning.name,
        "options": asdict(options),
        "chunk_images": CHUNK_IMAGES,
    }
    _claim(work, plan)
    starts = range(0, len(table), CHUNK_IMAGES)
    missing = [start for start in starts if not _chunk_path(work, start).exists()]
    if missing:
        pools = Pools(table, _caption_vectors(work, table, scorer), options.pool, options.seed)
        most = int(np.diff(table.first).max())
        if pools.fewest - most < options.candidates:
            raise DataError(
                f"{options.candidates} candidates of an image are asked for, but a pool has only {pools.fewest} "
                f"captions, up to {most} of them the image's own; take larger pools or fewer candidates"
            )
        pipeline = Pipeline(table, scorer, pools, CaptionBleu(table.captions), meaning, options)
        done = len(table) - sum(min(CHUNK_IMAGES, len(table) - start) for start in missing)
        watch(done, len(table))
        for start in missing:
            images = range(start, min(start + CHUNK_IMAGES, len(table)))
            _save_chunk(_chunk_path(work, start), *pipeline.run(images))
            done += len(images)
            watch(done, len(table))
    tally, parts = Tally(), [np.zeros((0, 3), np.int64)]
    for start in starts:
        pairs, counted = _load_chunk(_chunk_path(work, start))
        parts.append(pairs)
        tally.add(counted)
    return CocoEeBuild(table, np.concatenate(parts), {**plan, **_account(tally, table)})


def _account(tally: Tally, table: CaptionTable) -> dict[str, Any]:
    """What was there, and what each filter removed."""
    left = [tally.drawn, tally.passed_bleu2, tally.passed_bleu3, tally.passed_meaning]
    steps = [
        {"step": name, "given": given, "removed": given - kept, "left": kept}
        for name, given, kept in zip(("BLEU-2", "BLEU-3", "meaning"), left[:-1], left[1:], strict=True)
    ]
    return {
        "images": tally.images,
        "images_without_picture": tally.images_without_picture,
        "image_captions": len(table.captions),
        "candidates_drawn": tally.drawn,
        "filters": steps,
        "instances": tally.passed_meaning,
        "images_with_instances": tally.images_with_instances,
        "seconds": {step: round(seconds, 1) for step, seconds in tally.seconds.items()},
    }


class _clock:  # noqa: N801 (reads as a verb where it is used)
    """Adds the time spent in a block to a step's seconds."""

    def __init__(self, tally: Tally, step: str) -> None:
        self._seconds, self._step = tally.seconds, step

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *exception: object) -> None:
        self._seconds[self._step] += time.perf_counter() - self._started


def _claim(work: Path, plan: dict[str, Any]) -> None:
    """Make the work folder this build's own, or find that it is."""
    path = work / "build.json"
    if not path.exists():
        work.mkdir(parents=True, exist_ok=True)
        with staged_file(path) as staged:
            staged.write_text(json.dumps(plan, indent=2) + "\n", encoding="utf-8")
        return
    found = json.loads(path.read_text(encoding="utf-8"))
    if found != plan:
        differing = [key for key in plan if found.get(key) != plan[key]]
        raise DataError(
            f"{work}: holds another build ({', '.join(differing)} differ); choose another folder, or remove it"
        )


def _caption_vectors(work: Path, table: CaptionTable, scorer: Scorer) -> FloatArray:
    path = work / "caption_vectors.npy"
    if not path.exists():
        with staged_file(path) as staged:
            np.save(staged, scorer.embed_captions(table.captions))
    vectors: FloatArray = np.load(path, allow_pickle=False)
    return vectors


def _chunk_path(work: Path, start: int) -> Path:
    return work / f"pairs-{start:07d}.npz"


def _save_chunk(path: Path, pairs: IntArray, tally: Tally) -> None:
    with staged_file(path) as staged:
        np.savez(staged, pairs=pairs, tally=np.array(json.dumps(asdict(tally))))


def _load_chunk(path: Path) -> tuple[IntArray, Tally]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return file["pairs"], Tally(**json.loads(str(file["tally"])))
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise DataError(f"{path}: damaged ({error}); remove it and build again") from error

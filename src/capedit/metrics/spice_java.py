"""Scores of the original Java SPICE, for those who have it: its output file, as a SPICE scorer for `evaluate`."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from capedit.errors import CapeditError


class JavaSpiceScore(NamedTuple):
    """F, precision and recall over all tuples."""

    f: float
    p: float
    r: float


class JavaSpice:
    """The values of an output file, dealt out in order.

    The file holds one object an instance: `{"image_id": …, "scores": {"All": {"f": …, "pr": …, "re": …}}}`, in the
    order of the input. With `ids`, the image ids of the instances to score, it is looked up by id.
    """

    kind = "SPICE (java)"

    def __init__(self, path: Path, ids: Sequence[str | int] | None = None) -> None:
        self._path = path
        by_id = read_java_spice(path)
        if ids is None:
            self._scores = [score for _, score in by_id]
        else:
            known = {str(each): score for each, score in by_id}
            missing = [each for each in ids if str(each) not in known]
            if missing:
                raise CapeditError(f"{path}: no score for image_id {missing[0]} (and {len(missing) - 1} more)")
            self._scores = [known[str(each)] for each in ids]
        self._next = 0

    def scores(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[JavaSpiceScore]:
        """The values of the next instances: the captions themselves are not looked at."""
        dealt = self._scores[self._next : self._next + len(hypotheses)]
        self._next += len(hypotheses)
        if len(dealt) < len(hypotheses):
            raise CapeditError(f"{self._path}: scores of {len(self._scores)} instances, but more are to be scored")
        return dealt


def read_java_spice(path: Path) -> list[tuple[str, JavaSpiceScore]]:
    """(image_id, score) of each entry, in file order."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CapeditError(f"{path}: not JSON ({error})") from error
    if not isinstance(entries, list):
        raise CapeditError(f"{path}: expected a list, found {type(entries).__name__}")
    return [_read_entry(path, number, entry) for number, entry in enumerate(entries)]


def _read_entry(path: Path, number: int, entry: Any) -> tuple[str, JavaSpiceScore]:
    try:
        overall = entry["scores"]["All"]
        values = [float(overall[name]) for name in ("f", "pr", "re")]
        image_id = str(entry["image_id"])
    except (KeyError, TypeError, ValueError) as error:
        raise CapeditError(f"{path}: entry {number}: no image_id or no scores.All.f/pr/re ({error!r})") from error
    # SPICE writes NaN where a caption has no tuples; its own mean then counts 0.
    return image_id, JavaSpiceScore(*(0.0 if math.isnan(value) else value for value in values))

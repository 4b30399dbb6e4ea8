"""Guards: edits that look like a refiner gone wrong are held for a person instead of being made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from capedit.editing import Edit
from capedit.edits import Op
from capedit.edits.tokens import tokenize
from capedit.pipeline.log import Status
from capedit.pipeline.settings import Limits, Treatment

_COUNTERS = 4096
_SOURCES = 1000
"""Different originals of one sentence that are told apart; with more there is no doubt."""


@dataclass(frozen=True)
class Verdict:
    """What becomes of a caption, and why."""

    status: Status
    reason: str | None = None


def judge(edit: Edit, treatment: Treatment) -> Verdict:
    """Whether an edit is made, held, or none at all."""
    if not edit.changed or edit.caption == edit.source:
        return Verdict(Status.KEPT)
    script = edit.trace.script
    words = len(script.source)
    gone = sum(operation.op is Op.DELETE for operation in script)
    limits = treatment.limits
    if words - len(script.target) > limits.max_shrink * words:
        return Verdict(Status.HELD, f"guard: of {words} words {len(script.target)} would be left")
    if gone > limits.max_deleted * words:
        return Verdict(Status.HELD, f"guard: {gone} of {words} words would go")
    if edit.confidence < treatment.review_below:
        return Verdict(Status.HELD, f"confidence {edit.confidence:.3f} is below {treatment.review_below:g}")
    return Verdict(Status.CHANGED)


Change = tuple[str, str]
"""The original text of a changed caption, and the sentence that it becomes."""


def sentence(refined: str) -> str:
    """What a caption says, however it is spelled."""
    return " ".join(tokenize(refined))


def find_collapsed(changes: Callable[[], Iterator[Change]], limits: Limits) -> dict[str, int]:
    """Sentences that too many different captions would become, each with their number.

    Two passes over the changes in bounded memory, whatever their number. The first finds the few sentences that can be
    that frequent at all (Misra and Gries, 1982: every one with more than 1/`_COUNTERS` of the stream is among those
    left); the second counts these exactly, so that the result does not depend on the order of the changes.
    """
    counters: dict[str, int] = {}
    total = 0
    for _, refined in changes():
        total += 1
        if refined in counters or len(counters) < _COUNTERS:
            counters[refined] = counters.get(refined, 0) + 1
        else:
            counters = {text: count - 1 for text, count in counters.items() if count > 1}
    least = max(limits.collapse_count, limits.collapse_share * total)
    if total < least:
        return {}
    counts = dict.fromkeys(counters, 0)
    sources: dict[str, set[bytes]] = {text: set() for text in counters}
    for original, refined in changes():
        if refined in counts:
            counts[refined] += 1
            if len(sources[refined]) < _SOURCES:
                sources[refined].add(blake2b(original.encode("utf-8", "surrogatepass"), digest_size=8).digest())
    return {
        text: count for text, count in counts.items() if count >= least and len(sources[text]) >= min(least, _SOURCES)
    }

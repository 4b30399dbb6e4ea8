"""What an editor did to a caption, and how sure it was."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from capedit.edits import Op, Trace, count_trace, realise


@dataclass(frozen=True)
class EditOperation:
    """One operation of an edit, for people and machines to read."""

    op: Op
    token: str
    probability: float | None
    round: int

    def to_json(self) -> dict[str, Any]:
        return {"op": self.op.value, "token": self.token, "probability": self.probability, "round": self.round}


@dataclass(frozen=True)
class Edit:
    """A caption, what became of it, and why."""

    source: str
    """The caption as it was given, byte for byte."""
    trace: Trace
    fits: float | None
    """How likely the source fits the image, where the model can tell."""
    model: str
    """Name and hash of the model."""

    @cached_property
    def caption(self) -> str:
        """The refined caption; kept words keep their spelling, case and punctuation."""
        return realise(self.source, self.trace.script)

    @property
    def changed(self) -> bool:
        return self.trace.script.changes

    @cached_property
    def operations(self) -> list[EditOperation]:
        """The net edit in reading order: every word kept, deleted or added, with the round that decided it."""
        rounds: dict[tuple[Op, str], list[int]] = {}
        for number, operation in self.trace.changes():
            rounds.setdefault((operation.op, operation.token), []).append(number)
        found = []
        for operation in self.trace.script:
            known = rounds.get((operation.op, operation.token))
            number = known.pop(0) if known else 0
            found.append(EditOperation(operation.op, operation.token, operation.probability, number))
        return found

    @property
    def rounds(self) -> int:
        """Rounds in which something changed."""
        return sum(script.changes for script in self.trace.rounds)

    @property
    def steps(self) -> int:
        """Words deleted and added on the way."""
        return count_trace(self.trace).total

    @property
    def confidence(self) -> float:
        """How sure the editor is of what it did: the mean probability of its changes; of an untouched caption, that it
        fits (or, where the model cannot tell, the mean probability of its words)."""
        changes = [operation.probability for _, operation in self.trace.changes()]
        if not changes and self.fits is not None:
            return self.fits
        kept = [operation.probability for operation in self.trace.script]
        sure = [p for p in (changes or kept) if p is not None]
        return sum(sure) / len(sure) if sure else 0.0

    def to_json(self) -> Mapping[str, Any]:
        """What `capedit edit --json` prints."""
        return {
            "source": self.source,
            "caption": self.caption,
            "operations": [operation.to_json() for operation in self.operations],
            "rounds": self.rounds,
            "steps": self.steps,
            "confidence": round(self.confidence, 4),
            "fits": None if self.fits is None else round(self.fits, 4),
            "model": self.model,
            "trace": self.trace.to_json(),
        }

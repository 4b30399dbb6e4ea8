"""A trace: the whole path of an edit, round by round, as an editor took it or as gold prescribes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Self

from capedit.edits.operations import EditError, Op, Operation
from capedit.edits.script import Script, apply


@dataclass(frozen=True)
class Trace:
    """A caption and the scripts carried out on it, one a round, each on the result of the one before."""

    source: tuple[str, ...]
    rounds: tuple[Script, ...]

    def __post_init__(self) -> None:
        tokens = list(self.source)
        for number, script in enumerate(self.rounds):
            if script.source != tokens:
                raise EditError(f"round {number} edits {script.source}, but the caption there is {tokens}")
            tokens = script.target

    @cached_property
    def states(self) -> list[list[str]]:
        """The caption before any round and after each."""
        return list(accumulate(self.rounds, lambda tokens, script: apply(script, tokens), initial=list(self.source)))

    @property
    def target(self) -> list[str]:
        """The caption in the end."""
        return self.states[-1]

    @property
    def insertion_rounds(self) -> int:
        """Rounds in which a word was added."""
        return sum(any(operation.op is Op.ADD for operation in script) for script in self.rounds)

    def changes(self) -> list[tuple[int, Operation]]:
        """Every DELETE and ADD with its round, in the order in which they happened."""
        return [
            (number, operation)
            for number, script in enumerate(self.rounds)
            for operation in script
            if operation.op is not Op.KEEP
        ]

    @cached_property
    def script(self) -> Script:
        """The net edit from source to target, each word with the probability of what decided its fate.

        A word that was added and deleted again leaves no mark here, but counts in the steps of the trace.
        """
        fates: list[tuple[Operation, bool]] = [(Operation(Op.KEEP, token), True) for token in self.source]
        for script in self.rounds:
            fates = _compose(fates, script)
        return Script(operation for operation, _ in fates)

    def to_json(self) -> dict[str, Any]:
        return {"source": list(self.source), "rounds": [script.to_json() for script in self.rounds]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        try:
            source, rounds = data["source"], data["rounds"]
        except (KeyError, TypeError) as error:
            raise EditError(f"a trace needs the fields 'source' and 'rounds': {error}") from error
        if not (isinstance(source, Sequence) and all(isinstance(token, str) for token in source)):
            raise EditError("a trace's field 'source' must be a list of strings")
        return cls(tuple(source), tuple(Script.from_json(item) for item in rounds))


def _compose(fates: list[tuple[Operation, bool]], script: Script) -> list[tuple[Operation, bool]]:
    """Fold one more round into the net edit: operations, and whether their word stands in the caption."""
    result: list[tuple[Operation, bool]] = []
    standing = iter(script)
    for fate, alive in fates:
        if not alive:
            result.append((fate, False))
            continue
        operation = next(standing)
        while operation.op is Op.ADD:
            result.append((operation, True))
            operation = next(standing)
        if operation.op is Op.KEEP:
            result.append((_sharpened(fate, operation), True))
        elif fate.op is Op.KEEP:  # a word of the source goes; an added word that goes leaves no mark
            result.append((operation, False))
    result.extend((operation, True) for operation in standing)
    return result


def _sharpened(fate: Operation, kept: Operation) -> Operation:
    """A KEEP takes over the probability of the first round that had an opinion."""
    return kept if fate.op is Op.KEEP and fate.probability is None else fate

"""Scoring a file of instances: its predictions where it has any, else the reference captions themselves."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from capedit.data.errors import DataError
from capedit.data.instance import Instance
from capedit.edits import Steps, count_implicit, count_script, gold_script
from capedit.edits.tokens import tokenize
from capedit.metrics import DocumentFrequencies, EditCosts, Evaluation, SpiceScorer, evaluate

Counting = Literal["explicit", "implicit"]
"""How steps are counted where a file does not tell them: along the shortest script, or as a full rewrite."""
Pair = tuple[list[str], list[list[str]]]


def score_instances(
    instances: Iterable[Instance],
    *,
    counting: Counting = "explicit",
    drop_duplicates: bool = False,
    spice: SpiceScorer | None = None,
    frequencies: DocumentFrequencies | None = None,
) -> Evaluation:
    """All scores of a dataset, which is gone through several times: pass a `Dataset`, a list, not an iterator.

    The references of an instance are its target, or the list in its field `references`. Its steps are those of its
    field `steps` (`{"deletes": …, "adds": …}`), else they are counted from reference caption to prediction.
    """
    scored = _Scored(instances, drop_duplicates)
    first = next(iter(scored), None)
    edits = None
    if first is not None and first.prediction is not None:
        steps, sources = [], []
        for instance in scored:
            steps.append(_steps(instance, counting))
            sources.append(list(instance.reference_tokens))
        edits = EditCosts(steps, sources)
    return evaluate(
        ScoredPairs(scored),
        edits=edits,
        spice=spice,
        frequencies=frequencies,
        tokeniser="ptb",
        duplicates="dropped" if drop_duplicates else "kept",
    )


class _Scored:
    """The instances that can be scored, the same on every pass."""

    def __init__(self, instances: Iterable[Instance], drop_duplicates: bool) -> None:
        self._instances = instances
        self._drop_duplicates = drop_duplicates

    def __iter__(self) -> Iterator[Instance]:
        seen: set[tuple[Any, ...]] = set()
        predicted: bool | None = None
        for instance in self._instances:
            if instance.target is None and "references" not in instance.extra:
                raise DataError(f"{where(instance)}: no target caption to score against")
            if predicted is None:
                predicted = instance.prediction is not None
            if predicted != (instance.prediction is not None):
                raise DataError(f"{where(instance)}: some instances have a prediction, others do not")
            if self._drop_duplicates:
                key = (instance.image_id, instance.reference, instance.target, instance.prediction)
                if key in seen:
                    continue
                seen.add(key)
            yield instance


class ScoredPairs:
    """(hypothesis, references) of each instance; can be iterated again."""

    def __init__(self, instances: Iterable[Instance]) -> None:
        self._instances = instances

    def __iter__(self) -> Iterator[Pair]:
        for instance in self._instances:
            yield output_tokens(instance), _references(instance)


def output_tokens(instance: Instance) -> list[str]:
    """The caption that is scored."""
    return list(instance.reference_tokens) if instance.prediction is None else tokenize(instance.prediction)


def _references(instance: Instance) -> list[list[str]]:
    given = instance.extra.get("references")
    if given is None:
        return [list(instance.target_tokens or ())]
    if not isinstance(given, list) or not all(isinstance(caption, str) for caption in given):
        raise DataError(f"{where(instance)}, field 'references': must be a list of captions")
    return [tokenize(caption) for caption in given]


def _steps(instance: Instance, counting: Counting) -> Steps:
    given = instance.extra.get("steps")
    if given is None:
        source, output = instance.reference_tokens, output_tokens(instance)
        if counting == "implicit":
            return count_implicit(source, output)
        return count_script(gold_script(source, output))
    try:
        return Steps(int(given["deletes"]), int(given["adds"]), int(given.get("moves", 0)))
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise DataError(f"{where(instance)}, field 'steps': must be an object with 'deletes' and 'adds'") from error


def where(instance: Instance) -> str:
    """The place of an instance, for messages."""
    origin = instance.origin
    return f"instance {instance.id!r}" if origin is None else f"{origin.file}, {origin.place}"

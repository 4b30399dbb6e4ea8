"""Edits that look like a refiner gone wrong."""

from collections.abc import Iterator, Sequence
from random import Random

import pytest

from capedit.editing import Edit
from capedit.edits import Script, Trace, gold_script
from capedit.edits.operations import Operation
from capedit.edits.tokens import tokenize
from capedit.pipeline import Limits, Status, Treatment, guards
from capedit.pipeline.guards import Change, find_collapsed, judge


def edit(source: str, target: str, probability: float = 0.9) -> Edit:
    gold = gold_script(tokenize(source), tokenize(target))
    sure = Script(Operation(one.op, one.token, probability) for one in gold)
    return Edit(source, Trace(tuple(tokenize(source)), (sure,)), None, "m@1")


@pytest.mark.parametrize(
    ("source", "target", "status", "reason"),
    [
        ("a dog on a sofa", "a dog on a sofa", Status.KEPT, None),
        ("a dog on a sofa", "a cat on a sofa", Status.CHANGED, None),
        ("a dog on a sofa", "a dog sofa", Status.CHANGED, None),
        ("a dog on a sofa", "a dog", Status.HELD, "of 5 words 2 would be left"),
        ("a dog on a sofa", "", Status.HELD, "of 5 words 0 would be left"),
        ("a dog on the sofa", "two cats under big tables", Status.HELD, "5 of 5 words would go"),
        ("a dog on the sofa", "a cat under big tables", Status.CHANGED, None),
    ],
)
def test_edits_that_go_too_far(source: str, target: str, status: Status, reason: str | None) -> None:
    verdict = judge(edit(source, target), Treatment())
    assert verdict.status is status
    assert (reason or "") in (verdict.reason or "")
    assert (verdict.reason is None) == (reason is None)


def test_edits_that_are_not_sure_enough() -> None:
    unsure = edit("a dog on a sofa", "a cat on a sofa", 0.4)
    assert judge(unsure, Treatment()).status is Status.CHANGED
    verdict = judge(unsure, Treatment(review_below=0.6))
    assert verdict.status is Status.HELD
    assert verdict.reason == "confidence 0.400 is below 0.6"


def collapsed(changes: Sequence[Change], limits: Limits | None = None) -> dict[str, int]:
    def read() -> Iterator[Change]:
        return iter(changes)

    return find_collapsed(read, limits or Limits())


def test_many_captions_that_become_one() -> None:
    varied = [(f"source {n}", f"refined {n}") for n in range(500)]
    same = [(f"original {n}", "a man") for n in range(30)]
    assert collapsed(varied + same) == {"a man": 30}


def test_a_common_sentence_is_no_collapse() -> None:
    varied = [(f"source {n}", f"refined {n}") for n in range(9_000)]
    assert collapsed([*varied, *((f"original {n}", "a man") for n in range(50))]) == {}  # half a percent
    assert collapsed([("the same", "a man")] * 300) == {}  # one caption, many times
    assert collapsed([(f"original {n}", "a man") for n in range(19)]) == {}  # too few to tell
    assert collapsed([]) == {}


def test_the_order_does_not_matter_and_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "_COUNTERS", 50)
    changes = [(f"s{n}", f"r{n}") for n in range(3_000)]
    changes += [(f"a{n}", "one") for n in range(200)] + [(f"b{n}", "two") for n in range(150)]
    limits = Limits(collapse_share=0.04)
    for seed in range(5):
        Random(seed).shuffle(changes)
        assert collapsed(changes, limits) == {"one": 200, "two": 150}

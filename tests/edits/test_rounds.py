import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capedit.edits import (
    Alignment,
    EditError,
    Op,
    Order,
    Script,
    Trace,
    add,
    align,
    apply,
    delete,
    expand,
    gold_script,
    keep,
    longest_gap,
    rounds_needed,
)
from tests.edits.strategies import token_lists

alignments, orders = st.sampled_from(Alignment), st.sampled_from(Order)


@given(token_lists, token_lists, alignments, orders)
def test_rounds_reach_the_target_in_as_many_rounds_as_the_gap_needs(
    source: list[str], target: list[str], alignment: Alignment, order: Order
) -> None:
    trace = expand(gold_script(source, target, alignment), order)
    assert trace.states[0] == source
    assert trace.target == target
    gap = longest_gap(align(source, target, alignment), len(target))
    assert len(trace.rounds) == 1 + rounds_needed(gap, order)
    assert trace.script == gold_script(source, target, alignment)
    assert Trace.from_json(json.loads(json.dumps(trace.to_json()))) == trace


@given(token_lists, token_lists, orders)
def test_a_round_adds_at_most_one_word_to_a_gap_and_deletes_first(
    source: list[str], target: list[str], order: Order
) -> None:
    deletion, *insertions = expand(gold_script(source, target), order).rounds
    assert Op.ADD not in {operation.op for operation in deletion}
    for script in insertions:
        ops = [operation.op for operation in script]
        assert Op.DELETE not in ops
        assert (Op.ADD, Op.ADD) not in set(itertools.pairwise(ops))


def test_left_to_right_and_balanced_order() -> None:
    script = gold_script(["a", "z"], ["a", "b", "c", "d", "z"])
    states = {order: [" ".join(state) for state in expand(script, order).states] for order in Order}
    assert states[Order.LEFT_TO_RIGHT] == ["a z", "a z", "a b z", "a b c z", "a b c d z"]
    assert states[Order.BALANCED] == ["a z", "a z", "a c z", "a b c d z"]


@pytest.mark.parametrize(("gap", "balanced"), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4)])
def test_balanced_rounds_grow_with_the_logarithm(gap: int, balanced: int) -> None:
    assert rounds_needed(gap, Order.BALANCED) == balanced
    assert rounds_needed(gap, Order.LEFT_TO_RIGHT) == gap


def test_net_script_of_a_trace_that_changes_its_mind() -> None:
    trace = Trace(
        ("a", "dog"),
        (
            Script([keep("a", 0.9), delete("dog", 0.8)]),
            Script([keep("a", 0.7), add("cow", 0.4)]),
            Script([keep("a"), delete("cow", 0.6), add("cat", 0.95)]),
        ),
    )
    assert trace.target == ["a", "cat"]
    assert trace.script == Script([keep("a", 0.9), delete("dog", 0.8), add("cat", 0.95)])
    assert apply(trace.script, ["a", "dog"]) == ["a", "cat"]
    assert [(number, operation.token) for number, operation in trace.changes()] == [
        (0, "dog"),
        (1, "cow"),
        (2, "cow"),
        (2, "cat"),
    ]
    assert trace.insertion_rounds == 2


def test_rounds_must_follow_from_each_other() -> None:
    with pytest.raises(EditError, match="round 1"):
        Trace(("a",), (Script([keep("a")]), Script([keep("b")])))


@pytest.mark.parametrize("data", [{}, {"source": 3, "rounds": []}, {"source": [1], "rounds": []}, []])
def test_malformed_traces_are_refused(data: object) -> None:
    with pytest.raises(EditError, match="source"):
        Trace.from_json(data)  # type: ignore[arg-type]

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capedit.edits import (
    Alignment,
    EditError,
    Op,
    Operation,
    Script,
    add,
    apply,
    delete,
    gold_script,
    keep,
    move_token,
    replace_token,
)
from tests.edits.strategies import any_word, token_lists

alignments = st.sampled_from(Alignment)
operations = st.builds(
    Operation, st.sampled_from([Op.KEEP, Op.DELETE, Op.ADD]), any_word, st.none() | st.floats(0, 1), st.none()
)
scripts = st.lists(operations, max_size=12).map(Script)


@given(token_lists, token_lists, alignments)
def test_gold_script_gives_the_target_and_its_inverse_the_source(
    source: list[str], target: list[str], alignment: Alignment
) -> None:
    script = gold_script(source, target, alignment)
    assert apply(script, source) == target
    assert apply(script.invert(), target) == source
    assert script.invert().invert() == script


@given(scripts)
def test_json_round_trip_is_the_identity(script: Script) -> None:
    assert Script.from_json(json.loads(json.dumps(script.to_json()))) == script


@given(scripts, token_lists)
def test_apply_is_total(script: Script, tokens: list[str]) -> None:
    result = apply(script, tokens)
    deleted = min(sum(op.op is Op.DELETE for op in script), len(tokens))
    assert len(result) >= len(tokens) - deleted


@given(scripts)
def test_a_script_fits_its_own_source(script: Script) -> None:
    assert apply(script, script.source) == script.target


def test_deletions_stand_before_additions_in_a_gap() -> None:
    assert Script([add("cat"), delete("dog")]) == Script([delete("dog"), add("cat")])


def test_a_move_is_one_composite_and_decomposes() -> None:
    out, back = move_token("red", link=1)
    script = Script([out, keep("car"), back])
    assert apply(script, ["red", "car"]) == ["car", "red"]
    assert [composite.op for composite in script.composites()] == [Op.MOVE, Op.KEEP]
    assert script.decompose() == Script([delete("red"), keep("car"), add("red")])
    assert [composite.op for composite in script.invert().composites()] == [Op.MOVE, Op.KEEP]
    assert apply(script.invert(), ["car", "red"]) == ["red", "car"]
    assert Script.from_json(script.to_json()) == script


def test_a_replacement_is_one_composite_and_decomposes() -> None:
    script = Script([keep("a"), *replace_token("dog", "cat", link=7)])
    replacement = script.composites()[1]
    assert replacement.op is Op.REPLACE
    assert replacement.decompose() == (delete("dog"), add("cat"))
    with pytest.raises(EditError, match="two different words"):
        replace_token("dog", "dog", link=1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("KEEP", "list of operations"),
        ({"op": "KEEP"}, "list of operations"),
        (["KEEP"], "not an operation"),
        ([{"op": "SWAP", "token": "a"}], "SWAP"),
        ([{"op": "KEEP"}], "token"),
        ([{"op": "KEEP", "token": 3}], "'token' must be a string"),
        ([{"op": "KEEP", "token": "a", "probability": "high"}], "'probability' must be a number"),
        ([{"op": "MOVE", "token": "a"}], "composite"),
        ([{"op": "DELETE", "token": "a", "link": 1}], "link 1 must tie"),
        ([{"op": "KEEP", "token": "a", "link": 1}], "KEEP 'a' cannot be part"),
        ([{"op": "ADD", "token": "a", "link": "x"}], "'link' must be a whole number"),
    ],
)
def test_malformed_json_is_refused_with_a_reason(data: object, message: str) -> None:
    with pytest.raises(EditError, match=message):
        Script.from_json(data)  # type: ignore[arg-type]

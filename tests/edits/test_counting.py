from hypothesis import given

from capedit.edits import (
    FelixTag,
    LaserTag,
    Op,
    Script,
    Steps,
    Trace,
    add,
    count_felix,
    count_implicit,
    count_lasertagger,
    count_script,
    count_trace,
    delete,
    edit_distance,
    expand,
    gold_script,
    keep,
    move_token,
    replace_token,
)
from tests.edits.strategies import token_lists


@given(token_lists, token_lists)
def test_counts_agree_with_the_script(source: list[str], target: list[str]) -> None:
    script = gold_script(source, target)
    steps = count_script(script)
    assert steps.total == edit_distance(source, target)
    assert steps.adds - steps.deletes == len(target) - len(source)
    assert count_trace(expand(script)) == steps


def test_felix_tags() -> None:
    tags = [FelixTag(Op.KEEP), FelixTag(Op.DELETE, 2), FelixTag(Op.KEEP, 1), FelixTag(Op.DELETE)]
    assert count_felix(tags) == Steps(deletes=2, adds=3)


def test_lasertagger_tags() -> None:
    tags = [LaserTag(Op.DELETE, ["a", "red"]), LaserTag(Op.KEEP, ["and"]), LaserTag(Op.DELETE), LaserTag(Op.KEEP)]
    assert count_lasertagger(tags) == Steps(deletes=2, adds=3)


def test_replace_is_two_steps_and_move_is_one() -> None:
    assert count_script(Script(replace_token("dog", "cat", link=1))).total == 2
    out, back = move_token("red", link=1)
    assert count_script(Script([out, keep("car"), back])) == Steps(moves=1)
    assert count_script(Script([out, keep("car"), back]).decompose()) == Steps(deletes=1, adds=1)


def test_an_implicit_editor_deletes_and_adds_everything() -> None:
    assert count_implicit(["a", "dog"], ["a", "cat", "here"]) == Steps(deletes=2, adds=3)


def test_a_word_added_and_taken_out_again_has_cost_two_steps() -> None:
    trace = Trace(("a",), (Script([keep("a")]), Script([keep("a"), add("b")]), Script([keep("a"), delete("b")])))
    assert count_trace(trace) == Steps(deletes=1, adds=1)
    assert not trace.script.changes


def test_word_pieces_can_be_counted_instead_of_words() -> None:
    script = Script([delete("skateboarder"), add("dog")])
    assert count_script(script, pieces=lambda word: 2 if len(word) > 5 else 1) == Steps(deletes=2, adds=1)

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capedit.edits import FelixTag, Op, count_felix, count_trace
from capedit.models.felix import Felix, Template, gold_tags, realise, template
from capedit.models.system import UNASKED
from capedit.models.vilbert import VisionInput
from capedit.models.vocabulary import END, MASK, START
from tests.training.made import made_pairs, made_system

KEEP, DELETE = Op.KEEP, Op.DELETE
CAPTIONS = st.lists(st.integers(5, 9), min_size=1, max_size=8)


def editor(**changes: int) -> Felix:
    system = made_system("v-felix", made_pairs(2), **changes)
    assert isinstance(system, Felix)
    return system.eval()


def test_words_come_behind_the_last_word_of_their_gap() -> None:
    tags, missing = gold_tags([5, 6, 7, 8], [9, 5, 9, 9, 8])
    assert tags == [FelixTag(KEEP, 1), FelixTag(KEEP), FelixTag(DELETE), FelixTag(DELETE, 2), FelixTag(KEEP)]
    assert missing == [[9], [], [], [9, 9], []]


def test_deleted_words_stay_in_sight_of_the_inserter() -> None:
    tags = [FelixTag(KEEP), FelixTag(DELETE, 2), FelixTag(KEEP, 1)]
    assert template([5, 6], tags) == Template([START, 5, MASK, MASK, 6, MASK, END], [0, 1, 0, 0, 0, 0, 0], [2, 3, 5])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(CAPTIONS, CAPTIONS)
def test_gold_tags_make_the_target(source: list[int], target: list[int]) -> None:
    tags, missing = gold_tags(source, target)
    assert len(tags) == len(missing) == len(source) + 1
    assert [tag.insertions for tag in tags] == [len(gap) for gap in missing]
    words = [(str(word), 0.5) for gap in missing for word in gap]
    trace = realise(tags, [str(word) for word in source], [1.0] * len(tags), words)
    assert trace.target == [str(word) for word in target]
    assert count_trace(trace) == count_felix(tags)


def test_an_exercise_asks_for_tags_and_for_what_is_behind_the_masks() -> None:
    exercise = editor().exercise([5, 6], [5, 7, 8])
    assert exercise is not None
    assert exercise.shown["template"] == [START, 5, 6, MASK, MASK, END]
    assert exercise.wanted["words"] == [UNASKED] * 3 + [7, 8, UNASKED]
    assert exercise.wanted["tags"] == [0, 0, 2 * 2 + 1, UNASKED]  # keep, keep, delete and insert two


def test_a_gap_that_no_tag_can_fill_is_not_learned_from() -> None:
    assert editor(most=2).exercise([5], [6, 7, 5]) is not None
    assert editor(most=2).exercise([5], [6, 7, 8, 5]) is None


def test_insertions_stop_where_the_encoder_ends() -> None:
    system = editor()
    head = system.tags.layers[-1]
    assert isinstance(head, torch.nn.Linear)
    with torch.no_grad():  # it wants nine words behind every word
        head.weight.zero_()
        head.bias.zero_()
        head.bias[18] = 9
    vision = VisionInput(torch.zeros(1, 2, 12), torch.zeros(1, 2, 5))
    (outcome,) = system.edit(vision, [["a", "dog", "on", "the", "sofa"]])
    assert len(outcome.tokens) == system.config.encoder.positions - 2
    assert outcome.steps.deletes == 0


def test_a_word_is_as_sure_as_its_tag_and_itself() -> None:
    trace = realise([FelixTag(KEEP), FelixTag(DELETE, 1)], ["dog"], [1.0, 0.5], [("cat", 0.4)])
    assert [(o.op, o.token, o.probability) for o in trace.script] == [
        (DELETE, "dog", 0.5),
        (Op.ADD, "cat", 0.2),
    ]

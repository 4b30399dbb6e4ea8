import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capedit.models.edit_nts import STOP, EditNts, expert_program
from capedit.models.search import Said
from capedit.models.vilbert import VisionInput
from tests.training.made import VOCABULARY, made_pairs, made_system

KEEP, DELETE = len(VOCABULARY), len(VOCABULARY) + 1
CAPTIONS = st.lists(st.sampled_from(VOCABULARY.words[5:11]), min_size=1, max_size=8)


def editor() -> EditNts:
    system = made_system("v-editnts", made_pairs(2))
    assert isinstance(system, EditNts)
    return system


EDITOR = editor()


def test_the_expert_adds_before_it_deletes_and_stops_where_the_rest_is_kept() -> None:
    a, the, dog, cat, sofa, is_ = VOCABULARY.encode(["a", "the", "dog", "cat", "sofa", "is"])
    assert expert_program([a, dog, is_, a, sofa], [a, cat, is_, a, sofa], KEEP, DELETE) == [KEEP, cat, DELETE, STOP]
    assert expert_program([a, dog], [a, dog], KEEP, DELETE) == [STOP]
    assert expert_program([a], [the, a, dog], KEEP, DELETE) == [the, KEEP, dog, STOP]
    assert expert_program([a, dog], [cat], KEEP, DELETE) == [cat, DELETE, DELETE, STOP]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(CAPTIONS, CAPTIONS)
def test_the_expert_program_makes_the_target(source: list[str], target: list[str]) -> None:
    program = expert_program(VOCABULARY.encode(source), VOCABULARY.encode(target), KEEP, DELETE)
    trace = EDITOR.realise(source, Said(program[:-1], [0.5] * len(program)))
    assert trace.target == target


def test_what_is_left_when_it_stops_is_kept() -> None:
    trace = editor().realise(["a", "dog", "is"], Said([DELETE], [0.9, 0.8]))
    assert trace.target == ["dog", "is"]
    assert [operation.probability for operation in trace.script] == [0.9, 0.8, 0.8]


def test_an_untouched_caption_has_no_rounds() -> None:
    assert editor().realise(["a", "dog"], Said([], [0.7])).rounds == ()


def test_nothing_is_kept_or_deleted_behind_the_end_and_additions_are_bounded() -> None:
    system = editor().eval()
    with torch.no_grad():  # it wants nothing but to add
        system.score.weight.zero_()
        system.score.bias.zero_()
        system.score.bias[5] = 9
        system.score.bias[STOP] = -9
    vision = VisionInput(torch.zeros(1, 2, 12), torch.zeros(1, 2, 5))
    (outcome,) = system.edit(vision, [["dog", "cat"]])
    assert outcome.steps.adds == system.config.added
    assert outcome.tokens.count(VOCABULARY.words[5]) == system.config.added

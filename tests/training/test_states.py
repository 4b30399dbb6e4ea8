from hypothesis import given
from hypothesis import strategies as st

from capedit.edits import Alignment, Op, Order, expand, gold_script
from capedit.models.draft import Draft, Word
from capedit.models.vocabulary import Vocabulary
from capedit.training.pairs import as_it_stands
from capedit.training.states import CHANGE, IGNORE, KEEP, Sample, Sampler, Sentinels, State, find_path

SENTINELS = Sentinels(start=100, end=101, mask=102)
SAMPLER = Sampler(SENTINELS)
RECALLING = Sampler(SENTINELS, recall=True)
captions = st.lists(st.integers(0, 6), max_size=9)


@given(captions, captions, st.sampled_from(Alignment), st.sampled_from(Order))
def test_samples_are_the_rounds_of_the_gold_trace(
    source: list[int], target: list[int], alignment: Alignment, order: Order
) -> None:
    path = find_path(source, target, alignment, order)
    trace = expand(gold_script([*map(str, source)], [*map(str, target)], alignment), order)
    deletion, *insertions = trace.rounds
    assert path.rounds == len(insertions)

    sample = SAMPLER.deletion(path)
    assert sample.tokens == [100, *source, 101]
    assert sample.labels == [IGNORE, *(CHANGE if op.op is Op.DELETE else KEEP for op in deletion), IGNORE]

    for number, script in enumerate(insertions):
        state = [*map(int, trace.states[number + 1])]
        tags = SAMPLER.addition(path, after=number)
        assert tags.tokens == [100, *state, 101]
        added_after = [KEEP] * (len(state) + 1)
        position = 0
        for operation in script:
            if operation.op is Op.ADD:
                added_after[position] = CHANGE
            else:
                position += 1
        assert tags.labels == [*added_after, IGNORE]

        words = SAMPLER.insertion(path, round=number + 1)
        masked = [102 if op.op is Op.ADD else int(op.token) for op in script]
        assert words.tokens == [100, *masked, 101]
        answers = [int(op.token) if op.op is Op.ADD else IGNORE for op in script]
        assert words.labels == [IGNORE, *answers, IGNORE]


def test_the_finished_caption_is_kept_everywhere() -> None:
    path = find_path([1, 2], [1, 3], Alignment.REFERENCE, Order.LEFT_TO_RIGHT)
    assert SAMPLER.addition(path, after=path.rounds) == Sample([100, 1, 3, 101], [KEEP, KEEP, KEEP, IGNORE])


@given(captions, captions, st.sampled_from(Order))
def test_what_fell_is_remembered_behind_what_came(source: list[int], target: list[int], order: Order) -> None:
    path = find_path(source, target, Alignment.SHORTEST, order)
    for number in range(path.rounds + 1):
        for one, other in (
            (SAMPLER.addition(path, number), RECALLING.addition(path, number)),
            (SAMPLER.insertion(path, number), RECALLING.insertion(path, number)),
        ):
            standing = [at for at in range(len(other.tokens)) if at not in other.fallen]
            assert [other.tokens[at] for at in standing] == one.tokens
            assert [other.labels[at] for at in standing] == one.labels
            assert not one.fallen
            lost = [source[at] for at in range(len(source)) if at not in path.kept]
            assert [other.tokens[at] for at in sorted(other.fallen)] == lost
            assert all(other.labels[at] == IGNORE for at in other.fallen)


def test_a_state_of_an_edit_knows_what_fell_before_it() -> None:
    vocabulary = Vocabulary("a dog cat lies red".split())
    draft = Draft([Word("a"), Word("red", born=2), Word("cat", born=3), Word("dog", died=1), Word("lies")], rounds=3)
    assert State.of(draft, 2, vocabulary) == State(vocabulary.encode("a red dog lies".split()), [0, 1, 3])
    a, dog, lies, cat = vocabulary.encode("a dog lies cat".split())
    path = as_it_stands(State.of(draft, 2, vocabulary), [a, cat, lies], Alignment.SHORTEST, Order.LEFT_TO_RIGHT)
    assert path.gaps == [[], [], [], []]  # "red" stands where "cat" should
    path = as_it_stands(State.of(draft, 1, vocabulary), [a, cat, lies], Alignment.SHORTEST, Order.LEFT_TO_RIGHT)
    assert RECALLING.insertion(path, 1) == Sample(
        [100, a, 102, dog, lies, 101], [IGNORE, IGNORE, cat, *[IGNORE] * 3], frozenset([3])
    )

from hypothesis import given
from hypothesis import strategies as st

from capedit.edits import Alignment, Op, Order, expand, gold_script
from capedit.training.states import CHANGE, IGNORE, KEEP, Sample, Sampler, Sentinels, find_path

SENTINELS = Sentinels(start=100, end=101, mask=102)
SAMPLER = Sampler(SENTINELS)
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

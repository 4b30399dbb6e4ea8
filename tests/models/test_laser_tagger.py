import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capedit.edits import LaserTag, Op, count_lasertagger, count_trace
from capedit.models.laser_tagger import CausalAttention, GoldTag, LaserTagger, gold_tags, realise
from tests.training.made import made_pairs, made_system

SOURCE = "Turing was born in 1912 . Turing died in 1954 .".split()
FUSED = "Turing was born in 1912 and he died in 1954 .".split()
CAPTIONS = st.lists(st.integers(5, 9), min_size=1, max_size=8)


def in_words(tags: list[GoldTag], words: dict[int, str]) -> list[LaserTag]:
    return [LaserTag(Op.DELETE if tag.deleted else Op.KEEP, [words[word] for word in tag.phrase]) for tag in tags]


def test_the_lasertagger_example() -> None:
    words = dict(enumerate(sorted({*SOURCE, *FUSED})))
    number = {word: at for at, word in words.items()}
    tags = in_words(gold_tags([number[w] for w in SOURCE], [number[w] for w in FUSED]), words)
    assert [tag.op is Op.DELETE for tag in tags] == [False] * 5 + [True, True] + [False] * 5
    assert [list(tag.phrase) for tag in tags if tag.phrase] == [["and", "he"]]
    assert tags[5] == LaserTag(Op.DELETE, ["and", "he"])  # before the full stop, which goes
    trace = realise(tags, SOURCE, [0.5] * len(tags))
    assert trace.target == FUSED
    assert count_trace(trace) == count_lasertagger(tags)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(CAPTIONS, CAPTIONS)
def test_gold_tags_make_the_target(source: list[int], target: list[int]) -> None:
    tags = gold_tags(source, target)
    assert len(tags) == len(source) + 1
    assert not tags[-1].deleted
    words = {number: str(number) for number in range(10)}
    trace = realise(in_words(tags, words), [str(word) for word in source], [None] * len(tags))
    assert trace.target == [str(word) for word in target]
    assert count_trace(trace) == count_lasertagger(in_words(tags, words))


def test_tags_go_there_and_back() -> None:
    pairs = made_pairs(8)
    system = made_system("v-lasertagger", pairs)
    assert isinstance(system, LaserTagger)
    for _, source, target in pairs:
        ids = system.vocabulary.encode(source), system.vocabulary.encode(target)
        exercise = system.exercise(*ids)
        assert exercise is not None
        tags = [system.tag(number) for number in exercise.wanted["tags"]]
        assert realise(tags, source, [None] * len(tags)).target == target
        assert exercise.shown["before"] == [system.begin, *exercise.wanted["tags"][:-1]]


def test_a_pair_that_needs_another_phrase_is_not_learned_from() -> None:
    system = made_system("v-lasertagger", [("0", ["a", "dog"], ["a", "red", "dog"])])
    red, blue, a, dog = system.vocabulary.encode(["red", "blue", "a", "dog"])
    assert system.exercise([a, dog], [a, red, dog]) is not None
    assert system.exercise([a, dog], [a, blue, dog]) is None
    assert system.exercise([a] * 40, [a]) is None  # longer than the encoder


def test_the_decoder_does_not_look_ahead() -> None:
    torch.manual_seed(0)
    attention = CausalAttention(8, 8, 8, 2)
    x = torch.randn(1, 5, 8)
    later = x.clone()
    later[:, 3:] += 1
    one, other = attention(x, x, None), attention(later, later, None)
    torch.testing.assert_close(one[:, :3], other[:, :3])
    assert not torch.allclose(one[:, 3:], other[:, 3:])

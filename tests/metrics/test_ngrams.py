from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capedit.metrics import ngrams
from capedit.metrics.ngrams import Chunk, chunks, rereadable

CAPTIONS = st.lists(st.sampled_from(["a", "b", "c", "é", "猫"]), max_size=9)
PAIRS = st.lists(st.tuples(CAPTIONS, st.lists(CAPTIONS, min_size=1, max_size=3)), min_size=1, max_size=6)
TokenPairs = list[tuple[list[str], list[list[str]]]]


def only_chunk(pairs: TokenPairs) -> Chunk:
    (chunk,) = chunks(pairs)
    return chunk


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PAIRS)
def test_runs_are_the_counts_of_every_sentence(pairs: TokenPairs) -> None:
    chunk = only_chunk(pairs)
    sentences = [each for hypothesis, several in pairs for each in (hypothesis, *several)]
    assert chunk.sentences() == sentences
    for n, grams in enumerate(chunk.grams, start=1):
        expected = {
            (number, *gram): times
            for number, words in enumerate(sentences)
            for gram, times in Counter(zip(*(words[i:] for i in range(n)), strict=False)).items()
        }
        flat = [chunk.words[i] for i in chunk.word_ids]
        found = {
            (sentence, *flat[first : first + n]): times
            for sentence, first, times in zip(
                grams.sentence.tolist(),
                grams.first_position[grams.gram].tolist(),
                grams.count.tolist(),
                strict=True,
            )
        }
        assert found == expected


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PAIRS)
def test_text_and_tokens_make_the_same_chunk(pairs: TokenPairs) -> None:
    text = [(" ".join(hypothesis), [" ".join(each) for each in several]) for hypothesis, several in pairs]
    (of_text,), of_tokens = chunks(text), only_chunk(pairs)
    assert of_text.sentences() == of_tokens.sentences()


def test_a_caption_that_contains_the_sentence_break_is_read_right() -> None:
    odd = f"a {ngrams._BREAK} b"
    (chunk,) = chunks([(odd, [odd, "c"])])
    assert chunk.sentences() == [odd.split(), odd.split(), ["c"]]


def test_any_whitespace_separates_tokens_of_text() -> None:
    (chunk,) = chunks([("  a\tb \n c ", "d  e")])
    assert chunk.sentences() == [["a", "b", "c"], ["d", "e"]]


def test_no_reference_is_one_empty_reference() -> None:
    (chunk,) = chunks([(["a"], [])])
    assert chunk.sentences() == [["a"], []]


@pytest.mark.parametrize("chunk_tokens", [1, 5, 1000])
def test_chunks_keep_order_and_size(chunk_tokens: int) -> None:
    pairs = [([f"w{i}"] * (i % 4), [["r"]]) for i in range(20)]
    found = list(chunks(pairs, chunk_tokens))
    assert [words for chunk in found for words in chunk.sentences()[::2]] == [hypothesis for hypothesis, _ in pairs]
    assert all(len(chunk.word_ids) <= chunk_tokens or len(chunk) == 1 for chunk in found)


def test_an_instance_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(ValueError, match="tokens"):
        list(chunks([(["a"] * (1 << 21), [["a"]])]))


def test_fingerprints_do_not_depend_on_the_chunk() -> None:
    one, other = only_chunk([(["x", "a", "b"], [[]])]), only_chunk([(["a", "b"], [["y", "a", "b"]])])
    shared = set(np.concatenate(one.fingerprints).tolist()) & set(np.concatenate(other.fingerprints).tolist())
    assert len(shared) == 3  # a, b, a b


def test_fingerprints_tell_orders_and_boundaries_apart() -> None:
    chunk = only_chunk([(["a", "a", "ab", "b", "a"], [[]])])
    names = np.concatenate(chunk.fingerprints)
    assert len(np.unique(names)) == len(names) == 3 + 4 + 3 + 2


def test_an_iterator_is_gathered_and_a_list_is_not() -> None:
    pairs: TokenPairs = [(["a"], [["b"]])]
    assert rereadable(iter(pairs)) == pairs
    assert rereadable(pairs) is pairs

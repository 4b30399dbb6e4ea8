from functools import cache

import pytest
from hypothesis import given

from capedit.edits import Alignment, Order, align, edit_distance, gold_script, lcs_length, longest_gap
from tests.edits.strategies import token_lists


def textbook_table(source: list[str], target: list[str]) -> list[list[int]]:
    table = [[0] * (len(target) + 1) for _ in range(len(source) + 1)]
    for i, left in enumerate(source, 1):
        for j, right in enumerate(target, 1):
            table[i][j] = table[i - 1][j - 1] + 1 if left == right else max(table[i - 1][j], table[i][j - 1])
    return table


def textbook_reference_pairs(source: list[str], target: list[str]) -> list[tuple[int, int]]:
    """SPEC section 2 word for word, sentinels and all."""
    s, t = ["<s>", *source, "</s>"], ["<s>", *target, "</s>"]
    table = textbook_table(s, t)
    i, j, common = len(s), len(t), list[str]()
    while i and j:
        if s[i - 1] == t[j - 1]:
            common.append(s[i - 1])
            i, j = i - 1, j - 1
        elif table[i][j - 1] > table[i - 1][j]:
            j -= 1
        else:
            i -= 1
    common = common[::-1][1:-1]

    def leftmost(tokens: list[str]) -> list[int]:
        found, at = [], 0
        for word in common:
            at = tokens.index(word, at) + 1
            found.append(at - 1)
        return found

    return list(zip(leftmost(source), leftmost(target), strict=True))


def fewest_rounds(source: list[str], target: list[str], kept: int | None) -> int:
    """By exhaustive search: the shortest possible longest gap, over all alignments or those that keep so many words."""

    @cache
    def search(i: int, j: int, left: int | None) -> int:
        best = len(target) - j if left in (0, None) else len(target) + 1
        if left == 0:
            return best
        for jj in range(j, len(target)):
            for ii in range(i, len(source)):
                if source[ii] == target[jj]:
                    rest = search(ii + 1, jj + 1, None if left is None else left - 1)
                    best = min(best, max(jj - j, rest))
        return best

    return search(0, 0, kept)


@given(token_lists, token_lists)
def test_lcs_length_equals_the_textbook_table(source: list[str], target: list[str]) -> None:
    assert lcs_length(source, target) == textbook_table(source, target)[-1][-1]


@given(token_lists, token_lists)
def test_reference_alignment_is_the_published_rule(source: list[str], target: list[str]) -> None:
    source, target = ([t for t in tokens if not t.startswith("<")] for tokens in (source, target))
    assert align(source, target, Alignment.REFERENCE) == textbook_reference_pairs(source, target)


@given(token_lists, token_lists)
def test_best_needs_the_fewest_rounds_of_all_alignments(source: list[str], target: list[str]) -> None:
    source, target = source[:9], target[:9]
    pairs = align(source, target, Alignment.BEST)
    assert longest_gap(pairs, len(target)) == fewest_rounds(source, target, None)


@given(token_lists, token_lists)
def test_shortest_needs_the_fewest_rounds_at_minimal_edit_distance(source: list[str], target: list[str]) -> None:
    source, target = source[:9], target[:9]
    pairs = align(source, target, Alignment.SHORTEST)
    assert len(pairs) == lcs_length(source, target)
    assert longest_gap(pairs, len(target)) == fewest_rounds(source, target, len(pairs))


@given(token_lists, token_lists)
def test_alignments_never_need_more_rounds_than_reference(source: list[str], target: list[str]) -> None:
    gaps = {alignment: longest_gap(align(source, target, alignment), len(target)) for alignment in Alignment}
    assert gaps[Alignment.BEST] <= gaps[Alignment.SHORTEST] <= gaps[Alignment.REFERENCE]


@given(token_lists, token_lists)
def test_edit_distance_counts_what_the_script_does(source: list[str], target: list[str]) -> None:
    kept = len(align(source, target, Alignment.REFERENCE))
    assert edit_distance(source, target) == len(source) + len(target) - 2 * kept


def test_best_may_keep_fewer_words_for_shorter_gaps() -> None:
    # Keeping "x y z" leaves a gap of three; keeping "m" alone splits the target evenly.
    source, target = ["x", "y", "m"], ["a", "m", "x", "y"]
    assert longest_gap(align(source, target, Alignment.SHORTEST), len(target)) == 2
    assert align(source, target, Alignment.SHORTEST) == [(0, 2), (1, 3)]
    source, target = ["x", "y", "m"], ["a", "b", "m", "x", "y"]
    assert longest_gap(align(source, target, Alignment.SHORTEST), len(target)) == 3
    assert align(source, target, Alignment.BEST) == [(2, 2)]


def test_ties_drop_a_source_token_first() -> None:
    # Both "a" and "b" are longest common subsequences; the published walk finds "a".
    assert align(["a", "b"], ["b", "a"], Alignment.REFERENCE) == [(0, 1)]


@pytest.mark.parametrize("alignment", list(Alignment))
def test_very_long_captions_align(alignment: Alignment) -> None:
    source = [f"w{i % 997}" for i in range(10_000)]
    target = [f"w{i % 991}" for i in range(10_000)]
    script = gold_script(source, target, alignment)
    assert (script.source, script.target) == (source, target)


def test_orders_are_named_as_in_the_spec() -> None:
    assert [order.value for order in Order] == ["left-to-right", "balanced"]

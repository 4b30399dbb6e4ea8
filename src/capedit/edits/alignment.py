"""Gold scripts: which words of a reference caption to keep on the way to a target.

Equal words can be paired in many ways, and the pairing decides how long the gaps are that rounds of insertion
must fill.
"""

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from enum import StrEnum

from capedit.edits.lcs import lcs_rows
from capedit.edits.operations import Operation, add, delete, keep
from capedit.edits.script import Script

Pairs = list[tuple[int, int]]
"""Kept words as (source index, target index), rising in both."""


class Alignment(StrEnum):
    """How gold scripts pair words.

    `reference` is the published code's rule. `best` needs the fewest rounds of all alignments, and among those the
    fewest steps; it keeps fewer words than possible where that evens out the gaps. `shortest` needs the fewest rounds
    among the scripts of minimal edit distance.
    """

    REFERENCE = "reference"
    SHORTEST = "shortest"
    BEST = "best"


EVEN_OUT_LIMIT = 40_000
"""Above this many kept x target words (captions of hundreds of words) all give the `reference` pairing."""


def gold_script(source: Sequence[str], target: Sequence[str], alignment: Alignment = Alignment.SHORTEST) -> Script:
    """The script from source to target under an alignment."""
    return script_from_pairs(source, target, align(source, target, alignment))


def align(source: Sequence[Hashable], target: Sequence[Hashable], alignment: Alignment = Alignment.SHORTEST) -> Pairs:
    """The words kept, as pairs of positions."""
    if alignment is Alignment.REFERENCE:
        return _reference_pairs(source, target)
    return _evened_pairs(source, target, shortest_script=alignment is Alignment.SHORTEST)


def longest_gap(pairs: Pairs, target_length: int) -> int:
    """The most words to add in one place: the rounds that left-to-right insertion needs."""
    longest, expected = 0, 0
    for _, j in pairs:
        longest = max(longest, j - expected)
        expected = j + 1
    return max(longest, target_length - expected)


def script_from_pairs(source: Sequence[str], target: Sequence[str], pairs: Pairs) -> Script:
    """Keep the pairs, delete the rest of the source, add the rest of the target."""
    operations: list[Operation] = []
    i = j = 0
    for kept_i, kept_j in [*pairs, (len(source), len(target))]:
        operations.extend(delete(token) for token in source[i:kept_i])
        operations.extend(add(token) for token in target[j:kept_j])
        if kept_i < len(source):
            operations.append(keep(source[kept_i]))
        i, j = kept_i + 1, kept_j + 1
    return Script(operations)


def _reference_pairs(source: Sequence[Hashable], target: Sequence[Hashable]) -> Pairs:
    """The published rule: one LCS *string* by walking back, matched again leftmost in either caption."""
    rows = lcs_rows(source, target)
    i, j = len(source), len(target)
    backwards: list[Hashable] = []
    while i and j:
        if source[i - 1] == target[j - 1]:
            backwards.append(source[i - 1])
            i, j = i - 1, j - 1
        elif rows[j] >> (i - 1) & 1:  # table[i-1][j] == table[i][j]: ties, too, drop a source token
            i -= 1
        else:
            j -= 1
    common = backwards[::-1]
    return list(zip(_leftmost(common, source), _leftmost(common, target), strict=True))


def _leftmost(subsequence: Sequence[Hashable], tokens: Sequence[Hashable]) -> list[int]:
    positions = []
    at = 0
    for token in subsequence:
        while tokens[at] != token:
            at += 1
        positions.append(at)
        at += 1
    return positions


def _evened_pairs(source: Sequence[Hashable], target: Sequence[Hashable], *, shortest_script: bool) -> Pairs:
    """The pairing with the shortest longest gap, found by bisection over the length of that gap."""
    found = _reference_pairs(source, target)
    kept = len(found)
    if kept * len(target) > EVEN_OUT_LIMIT:
        return found
    at_least = kept if shortest_script else 0
    low, high = -(-(len(target) - kept) // (kept + 1)), longest_gap(found, len(target))
    while low < high:
        gap = (low + high) // 2
        pairs = _most_pairs_within(source, target, gap, at_least)
        if pairs is None:
            low = gap + 1
        else:
            found, high = pairs, gap
    return found


def _most_pairs_within(source: Sequence[Hashable], target: Sequence[Hashable], gap: int, at_least: int) -> Pairs | None:
    """The most words that can be kept with at most `gap` target words between neighbours, if `at_least` so many.

    State: the earliest source position at which the k-th kept word can be target word j; earlier is never worse.
    """
    occurrences: dict[Hashable, list[int]] = {}
    for i, token in enumerate(source):
        occurrences.setdefault(token, []).append(i)
    earliest = {-1: -1}  # target position of the last kept word -> its source position; here, the start sentinel
    steps: list[dict[int, int]] = []  # for each kept word: its target position -> that of the word before
    most, end = (0, -1) if len(target) <= gap else (-1, -1)
    while earliest:
        k = len(steps)
        following: dict[int, int] = {}
        step: dict[int, int] = {}
        for j in range(k, len(target) - max(0, at_least - 1 - k)):
            found = occurrences.get(target[j])
            within_reach = [before for before in range(max(j - gap - 1, k - 1), j) if before in earliest]
            if found is None or not within_reach:
                continue
            before = min(within_reach, key=earliest.__getitem__)
            at = bisect_right(found, earliest[before])
            if at < len(found):
                following[j], step[j] = found[at], before
        steps.append(step)
        earliest = following
        ends = [j for j in earliest if len(target) - 1 - j <= gap]
        if ends:
            most, end = len(steps), min(ends)
    if most < at_least:
        return None
    positions = [end]
    for step in reversed(steps[:most]):
        positions.append(step[positions[-1]])
    positions = positions[-2::-1]  # in reading order, without the start sentinel
    return list(zip(_leftmost([target[j] for j in positions], source), positions, strict=True))

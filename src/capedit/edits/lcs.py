"""Longest common subsequence by bit-parallel rows on Python integers.

One integer holds a whole row of the dynamic-programming table (Hyyrö 2004), so a pair of captions costs a
handful of additions a word, and this package needs nothing but the standard library. The rates beside a C
extension: `benchmarks/alignment.py`.
"""

from collections.abc import Hashable, Sequence


def lcs_rows(source: Sequence[Hashable], target: Sequence[Hashable]) -> list[int]:
    """Rows V[0..len(target)]; bit i of V[j] is 0 where table[i + 1][j] = table[i][j] + 1.

    `table[i][j]` is the LCS length of the first i source and the first j target tokens.
    """
    positions: dict[Hashable, int] = {}
    bit = 1
    for token in source:
        positions[token] = positions.get(token, 0) | bit
        bit <<= 1
    full = bit - 1
    row = full
    rows = [row]
    for token in target:
        matches = positions.get(token, 0)
        if matches:
            common = row & matches
            row = ((row + common) | (row - common)) & full
        rows.append(row)
    return rows


def lcs_length(source: Sequence[Hashable], target: Sequence[Hashable]) -> int:
    """The number of tokens in a longest common subsequence."""
    return len(source) - lcs_rows(source, target)[-1].bit_count()


def edit_distance(source: Sequence[Hashable], target: Sequence[Hashable]) -> int:
    """DELETE + ADD steps of a shortest script: insertions and deletions only, no substitution."""
    return len(source) + len(target) - 2 * lcs_length(source, target)

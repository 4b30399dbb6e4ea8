from __future__ import annotations

import itertools

import numpy as np
import pytest

from capedit.metrics.spice.decoding import best_heads


def projective_trees(n: int) -> list[tuple[int, ...]]:
    """All projective trees of n words with one root, by brute force."""
    found = []
    for heads in itertools.product(range(n + 1), repeat=n):
        if heads.count(0) != 1 or any(head == word for word, head in enumerate(heads, 1)):
            continue
        if not all(_reaches_root(heads, word) for word in range(1, n + 1)):
            continue
        arcs = [tuple(sorted(arc)) for arc in enumerate(heads, 1)]
        if not any(a < c < b < d for a, b in arcs for c, d in arcs):
            found.append(heads)
    return found


def _reaches_root(heads: tuple[int, ...], word: int) -> bool:
    for _ in heads:
        word = heads[word - 1]
        if word == 0:
            return True
    return False


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_best_tree_is_found(n: int) -> None:
    scores = np.random.default_rng(n).normal(size=(40, n, n + 1)).astype(np.float32)
    trees = projective_trees(n)
    for found, table in zip(best_heads(scores), scores, strict=True):
        value = {tree: sum(float(table[word, head]) for word, head in enumerate(tree)) for tree in trees}
        best = max(value, key=value.__getitem__)
        assert value[tuple(found.tolist())] == pytest.approx(value[best], abs=1e-5)


def test_one_root_even_if_two_look_better() -> None:
    scores = np.full((1, 2, 3), -5.0, dtype=np.float32)
    scores[0, :, 0] = 5.0
    assert best_heads(scores)[0].tolist().count(0) == 1

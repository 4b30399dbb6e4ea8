"""A dependency tree of one caption."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ROOT = 0


@dataclass(frozen=True)
class Tree:
    """Words are numbered from 1; `heads` and `relations` hold word i's at i - 1, head 0 being the root."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]

    def arcs(self) -> Iterator[tuple[int, str, int]]:
        """(head, relation, word) of every word."""
        for word, (head, relation) in enumerate(zip(self.heads, self.relations, strict=True), 1):
            yield head, relation, word

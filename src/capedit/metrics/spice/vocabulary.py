"""What the parser knows of words: the ids of words, endings and shapes, and the names of tags and relations."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

UNKNOWN = 0  # id of every word or ending that training did not keep

FEATURES = 4  # numbers a word is described by: word, ending of three letters, ending of two, shape
SHAPES = 4  # plain, with a digit, with a hyphen, with anything else that is not a letter

_DIGIT = re.compile(r"\d")


def normalised(word: str) -> str:
    """The word as the parser sees it: lower case, every digit a 0."""
    return _DIGIT.sub("0", word.lower())


def shape(word: str) -> int:
    if word.isalpha():
        return 0
    if _DIGIT.search(word):
        return 1
    return 2 if "-" in word else 3


@dataclass(frozen=True)
class Vocabulary:
    """Names in id order. Id 0 of `words`, `endings3` and `endings2` stands for the unknown."""

    words: list[str]
    endings3: list[str]
    endings2: list[str]
    tags: list[str]
    relations: list[str]

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.__dict__, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")

    @cached_property
    def _ids(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        word, three, two = (
            {name: i for i, name in enumerate(names)} for names in (self.words, self.endings3, self.endings2)
        )
        return word, three, two

    def encode(self, tokens: Sequence[str]) -> npt.NDArray[np.int64]:
        """(words, FEATURES) ids."""
        word_ids, ids3, ids2 = self._ids
        rows = np.empty((len(tokens), FEATURES), dtype=np.int64)
        for row, token in zip(rows, tokens, strict=True):
            word = normalised(token)
            row[:] = (
                word_ids.get(word, UNKNOWN),
                ids3.get(word[-3:], UNKNOWN),
                ids2.get(word[-2:], UNKNOWN),
                shape(token),
            )
        return rows

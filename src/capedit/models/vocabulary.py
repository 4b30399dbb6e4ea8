"""The words that a model knows, as numbers."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from capedit.errors import CapeditError
from capedit.models.draft import Draft

PAD, UNKNOWN, START, END, MASK = range(5)
SPECIALS = ("[PAD]", "[UNK]", "[START]", "[END]", "[MASK]")


class Vocabulary:
    """Whole words, after five that are none: padding, an unknown word, both ends of a caption, and a mask."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = (*SPECIALS, *words)
        self._ids = {word: number for number, word in enumerate(self.words)}
        if len(self._ids) != len(self.words):
            raise CapeditError("vocabulary: a word is there twice")

    @classmethod
    def from_captions(cls, captions: Iterable[Sequence[str]], min_count: int) -> "Vocabulary":
        """All words that stand in the captions often enough, the most frequent first."""
        counts = Counter(word for caption in captions for word in caption)
        words = [word for word in counts if counts[word] >= min_count and word not in SPECIALS]
        return cls(sorted(words, key=lambda word: (-counts[word], word)))

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._ids

    def encode(self, tokens: Iterable[str]) -> list[int]:
        return [self._ids.get(token, UNKNOWN) for token in tokens]

    def draft(self, words: Sequence[str]) -> Draft:
        """A caption in the units that the model reads: here, whole words."""
        return Draft.of(words)

    def joins(self, token: str) -> bool:
        """Whether a token is no word of its own, but goes on with the one before it."""
        return False

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.words[len(SPECIALS) :], ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        try:
            words = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CapeditError(f"{path}: cannot be read as a vocabulary ({error})") from error
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise CapeditError(f"{path}: a vocabulary is a list of words")
        return cls(words)

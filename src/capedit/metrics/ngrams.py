"""Captions as arrays: every n-gram of a chunk of instances, grouped and counted by one sort per order.

BLEU, ROUGE-L and CIDEr-D all ask the same question: which n-grams does a hypothesis share with each of its
references, and how often does each of them occur? A `Chunk` answers it once for a few thousand instances, in numpy,
and the three metrics read the answer.

A caption is a list of tokens, or a string that is split at whitespace. An instance without any reference is treated as
one whose only reference is empty, so that every instance has a defined score.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import chain, count, islice
from typing import cast

import numpy as np
from numpy.typing import NDArray

Caption = str | Sequence[str]
References = str | Sequence[Caption]
"""The references of one instance; a bare string is one reference."""
Pair = tuple[Caption, References]
"""A hypothesis and its references."""

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

MAX_ORDER = 4
CHUNK_TOKENS = 1 << 18
"""Tokens of a chunk, at most: about 70 MB while it is being scored."""
_BATCH = 8192  # instances of a chunk, at most
_CHARACTERS_A_TOKEN = 4  # to guess the size of a chunk before it is split
_BREAK = "\ue000\ue001"  # private-use characters, never part of a text
_POSITION_BITS = 21  # position, word id and (n-1)-gram id, each below 2^21, share one 64-bit sort key


def tokens(caption: Caption) -> Sequence[str]:
    """The tokens of a caption."""
    return caption.split() if isinstance(caption, str) else caption


@dataclass(frozen=True, slots=True)
class Grams:
    """All n-grams of one order in a chunk.

    An *occurrence* is an n-gram at a token position, a *run* the occurrences of one n-gram in one sentence. Both are
    sorted by n-gram and then by position, so the runs of one n-gram in one instance lie side by side, the
    hypothesis first.
    """

    order: int
    positions: IntArray  # (occurrences,) where each occurrence begins
    run_start: IntArray  # (runs,) first occurrence of each run
    count: IntArray  # (runs,) occurrences in each run
    gram: IntArray  # (runs,) number of the n-gram, from 0
    sentence: IntArray  # (runs,)
    first_position: IntArray  # (n-grams,) where each n-gram is seen first
    reference_run: IntArray  # (shared,) runs in references whose n-gram the hypothesis has too ...
    hypothesis_run: IntArray  # (shared,) ... and that run of the hypothesis
    document_count: IntArray  # (n-grams,) instances of the chunk with the n-gram in some reference

    def fingerprints(self, word_ids: IntArray, word_fingerprints: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """A 64-bit name for every n-gram that does not depend on the chunk.

        Two of n different n-grams share a name with a chance of about n^2 / 2^65: 3e-8 for a million.
        """
        value = np.full(len(self.first_position), self.order, np.uint64)
        for offset in range(self.order):
            word = word_fingerprints[word_ids[self.first_position + offset]]
            value = _mix(value * np.uint64(0x9E3779B97F4A7C15) + word)
        return value


class Chunk:
    """The sentences of some instances, each hypothesis followed by its references, and all their n-grams.

    Made by `chunks`, which keeps them small enough.
    """

    def __init__(self, sentences: Sequence[Caption], reference_counts: Sequence[int]) -> None:
        self.words, self.word_ids, self.lengths = _numbered(sentences)
        if len(self.word_ids) >> _POSITION_BITS:
            raise ValueError(f"one instance has {len(self.word_ids)} tokens, more than {1 << _POSITION_BITS}")
        self.starts: IntArray = np.cumsum(self.lengths) - self.lengths
        self.reference_counts: IntArray = np.array(reference_counts, np.int64)
        sentence_counts = self.reference_counts + 1
        self.hypotheses: IntArray = np.cumsum(sentence_counts) - sentence_counts  # sentence number of each
        self.instance: IntArray = np.repeat(np.arange(len(reference_counts)), sentence_counts)  # (sentences,)
        self.is_reference: NDArray[np.bool_] = np.ones(len(sentences), np.bool_)
        self.is_reference[self.hypotheses] = False

    def __len__(self) -> int:
        return len(self.hypotheses)

    def ids_of(self, sentence: int) -> list[int]:
        """The word numbers of one sentence."""
        start = self.starts[sentence]
        return cast(list[int], self.word_ids[start : start + self.lengths[sentence]].tolist())

    def sentences(self) -> list[list[str]]:
        """The tokens of every sentence."""
        flat = [self.words[i] for i in self.word_ids.tolist()]
        ends = np.cumsum(self.lengths).tolist()
        return [flat[start:end] for start, end in zip(self.starts.tolist(), ends, strict=True)]

    @cached_property
    def grams(self) -> tuple[Grams, ...]:
        """The n-grams of order 1 to 4."""
        sentence_of: IntArray = np.repeat(np.arange(len(self.lengths)), self.lengths)  # (tokens,)
        remaining = (self.starts + self.lengths)[sentence_of] - np.arange(len(self.word_ids))
        prefix: IntArray = np.zeros_like(self.word_ids)  # number of the (n-1)-gram at each position
        found: list[Grams] = []
        for order in range(1, MAX_ORDER + 1):
            begin: IntArray = np.flatnonzero(remaining >= order)
            last_word = self.word_ids[begin + (order - 1)]
            key = (prefix[begin] << 2 * _POSITION_BITS) | (last_word << _POSITION_BITS) | begin
            key.sort()  # sorting values with the position inside is several times faster than argsort
            positions = key & ((1 << _POSITION_BITS) - 1)
            is_new_gram = _changes(key >> _POSITION_BITS)
            gram = np.cumsum(is_new_gram) - 1
            prefix[positions] = gram
            found.append(self._grams(order, positions, gram, is_new_gram, sentence_of))
        return tuple(found)

    def _grams(
        self,
        order: int,
        positions: IntArray,
        gram: IntArray,
        is_new_gram: NDArray[np.bool_],
        sentence_of: IntArray,
    ) -> Grams:
        sentence = sentence_of[positions]
        run_start = np.flatnonzero(is_new_gram | _changes(sentence))
        run_gram, run_sentence = gram[run_start], sentence[run_start]
        is_reference = self.is_reference[run_sentence]
        is_new_group = is_new_gram[run_start] | _changes(self.instance[run_sentence])  # n-gram in an instance
        group_start = np.flatnonzero(is_new_group)[np.cumsum(is_new_group) - 1]
        reference_run = np.flatnonzero(is_reference & ~is_reference[group_start])
        first_of_document = is_reference.copy()
        first_of_document[1:] &= is_new_group[1:] | ~is_reference[:-1]
        grams = int(run_gram[-1]) + 1 if len(run_gram) else 0
        return Grams(
            order=order,
            positions=positions,
            run_start=run_start,
            count=np.diff(run_start, append=len(positions)),
            gram=run_gram,
            sentence=run_sentence,
            first_position=positions[is_new_gram],
            reference_run=reference_run,
            hypothesis_run=group_start[reference_run],
            document_count=np.bincount(run_gram[first_of_document], minlength=grams),
        )

    @cached_property
    def word_fingerprints(self) -> NDArray[np.uint64]:
        """A 64-bit name for every word of the chunk."""
        return np.frombuffer(b"".join(map(_digest, self.words)), "<u8").astype(np.uint64)

    @cached_property
    def fingerprints(self) -> tuple[NDArray[np.uint64], ...]:
        """The fingerprints of all n-grams, order by order."""
        return tuple(grams.fingerprints(self.word_ids, self.word_fingerprints) for grams in self.grams)

    def sum_references(self, values: FloatArray) -> FloatArray:
        """Values of sentences (sentences,) summed over the references of each instance."""
        chosen = self.is_reference
        sums = np.bincount(self.instance[chosen], weights=values[chosen], minlength=len(self))
        return sums.astype(np.float64)  # of no instances numpy makes integers

    def max_references(self, values: FloatArray) -> FloatArray:
        """The largest of the values (sentences,) among the references of each instance."""
        if not len(self):
            return np.zeros(0)
        starts = np.cumsum(self.reference_counts) - self.reference_counts
        return np.asarray(np.maximum.reduceat(values[self.is_reference], starts), np.float64)


def chunks(pairs: Iterable[Pair], chunk_tokens: int = CHUNK_TOKENS) -> Iterator[Chunk]:
    """Pairs as chunks of at most about `chunk_tokens` tokens, in order."""
    passing = iter(pairs)
    while batch := list(islice(passing, _BATCH)):
        yield from _small_chunks(batch, chunk_tokens)


def rereadable(pairs: Iterable[Pair]) -> Iterable[Pair]:
    """Something that can be gone through twice: an iterator, which cannot, becomes a list."""
    return list(pairs) if isinstance(pairs, Iterator) else pairs


def _small_chunks(batch: Sequence[Pair], chunk_tokens: int) -> Iterator[Chunk]:
    """A batch as one chunk, or its halves where it is too large."""
    sentences: list[Caption] = []
    reference_counts: list[int] = []
    for hypothesis, references in batch:
        several = [references] if isinstance(references, str) else references or [""]
        sentences.append(hypothesis)
        sentences.extend(several)
        reference_counts.append(len(several))
    size = sum(map(len, sentences)) // (_CHARACTERS_A_TOKEN if _all_text(sentences) else 1)
    if size <= chunk_tokens or len(batch) == 1:
        yield Chunk(sentences, reference_counts)
    else:
        middle = len(batch) // 2
        yield from _small_chunks(batch[:middle], chunk_tokens)
        yield from _small_chunks(batch[middle:], chunk_tokens)


def _all_text(sentences: Sequence[Caption]) -> bool:
    return set(map(type, sentences)) <= {str}


def _numbered(sentences: Sequence[Caption]) -> tuple[list[str], IntArray, IntArray]:
    """The different words; all sentences as word numbers, end to end; the length of each sentence."""
    number: defaultdict[str, int] = defaultdict(count().__next__)
    if _all_text(sentences):
        # One long split is several times faster than thousands of short ones. A break marks where sentences end.
        flat = f" {_BREAK} ".join(cast(Sequence[str], sentences)).split()
        word_ids = np.fromiter(map(number.__getitem__, flat), np.int64, len(flat))
        is_break = word_ids == number.get(_BREAK, -1)
        breaks = np.flatnonzero(is_break)
        if len(breaks) == max(len(sentences) - 1, 0):  # else a caption contains the break itself
            lengths = np.diff(breaks, prepend=-1, append=len(flat)) - 1
            return list(number), word_ids[~is_break], lengths[: len(sentences)]
    split = [sentence.split() if isinstance(sentence, str) else sentence for sentence in sentences]
    lengths = np.fromiter(map(len, split), np.int64, len(split))
    flat_ids = map(number.__getitem__, chain.from_iterable(split))
    word_ids = np.fromiter(flat_ids, np.int64, int(lengths.sum()))
    return list(number), word_ids, lengths


def _changes(values: IntArray) -> NDArray[np.bool_]:
    """True where a value differs from the one before; the first always does."""
    changed = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed


@lru_cache(maxsize=1 << 17)
def _digest(word: str) -> bytes:
    return blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection in which every input bit sways every output bit (the splitmix64 finaliser)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))

"""ROUGE-L with beta 1.2, as coco-caption computes it.

Precision and recall are the best over the references, each by itself. Two empty captions are identical and score 1;
an empty one scores 0 against anything else.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from capedit.edits import lcs_length
from capedit.metrics.ngrams import Chunk, FloatArray, IntArray, Pair, chunks

BETA = 1.2
_WORD = 64  # tokens that fit one machine word; longer captions go one by one


def rouge_l_of_chunk(chunk: Chunk) -> FloatArray:
    """ROUGE-L of each instance of a chunk, (instances,)."""
    hypothesis_length = chunk.lengths[chunk.hypotheses][chunk.instance]  # (sentences,)
    common = _common_lengths(chunk).astype(np.float64)
    common[(chunk.lengths == 0) & (hypothesis_length == 0)] = 1.0
    precision = chunk.max_references(common / np.maximum(hypothesis_length, 1))
    recall = chunk.max_references(common / np.maximum(chunk.lengths, 1))
    weighted = recall + BETA**2 * precision
    return np.divide((1 + BETA**2) * precision * recall, weighted, out=np.zeros(len(chunk)), where=weighted > 0)


def rouge_l(pairs: Iterable[Pair]) -> tuple[float, FloatArray]:
    """ROUGE-L between 0 and 1: of the corpus, which is the mean, and of each instance."""
    scores = np.concatenate([np.zeros(0), *map(rouge_l_of_chunk, chunks(pairs))])
    return float(scores.sum()) / max(len(scores), 1), scores


def _common_lengths(chunk: Chunk) -> IntArray:
    """For each reference, the length of its longest common subsequence with the hypothesis; 0 for hypotheses.

    Bit-parallel (Hyyrö 2004), a row of the table per machine word, and all captions of the chunk side by side.
    """
    hypothesis_of = chunk.hypotheses[chunk.instance]  # (sentences,)
    is_short = (chunk.lengths <= _WORD) & (chunk.lengths[hypothesis_of] <= _WORD)
    short = np.flatnonzero(is_short & chunk.is_reference)
    row: NDArray[np.uint64] = np.full(len(short), np.iinfo(np.uint64).max, np.uint64)
    for match in _matches(chunk, short):
        both = row & match
        row = (row + both) | (row - both)

    common: IntArray = np.zeros(len(chunk.lengths), np.int64)
    common[short] = np.unpackbits((~row).view(np.uint8)).reshape(-1, _WORD).sum(axis=1)
    for sentence in np.flatnonzero(~is_short & chunk.is_reference).tolist():
        common[sentence] = lcs_length(chunk.ids_of(sentence), chunk.ids_of(int(hypothesis_of[sentence])))
    return common


def _matches(chunk: Chunk, references: IntArray) -> NDArray[np.uint64]:
    """For each hypothesis position and reference: a bit wherever the reference has the word that stands there."""
    unigrams = chunk.grams[0]
    column: IntArray = np.full(len(chunk.lengths), -1, np.int64)
    column[references] = np.arange(len(references))
    chosen = column[unigrams.sentence[unigrams.reference_run]] >= 0
    reference_run, hypothesis_run = unigrams.reference_run[chosen], unigrams.hypothesis_run[chosen]

    times = unigrams.count[hypothesis_run]  # each occurrence in the hypothesis has the same mask
    nth = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    position = unigrams.positions[np.repeat(unigrams.run_start[hypothesis_run], times) + nth]
    step = position - np.repeat(chunk.starts[unigrams.sentence[hypothesis_run]], times)

    steps = int(chunk.lengths[chunk.hypotheses[chunk.instance[references]]].max(initial=0))
    matches: NDArray[np.uint64] = np.zeros((steps, len(references)), np.uint64)
    columns = np.repeat(column[unigrams.sentence[reference_run]], times)
    matches[step, columns] = np.repeat(_position_masks(chunk)[reference_run], times)
    return matches


def _position_masks(chunk: Chunk) -> NDArray[np.uint64]:
    """For each unigram run, a bit for every position of the word in its sentence; nonsense beyond 64."""
    unigrams = chunk.grams[0]
    if not len(unigrams.run_start):
        return np.zeros(0, np.uint64)
    offset = unigrams.positions - np.repeat(chunk.starts[unigrams.sentence], unigrams.count)
    bits = np.uint64(1) << (offset % _WORD).astype(np.uint64)
    return np.asarray(np.bitwise_or.reduceat(bits, unigrams.run_start), np.uint64)

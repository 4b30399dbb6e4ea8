"""BLEU-1 to BLEU-4 as coco-caption computes them: closest reference length, no smoothing but two tiny constants.

Defined for every input: an empty hypothesis scores 0, and so does a corpus of none.
"""

from collections.abc import Iterable

import numpy as np

from capedit.metrics.ngrams import MAX_ORDER, Chunk, FloatArray, IntArray, Pair, chunks

# coco-caption adds these to numerator and denominator, so that 0 / 0 is a small number and not an error.
_TINY = 1e-15
_SMALL = 1e-9

STATISTICS = 2 * MAX_ORDER + 2
"""Columns of BLEU's sufficient statistics: correct 1-4, guessed 1-4, hypothesis length, reference length."""


def bleu_statistics(chunk: Chunk) -> FloatArray:
    """What BLEU needs to know of each instance, (instances, STATISTICS); corpus BLEU is a function of the sum."""
    length = chunk.lengths[chunk.hypotheses]
    correct = [_clipped_matches(chunk, order) for order in range(1, MAX_ORDER + 1)]
    guessed = [np.maximum(length - n, 0) for n in range(MAX_ORDER)]
    columns = [*correct, *guessed, length, _closest_reference_length(chunk)]
    return np.stack(columns, axis=1).astype(np.float64)


def bleu_from_statistics(statistics: FloatArray) -> FloatArray:
    """BLEU-1 to BLEU-4 of statistics (..., STATISTICS): of single instances or of sums over a corpus."""
    correct, guessed = statistics[..., :MAX_ORDER], statistics[..., MAX_ORDER : 2 * MAX_ORDER]
    hypothesis_length, reference_length = statistics[..., -2], statistics[..., -1]
    product = np.cumprod((correct + _TINY) / (guessed + _SMALL), axis=-1)
    geometric_mean = product ** (1.0 / np.arange(1, MAX_ORDER + 1))
    ratio = (hypothesis_length + _TINY) / (reference_length + _SMALL)
    brevity_penalty = np.exp(np.minimum(0.0, 1.0 - 1.0 / ratio))
    return np.asarray(geometric_mean * brevity_penalty[..., None], np.float64)


def bleu(pairs: Iterable[Pair]) -> tuple[FloatArray, FloatArray]:
    """BLEU-1 to BLEU-4 between 0 and 1: of the corpus (4,), and of each instance (instances, 4)."""
    statistics = np.concatenate([np.zeros((0, STATISTICS)), *map(bleu_statistics, chunks(pairs))])
    return bleu_from_statistics(statistics.sum(axis=0)), bleu_from_statistics(statistics)


def _clipped_matches(chunk: Chunk, order: int) -> IntArray:
    """Occurrences in each hypothesis that some one reference has as well."""
    grams = chunk.grams[order - 1]
    if not len(grams.reference_run):
        return np.zeros(len(chunk), np.int64)
    matched = np.minimum(grams.count[grams.reference_run], grams.count[grams.hypothesis_run])
    group_start = np.flatnonzero(np.diff(grams.hypothesis_run, prepend=-1))
    best = np.maximum.reduceat(matched, group_start)
    sentence = grams.sentence[grams.hypothesis_run[group_start]]
    return np.bincount(chunk.instance[sentence], weights=best, minlength=len(chunk)).astype(np.int64)


def _closest_reference_length(chunk: Chunk) -> IntArray:
    """The reference length nearest to the hypothesis length; of two equally near, the shorter."""
    difference = chunk.lengths - chunk.lengths[chunk.hypotheses][chunk.instance]  # (sentences,)
    # Twice the distance, less one where the reference is shorter: the largest negative rank wins.
    rank = -(2 * np.abs(difference) - (difference < 0)).astype(np.float64)
    best = -chunk.max_references(rank).astype(np.int64)
    shorter = best % 2 == 1
    distance = (best + 1) // 2
    return chunk.lengths[chunk.hypotheses] + np.where(shorter, -distance, distance)

"""CIDEr-D and plain CIDEr: cosine similarity of TF-IDF vectors of n-grams, mean over n = 1 to 4 and over references.

CIDEr-D, the field's choice, clips a repeated n-gram at its weight in the reference and punishes a difference in length
(sigma 6, counted in bigrams, as coco-caption does). Both have the customary factor of 10, so a perfect score is 10.

Defined for every input: an empty caption scores 0, as does any n-gram that every document has. So a corpus of one
instance scores 0 with its own document frequencies (log 1 - log 1): give it a saved table.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice

import numpy as np

from capedit.metrics.document_frequencies import DocumentFrequencies
from capedit.metrics.ngrams import MAX_ORDER, Chunk, FloatArray, Grams, IntArray, Pair, chunks, rereadable

SIGMA = 6.0
_SCALE = 10.0


class CiderKind(StrEnum):
    """With clipping and length penalty, or without."""

    CIDER_D = "CIDEr-D"
    CIDER = "CIDEr"


def cider_of_chunk(chunk: Chunk, weights: Sequence[FloatArray], kind: CiderKind) -> FloatArray:
    """CIDEr of each instance of a chunk, given the IDF weight of every n-gram of every order."""
    similarity: FloatArray = np.zeros(len(chunk.lengths))  # (sentences,) summed over orders
    for grams, weight in zip(chunk.grams, weights, strict=True):
        similarity += _cosine(chunk, grams, weight, kind)
    if kind is CiderKind.CIDER_D:
        bigrams = np.maximum(chunk.lengths - 1, 0)
        difference = bigrams - bigrams[chunk.hypotheses][chunk.instance]
        similarity *= np.exp(-(difference**2) / (2 * SIGMA**2))
    return _SCALE / MAX_ORDER * chunk.sum_references(similarity) / chunk.reference_counts


def weighted_chunks(
    pairs: Iterable[Pair], frequencies: DocumentFrequencies | None = None
) -> Iterator[tuple[Chunk, list[FloatArray]]]:
    """The pairs chunk by chunk with the IDF weights of their n-grams.

    Without a table the document frequencies are those of the given references: `pairs` is then gone through twice and
    must begin anew each time, as a list does. A corpus of one chunk is read only once.
    """
    if frequencies is None:
        first_two = list(islice(chunks(pairs), 2))
        if len(first_two) == 1:
            (chunk,) = first_two
            yield chunk, [_idf(grams.document_count, len(chunk)) for grams in chunk.grams]
            return
        frequencies = DocumentFrequencies.from_pairs(pairs)
    for chunk in chunks(pairs):
        yield chunk, [_idf(frequencies.counts(names), frequencies.documents) for names in chunk.fingerprints]


def cider(
    pairs: Iterable[Pair], frequencies: DocumentFrequencies | None = None, kind: CiderKind = CiderKind.CIDER_D
) -> tuple[float, FloatArray]:
    """CIDEr-D (or CIDEr) between 0 and 10: of the corpus, which is the mean, and of each instance."""
    found = weighted_chunks(rereadable(pairs), frequencies)
    scores = np.concatenate([np.zeros(0), *(cider_of_chunk(chunk, weights, kind) for chunk, weights in found)])
    return float(scores.sum()) / max(len(scores), 1), scores


def _idf(document_counts: IntArray, documents: int) -> FloatArray:
    """log(documents / document count); an n-gram never seen counts as seen once."""
    # Where every document has the n-gram the weight must be 0 exactly, whatever the rounding of logarithms.
    share = np.minimum(np.maximum(document_counts, 1), max(documents, 1)).astype(np.float64)
    return np.where(share == documents, 0.0, np.log(float(max(documents, 1))) - np.log(share))


def _cosine(chunk: Chunk, grams: Grams, weight: FloatArray, kind: CiderKind) -> FloatArray:
    """Similarity of each reference with its hypothesis in the n-grams of one order; 0 for hypotheses."""
    sentences = len(chunk.lengths)
    value = grams.count * weight[grams.gram]  # (runs,)
    norm = np.sqrt(np.bincount(grams.sentence, weights=value * value, minlength=sentences))
    of_reference, of_hypothesis = value[grams.reference_run], value[grams.hypothesis_run]
    if kind is CiderKind.CIDER_D:
        of_hypothesis = np.minimum(of_hypothesis, of_reference)
    shared = grams.sentence[grams.reference_run]
    product = np.bincount(shared, weights=of_hypothesis * of_reference, minlength=sentences)
    norms = norm * norm[chunk.hypotheses][chunk.instance]
    cosine: FloatArray = np.divide(product, norms, out=np.zeros(sentences), where=norms > 0)
    return cosine

"""All scores of one system in one pass, with the conditions they hold under.

    evaluation = evaluate([("a dog on a sofa", ["a cat on a sofa"]), ...])
    evaluation.scores["CIDEr-D"], str(evaluation.signature)

Memory: captions pass by in chunks; what stays is some twenty numbers an instance (160 MB for a million) and the
document frequencies (16 bytes for each different n-gram).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from capedit.edits import Steps
from capedit.metrics.bleu import bleu_from_statistics, bleu_statistics
from capedit.metrics.cider import CiderKind, cider, cider_of_chunk, weighted_chunks
from capedit.metrics.document_frequencies import DocumentFrequencies
from capedit.metrics.fluency import WordPairs, is_broken
from capedit.metrics.ngrams import MAX_ORDER, Caption, Chunk, FloatArray, Pair, rereadable, tokens
from capedit.metrics.rouge import rouge_l_of_chunk
from capedit.metrics.signature import Duplicates, Signature
from capedit.metrics.significance import (
    Comparison,
    Interval,
    Statistic,
    bootstrap_all,
    paired_bootstrap_all,
    ratio_statistic,
)
from capedit.metrics.structure import structure_kept

PERCENT = 100.0


class SpiceF(Protocol):
    """The score of one instance."""

    @property
    def f(self) -> float: ...


class SpiceScorer(Protocol):
    """Any SPICE: ours, or values that another program has computed."""

    @property
    def kind(self) -> str:
        """Which SPICE this is, for signatures."""

    def scores(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Sequence[SpiceF]:
        """The score of each instance. Called with one chunk after another, in order."""


class EditCosts(NamedTuple):
    """What a system's edits cost, and what it started from."""

    steps: Sequence[Steps]
    """The counted steps of each instance."""
    sources: Sequence[Caption]
    """The captions that were edited (Ref-Caps)."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The scores of one system. All are x100, but for ES, D, A (mean steps an instance) and GPS."""

    signature: Signature
    statistics: Mapping[str, Statistic]
    """Each score as a function of sums over instances, for intervals and tests."""
    per_instance: Mapping[str, FloatArray]
    """The score of each instance by itself, on the scale of `scores`; GPS exists for a corpus only."""

    @property
    def scores(self) -> dict[str, float]:
        """The scores of the corpus."""
        return {name: statistic.value for name, statistic in self.statistics.items()}

    def intervals(self, *, resamples: int = 1000, level: float = 0.95, seed: int = 0) -> dict[str, Interval]:
        """Bootstrap confidence intervals of all scores."""
        return bootstrap_all(self.statistics, resamples=resamples, level=level, seed=seed)

    def compare(
        self, other: "Evaluation", *, resamples: int = 1000, level: float = 0.95, seed: int = 0
    ) -> dict[str, Comparison]:
        """This system minus another on the same instances, for the scores that both have."""
        return paired_bootstrap_all(self.statistics, other.statistics, resamples=resamples, level=level, seed=seed)

    def to_json(self) -> dict[str, Any]:
        """`scores` and `signature`, ready for a file."""
        return {"scores": self.scores, "signature": str(self.signature)}


def evaluate(
    pairs: Iterable[Pair],
    *,
    edits: EditCosts | None = None,
    spice: SpiceScorer | None = None,
    frequencies: DocumentFrequencies | None = None,
    word_pairs: WordPairs | None = None,
    tokeniser: str = "given",
    duplicates: Duplicates = "kept",
) -> Evaluation:
    """Score pairs of (hypothesis, references).

    Captions are token lists, or strings of tokens with whitespace between. `edits` adds ES, D, A, GPS and structure.
    Without `frequencies` those of the given references are used; `pairs` is then gone through twice, so that a stream
    too large for memory should be an object that can be iterated again (an iterator is gathered into a list).
    `tokeniser` and `duplicates` say what the caller did: every pair given is scored as it stands.
    """
    pairs = rereadable(pairs)
    parts = [_score_chunk(chunk, weights, spice, word_pairs) for chunk, weights in weighted_chunks(pairs, frequencies)]
    columns = {
        name: np.concatenate([part.columns[name] for part in parts]) if parts else np.zeros(0)
        for name in _column_names(spice)
    }
    counts = np.concatenate([np.zeros((0, 2 * MAX_ORDER + 2)), *(part.bleu for part in parts)])

    statistics: dict[str, Statistic] = {}
    per_instance: dict[str, FloatArray] = {}
    instance_bleu = PERCENT * bleu_from_statistics(counts)
    for n in range(MAX_ORDER):
        statistics[f"BLEU-{n + 1}"] = Statistic(counts, partial(_corpus_bleu, n))
        per_instance[f"BLEU-{n + 1}"] = instance_bleu[:, n]
    for name, values in columns.items():
        statistics[name] = ratio_statistic(values, scale=PERCENT)
        per_instance[name] = PERCENT * values
    if edits is not None:
        _add_edit_scores(statistics, per_instance, pairs, edits, columns["CIDEr-D"], frequencies)

    source = "references" if frequencies is None else frequencies.source
    documents = len(counts) if frequencies is None else frequencies.documents
    signature = Signature(
        tokeniser=tokeniser,
        references=_range(np.concatenate([np.zeros(0, np.int64), *(part.reference_counts for part in parts)])),
        instances=len(counts),
        document_frequencies=f"{source}({documents})",
        duplicates=duplicates,
        spice="none" if spice is None else spice.kind,
    )
    return Evaluation(signature, statistics, per_instance)


class _Scored(NamedTuple):
    bleu: FloatArray  # (instances, columns of bleu_statistics)
    columns: dict[str, FloatArray]  # each (instances,), between 0 and 1 (CIDEr-D: 10)
    reference_counts: np.ndarray[Any, np.dtype[np.int64]]


def _column_names(spice: SpiceScorer | None) -> list[str]:
    return ["ROUGE-L", "CIDEr-D", *(["SPICE"] if spice else []), "broken"]


def _score_chunk(
    chunk: Chunk, weights: Sequence[FloatArray], spice: SpiceScorer | None, word_pairs: WordPairs | None
) -> _Scored:
    sentences = chunk.sentences()
    hypotheses = [sentences[i] for i in chunk.hypotheses.tolist()]
    columns = {
        "ROUGE-L": rouge_l_of_chunk(chunk),
        "CIDEr-D": cider_of_chunk(chunk, weights, CiderKind.CIDER_D),
        "broken": np.array([is_broken(words, word_pairs) for words in hypotheses], np.float64),
    }
    if spice is not None:
        texts = [" ".join(words) for words in sentences]
        references = [
            texts[first + 1 : first + 1 + count]
            for first, count in zip(chunk.hypotheses, chunk.reference_counts, strict=True)
        ]
        found = spice.scores([texts[i] for i in chunk.hypotheses], references)
        columns["SPICE"] = np.array([score.f for score in found], np.float64)
    return _Scored(bleu_statistics(chunk), columns, chunk.reference_counts)


def _add_edit_scores(
    statistics: dict[str, Statistic],
    per_instance: dict[str, FloatArray],
    pairs: Iterable[Pair],
    edits: EditCosts,
    output_cider: FloatArray,
    frequencies: DocumentFrequencies | None,
) -> None:
    """ES, D, A, GPS and structure: what an edit cost, what each step won, and how much was left standing."""
    if not len(edits.steps) == len(edits.sources) == len(output_cider):
        raise ValueError(
            f"{len(output_cider)} pairs, but steps of {len(edits.steps)} and sources of {len(edits.sources)} edits"
        )
    _, source_cider = cider(_Sources(edits.sources, pairs), frequencies)
    columns = {
        "ES": np.array([steps.total for steps in edits.steps], np.float64),
        "D": np.array([steps.deletes for steps in edits.steps], np.float64),
        "A": np.array([steps.adds for steps in edits.steps], np.float64),
    }
    for name, values in columns.items():
        statistics[name] = ratio_statistic(values)
        per_instance[name] = values
    # Both means have the same number of instances, so the ratio of the sums is the ratio of the means.
    statistics["GPS"] = ratio_statistic(output_cider - source_cider, columns["ES"], scale=PERCENT)
    kept = np.array(
        [
            structure_kept(tokens(source), tokens(hypothesis))
            for source, (hypothesis, _) in zip(edits.sources, pairs, strict=True)
        ],
        np.float64,
    )
    statistics["structure"] = ratio_statistic(kept, scale=PERCENT)
    per_instance["structure"] = PERCENT * kept


class _Sources:
    """The captions before editing, paired with the same references; can be iterated again."""

    def __init__(self, sources: Sequence[Caption], pairs: Iterable[Pair]) -> None:
        self._sources = sources
        self._pairs = pairs

    def __iter__(self) -> Iterator[Pair]:
        for source, (_, references) in zip(self._sources, self._pairs, strict=True):
            yield source, references


def _corpus_bleu(n: int, sums: FloatArray) -> FloatArray:
    """BLEU-(n+1) x100."""
    return PERCENT * bleu_from_statistics(sums)[..., n]


def _range(counts: np.ndarray[Any, np.dtype[np.int64]]) -> str:
    if not len(counts):
        return "0"
    low, high = int(counts.min()), int(counts.max())
    return str(low) if low == high else f"{low}-{high}"

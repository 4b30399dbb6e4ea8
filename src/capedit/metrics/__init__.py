"""How good captions and edits are: BLEU, ROUGE-L, CIDEr-D, SPICE, broken rate, edit costs. No torch, no Java."""

from capedit.metrics.bleu import bleu
from capedit.metrics.cider import CiderKind, cider
from capedit.metrics.document_frequencies import DocumentFrequencies
from capedit.metrics.evaluation import EditCosts, Evaluation, SpiceScorer, evaluate
from capedit.metrics.fluency import WordPairs, find_breaks, is_broken
from capedit.metrics.rouge import rouge_l
from capedit.metrics.signature import Signature
from capedit.metrics.significance import (
    Comparison,
    Interval,
    Statistic,
    approximate_randomisation,
    bootstrap,
    paired_bootstrap,
)
from capedit.metrics.spice_java import JavaSpice
from capedit.metrics.structure import structure_kept

__all__ = [
    "CiderKind",
    "Comparison",
    "DocumentFrequencies",
    "EditCosts",
    "Evaluation",
    "Interval",
    "JavaSpice",
    "Signature",
    "SpiceScorer",
    "Statistic",
    "WordPairs",
    "approximate_randomisation",
    "bleu",
    "bootstrap",
    "cider",
    "evaluate",
    "find_breaks",
    "is_broken",
    "paired_bootstrap",
    "rouge_l",
    "structure_kept",
]

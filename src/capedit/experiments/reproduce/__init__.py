"""Every table of the paper: train or load what it needs, measure, and write a report with our rows beside its own."""

from capedit.experiments.reproduce.benchmark import Benchmark, BenchmarkFiles
from capedit.experiments.reproduce.made import make_benchmarks
from capedit.experiments.reproduce.plan import Estimate, estimate
from capedit.experiments.reproduce.run import reproduce, train_only
from capedit.experiments.reproduce.scale import SCALES, Scale, ScaleName
from capedit.experiments.reproduce.table import Row, Table
from capedit.experiments.reproduce.workshop import Workshop

__all__ = [
    "SCALES",
    "Benchmark",
    "BenchmarkFiles",
    "Estimate",
    "Row",
    "Scale",
    "ScaleName",
    "Table",
    "Workshop",
    "estimate",
    "make_benchmarks",
    "reproduce",
    "train_only",
]

"""Every table of the paper: train or load what it needs, measure, and write a report with our rows beside its own."""

from capedit.experiments.reproduce.benchmark import Benchmark, BenchmarkFiles
from capedit.experiments.reproduce.made import make_benchmarks
from capedit.experiments.reproduce.run import reproduce
from capedit.experiments.reproduce.scale import SCALES, Scale, ScaleName
from capedit.experiments.reproduce.table import Row, Table

__all__ = [
    "SCALES",
    "Benchmark",
    "BenchmarkFiles",
    "Row",
    "Scale",
    "ScaleName",
    "Table",
    "make_benchmarks",
    "reproduce",
]

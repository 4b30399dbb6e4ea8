"""Three pictures: the weight of KEEP, rounds of editing, and quality against time."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from capedit.errors import MissingExtraError
from capedit.experiments.reproduce.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = {"C": "CIDEr-D", "GPS": "GPS"}
PAPER_STYLE, OUR_STYLE = {"color": "#8c8c8c", "marker": "o", "linestyle": "--"}, {"color": "#1f5fa8", "marker": "s"}


class Plot(NamedTuple):
    """A picture of a table."""

    title: str
    path: Path


def plot_tables(tables: Mapping[int, Table], folder: Path) -> dict[int, Plot]:
    """Draw the tables at hand that can be drawn."""
    drawn = {}
    if 4 in tables:
        path = _curves(tables[4], ["C"], "weight of KEEP", folder / "lambda.png")
        drawn[4] = Plot("CIDEr-D and the weight of KEEP", path)
    if 6 in tables:
        drawn[6] = Plot("CIDEr-D and GPS by rounds", _curves(tables[6], ["C", "GPS"], "rounds", folder / "rounds.png"))
    if 9 in tables:
        drawn[9] = Plot("Quality against time", _quality_and_time(tables[9], folder / "time.png"))
    return drawn


def _curves(table: Table, columns: list[str], across: str, path: Path) -> Path:
    """A panel for each benchmark and column, the paper's curve and ours."""
    wanted = [(benchmark, column) for benchmark in table.benchmarks for column in columns]
    axes = _Panels(path, len(wanted))
    for panel, (benchmark, column) in zip(axes.panels, wanted, strict=False):
        rows = [row for row in table.rows if row.benchmark == benchmark]
        for label, style in (("paper", PAPER_STYLE), ("ours", OUR_STYLE)):
            points = [
                (float(row.label), value)
                for row in rows
                if (value := (row.paper if label == "paper" else row.ours).get(column)) is not None
            ]
            if points:
                panel.plot(*zip(*points, strict=True), label=label, **style)
        panel.set_xticks([float(row.label) for row in rows], [row.label for row in rows])
        _dress(panel, f"{benchmark}: {NAMES[column]}", across, NAMES[column])
    return axes.save()


def _quality_and_time(table: Table, path: Path) -> Path:
    """Milliseconds a caption against CIDEr-D, ours; times of another machine do not belong beside them."""
    axes = _Panels(path, len(table.benchmarks))
    for panel, benchmark in zip(axes.panels, table.benchmarks, strict=False):
        for row in table.rows:
            ms, quality = row.ours.get("IT (ms)"), row.ours.get("C")
            if row.benchmark == benchmark and ms is not None and quality is not None:
                panel.plot([ms], [quality], **OUR_STYLE)
                panel.annotate(row.label, (ms, quality), fontsize=7, xytext=(4, 4), textcoords="offset points")
        panel.margins(x=0.2, y=0.15)
        _dress(panel, benchmark, "ms a caption", "CIDEr-D", legend=False)
    return axes.save()


class _Panels:
    """So many panels, two in a line."""

    def __init__(self, path: Path, count: int) -> None:
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingExtraError("plots need matplotlib", "plot") from error
        rows, columns = -(-count // 2), min(count, 2)
        self._path, self._figure = path, Figure(figsize=(4.4 * columns, 3.2 * rows), layout="constrained")
        self.panels = self._figure.subplots(rows, columns, squeeze=False).flatten().tolist()

    def save(self) -> Path:
        self._figure.savefig(self._path, dpi=130)
        return self._path


def _dress(panel: "Axes", title: str, across: str, up: str, *, legend: bool = True) -> None:
    panel.set_title(title, fontsize=9)
    panel.set_xlabel(across, fontsize=8)
    panel.set_ylabel(up, fontsize=8)
    panel.grid(alpha=0.3)
    if legend and panel.lines:
        panel.legend(fontsize=7)

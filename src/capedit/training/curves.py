"""Training curves: rows appended to a CSV file as they come, and a picture of them."""

import csv
from collections.abc import Mapping
from pathlib import Path

PANELS_A_ROW = 4


class Curves:
    """A long table (step, name, value); resuming drops what a killed run wrote past its last checkpoint."""

    def __init__(self, path: Path, *, from_step: int = 0) -> None:
        self.path = path
        kept = [row for row in read_curves(path) if row[0] <= from_step] if path.exists() else []
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file)
        self._writer.writerow(["step", "name", "value"])
        self._writer.writerows(kept)
        self._file.flush()

    def add(self, step: int, figures: Mapping[str, float]) -> None:
        self._writer.writerows([step, name, f"{value:.6g}"] for name, value in figures.items())
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_curves(path: Path) -> list[tuple[int, str, float]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [(int(row["step"]), row["name"], float(row["value"])) for row in csv.DictReader(file)]


def plot_curves(source: Path, target: Path) -> None:
    """One panel a figure, steps along the bottom; what was measured once has no curve."""
    from matplotlib.figure import Figure

    curves: dict[str, list[tuple[int, float]]] = {}
    for step, name, value in read_curves(source):
        curves.setdefault(name, []).append((step, value))
    drawn = {name: points for name, points in curves.items() if len(points) > 1}
    if not drawn:
        return
    columns = min(len(drawn), PANELS_A_ROW)
    rows = -(-len(drawn) // columns)
    width, height = 4 * columns, 3 * rows
    figure = Figure(figsize=(width, height))
    margins = {"left": 0.6 / width, "right": 1 - 0.2 / width, "bottom": 0.5 / height, "top": 1 - 0.35 / height}
    figure.subplots_adjust(**margins, wspace=0.25, hspace=0.4)  # fixed: finding margins takes longer than drawing
    for number, (name, points) in enumerate(drawn.items(), start=1):
        axes = figure.add_subplot(rows, columns, number, title=name, xlabel="step")
        axes.plot(*zip(*points, strict=True))
        axes.grid(alpha=0.3)
    figure.savefig(target, dpi=100)

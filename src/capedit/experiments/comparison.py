"""A picture of where two systems differ, instance by instance."""

from pathlib import Path

import numpy as np

from capedit.errors import MissingExtraError
from capedit.metrics import Evaluation


def plot_comparison(ours: Evaluation, theirs: Evaluation, names: tuple[str, str], path: Path) -> None:
    """For each score that instances have: how often, and by how much, either system is ahead."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plots need matplotlib", "plot") from error
    shared = [name for name in ("BLEU-4", "ROUGE-L", "CIDEr-D", "SPICE") if name in ours.per_instance]
    shared = [name for name in shared if name in theirs.per_instance]
    figure = Figure(figsize=(4.2 * len(shared), 3.6), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(shared), squeeze=False)[0], shared, strict=True):
        difference = np.asarray(ours.per_instance[name]) - np.asarray(theirs.per_instance[name])
        ahead, behind = float(np.mean(difference > 0)), float(np.mean(difference < 0))
        axes.hist(difference[difference != 0], bins=60, color="#4c72b0")
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_title(f"{name}: ahead {ahead:.0%}, behind {behind:.0%}, equal {1 - ahead - behind:.0%}", fontsize=9)
        axes.set_xlabel(f"{names[0]} minus {names[1]}", fontsize=8)
        axes.set_ylabel("instances", fontsize=8)
        axes.set_yscale("symlog")
    figure.savefig(path, dpi=130)

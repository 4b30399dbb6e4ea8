"""The service under load, as a picture."""

from pathlib import Path

from capedit.errors import MissingExtraError
from capedit.server.load import Findings, Kind


def plot(found: Findings, path: Path) -> None:
    """Speed and waiting by clients; memory by requests, where it was watched."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plots", "plot", error) from error
    figure = Figure(figsize=(14 if found.memory else 10, 3.6), layout="constrained")
    speed, waiting, *rest = figure.subplots(1, 3 if found.memory else 2)
    for kind, colour in ((Kind.REMEMBERED, "C0"), (Kind.NEW, "C1")):
        loads = sorted((load for load in found.loads if load.kind is kind), key=lambda load: load.clients)
        clients = [load.clients for load in loads]
        speed.plot(clients, [load.edits_per_second for load in loads], "o-", color=colour, label=kind)
        for name, style in (("p50", "o-"), ("p95", "s--"), ("p99", "^:")):
            marks = [float("nan") if (mark := getattr(load, name)) is None else mark for load in loads]
            waiting.plot(clients, marks, style, color=colour, label=f"{kind}, {name}")
    speed.set(xlabel="clients", ylabel="requests a second", ylim=(0, None))
    waiting.set(xlabel="clients", ylabel="milliseconds", ylim=(0, None))
    for memory in rest:
        held = [size / 2**20 for _, size in found.memory]
        memory.plot([requests for requests, _ in found.memory], held, "o-", label="service")
        memory.set(xlabel="requests", ylabel="memory, MB", ylim=(0, 1.25 * max(held)))
    for axes in (speed, waiting, *rest):
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)

"""Statistics of an editing dataset: Table 1 of the paper, and how many rounds its gold edits need."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from capedit.edits import Alignment, Order, align, edit_distance, longest_gap, rounds_needed


@dataclass(frozen=True)
class Statistics:
    """What a dataset is like. `rounds` holds, for every alignment and order, the share of instances (in %) that gold
    edits rebuild exactly within 1, 2, ... rounds of insertion."""

    instances: int
    images: int
    mean_reference_length: float
    mean_target_length: float
    mean_edit_distance: float
    vocabulary: int
    rounds: dict[str, dict[str, list[float]]]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class StatisticsCollector:
    """Gathers the figures in one pass, holding counts and the vocabulary, never the instances."""

    def __init__(self) -> None:
        self._instances = 0
        self._image_ids: set[object] = set()
        self._reference_words = 0
        self._target_words = 0
        self._edit_distance = 0
        self._vocabulary: set[str] = set()
        self._gaps: dict[Alignment, Counter[int]] = {alignment: Counter() for alignment in Alignment}

    def add(self, image_id: object, reference: Sequence[str], target: Sequence[str]) -> None:
        self._instances += 1
        self._image_ids.add(image_id)
        self._reference_words += len(reference)
        self._target_words += len(target)
        self._edit_distance += edit_distance(reference, target)
        self._vocabulary.update(reference, target)
        for alignment, gaps in self._gaps.items():
            gaps[longest_gap(align(reference, target, alignment), len(target))] += 1

    def result(self) -> Statistics:
        count = max(self._instances, 1)
        return Statistics(
            instances=self._instances,
            images=len(self._image_ids),
            mean_reference_length=self._reference_words / count,
            mean_target_length=self._target_words / count,
            mean_edit_distance=self._edit_distance / count,
            vocabulary=len(self._vocabulary),
            rounds={
                alignment.value: {order.value: _shares_rebuilt(gaps, order) for order in Order}
                for alignment, gaps in self._gaps.items()
            },
        )


def collect_statistics(triples: Iterable[tuple[object, Sequence[str], Sequence[str]]]) -> Statistics:
    """Statistics of (image id, reference tokens, target tokens)."""
    collector = StatisticsCollector()
    for triple in triples:
        collector.add(*triple)
    return collector.result()


def _shares_rebuilt(gaps: Counter[int], order: Order) -> list[float]:
    needed: Counter[int] = Counter()
    for gap, count in gaps.items():
        needed[rounds_needed(gap, order)] += count
    total = sum(needed.values())
    shares = []
    done = needed[0]
    for current in range(1, max(needed, default=0) + 1):
        done += needed[current]
        shares.append(100 * done / total)
    return shares

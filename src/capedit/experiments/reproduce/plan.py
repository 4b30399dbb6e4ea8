"""What a reproduction will take, before it is begun."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from capedit.data.statistics import collect_statistics
from capedit.edits import Steps
from capedit.experiments.reproduce.paper import PAPER
from capedit.experiments.reproduce.rates import measure_captions
from capedit.experiments.reproduce.tables import ORDER, PLANS, concerned
from capedit.experiments.reproduce.tigers import MAIN, Variant
from capedit.experiments.reproduce.workshop import EVALUATIONS, Model, Workshop, name_of
from capedit.models.system import Outcome
from capedit.training.systems import SystemExamination
from capedit.training.train_system import EXAMINED

TRIED = 100
"""Captions scored, or counted, to see how long that takes."""
ALONE = 4
"""A caption that is edited alone takes so many times as long as one of a batch, more or less."""


@dataclass(frozen=True)
class Training:
    """A model that is yet to be trained."""

    benchmark: str
    model: str
    steps: int
    examples: int
    seconds: float
    """CPU seconds with setup and evaluations."""


@dataclass(frozen=True)
class Estimate:
    """What one table still takes, after those before it."""

    table: int
    title: str
    trainings: tuple[Training, ...]
    measuring: float
    """CPU seconds of editing, scoring and timing."""

    @property
    def seconds(self) -> float:
        return sum(training.seconds for training in self.trainings) + self.measuring


def in_order(tables: Iterable[int]) -> list[int]:
    """Tables in the order in which they are made."""
    return [number for number in ORDER if number in set(tables)]


def estimate(shops: Sequence[Workshop], tables: Iterable[int]) -> list[Estimate]:
    """Table by table, from rates that are measured where they are not known yet. Scoring may be counted too often."""
    planned: set[tuple[str, str]] = set()
    scoring = {shop.benchmark.name: _scoring(shop) for shop in shops}
    found = []
    for number in in_order(tables):
        trainings, measuring = [], 0.0
        for shop in concerned(number, shops):
            name, asked = shop.benchmark.name, len(shop.benchmark.questions)
            for model in PLANS[number].models:
                if not shop.is_ready(model) and (name, f"train {name_of(model)}") not in planned:
                    trainings.append(_training(shop, model))
                    planned.add((name, f"train {name_of(model)}"))
            for output, model in _outputs(number, shop):
                if not shop.has_outputs(output) and (name, output) not in planned:
                    measuring += asked * shop.rates(model).caption
                planned.add((name, output))
                measuring += asked * scoring[name]
            measuring += _special(number, shop)
        found.append(Estimate(number, PAPER[number].title, tuple(trainings), measuring))
    return found


def _training(shop: Workshop, model: Model) -> Training:
    train, rates = shop.training_of(model), shop.rates(model)
    steps = train.steps
    if isinstance(model, Variant) and model.pretrained:
        steps += round(shop.scale.pretraining * train.steps)
    asked = len(shop.benchmark.questions[:: max(1, len(shop.benchmark.questions) // EXAMINED)])
    seconds = rates.setup + steps * rates.step + EVALUATIONS * asked * rates.caption
    return Training(shop.benchmark.name, name_of(model), steps, steps * train.batch_size, seconds)


def _outputs(number: int, shop: Workshop) -> list[tuple[str, Model]]:
    plan = PLANS[number]
    return [
        *((shop.output_name(model), model) for model in plan.models),
        *((output, MAIN) for output in plan.more(shop)),
    ]


def _scoring(shop: Workshop) -> float:
    """CPU seconds a caption."""
    examination = SystemExamination(shop.benchmark.questions[:TRIED], shop.benchmark.store)
    written = [Outcome(list(question.reference), Steps()) for question in examination.questions]

    def score() -> int:
        examination.evaluate(written, spice=shop.spice)
        return len(written)

    score()  # what is loaded once does not count
    return measure_captions(score)


def _special(number: int, shop: Workshop) -> float:
    if number == 1:
        tried = shop.benchmark.material.edits[:TRIED]
        each = measure_captions(lambda: collect_statistics(tried).instances)
        return each * (len(shop.benchmark.material.edits) + len(shop.benchmark.questions))
    if number == 9:
        editors = [shop.rates(model).caption for model in PLANS[9].models]
        return 2 * ALONE * shop.scale.timed * (sum(editors) + 3 * shop.rates(MAIN).caption)  # timed, then counted
    return 0.0

"""How each table is filled: which models it needs, and what is measured of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from capedit.edits import Steps
from capedit.experiments.reproduce.costs import measure_cost
from capedit.experiments.reproduce.paper import COCO, FLICKR, PAPER, REF_CAPS
from capedit.experiments.reproduce.table import Row, Table, Values
from capedit.experiments.reproduce.tigers import LAMBDAS, MAIN, Variant
from capedit.experiments.reproduce.workshop import Model, Workshop
from capedit.metrics import Evaluation
from capedit.models.system import Kind, Outcome
from capedit.models.systems import SYSTEMS

SHORT_NAMES = {
    "BLEU-1": "B-1",
    "BLEU-2": "B-2",
    "BLEU-3": "B-3",
    "BLEU-4": "B-4",
    "ROUGE-L": "R",
    "CIDEr-D": "C",
    "SPICE": "S",
    "ES": "ES",
    "GPS": "GPS",
    "D": "D",
    "A": "A",
    "broken": "broken %",
}
EXPLICIT = tuple(name for name, entry in SYSTEMS.items() if entry.kind is Kind.EXPLICIT)
UNWEIGHTED = Variant(keep_weight=1.0)
PRETRAINED = Variant(pretrained=True)
ROUNDS = (1, 2, 3, 4, 5)
WEIGHTED_ALONE = ("weighted-delete", "weighted-add")
Measured = Mapping[str, Values]
"""Our rows by label."""


@dataclass(frozen=True)
class Plan:
    """What a table takes."""

    benchmarks: tuple[str, ...]
    models: tuple[Model, ...]
    measure: Callable[[Workshop], Measured]
    more: Callable[[Workshop], tuple[str, ...]] = lambda shop: ()
    """Outputs of TIger that it takes beyond those of its models."""
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    """Columns of ours that the paper has not."""


def fill(number: int, workshops: Sequence[Workshop]) -> Table:
    """The paper's table with our rows beside its own, for the benchmarks at hand; rows that it has not come last."""
    plan, printed = PLANS[number], PAPER[number]
    rows: list[Row] = []
    for shop in concerned(number, workshops):
        benchmark, measured = shop.benchmark.name, dict(plan.measure(shop))
        rows += [replace(row, ours=measured.pop(row.label, {})) for row in printed.rows if row.benchmark == benchmark]
        rows += [Row(benchmark, label, {}, values) for label, values in measured.items()]
    guests = [shop.guest.note for shop in concerned(number, workshops)[:1] if plan.measure is comparison and shop.guest]
    return replace(
        printed,
        rows=tuple(rows),
        notes=(*printed.notes, *plan.notes, *guests),
        columns=(*printed.columns, *plan.columns),
    )


def concerned(number: int, workshops: Sequence[Workshop]) -> list[Workshop]:
    """The workshops of the table's benchmarks."""
    return [shop for shop in workshops if shop.benchmark.name in PLANS[number].benchmarks]


def quality(evaluation: Evaluation, *, steps: bool = True) -> dict[str, float | None]:
    """Scores under the paper's short names; without `steps`, as for a system that does not edit."""
    hidden = () if steps else ("ES", "GPS", "D", "A")
    scores = evaluation.scores
    return {short: scores[name] for name, short in SHORT_NAMES.items() if name in scores and short not in hidden}


def statistics(shop: Workshop) -> Measured:
    """Table 1."""
    figures = {
        "instances": "instances",
        "images": "images",
        "mean reference length": "mean_reference_length",
        "mean target length": "mean_target_length",
        "mean edit distance": "mean_edit_distance",
        "vocabulary": "vocabulary",
    }
    return {
        label: {split: float(getattr(found, name)) for split, found in shop.benchmark.statistics.items()}
        for label, name in figures.items()
    }


def comparison(shop: Workshop) -> Measured:
    """Tables 2 and 3."""
    untouched = [Outcome(list(question.reference), Steps()) for question in shop.benchmark.questions]
    rows: dict[str, Values] = {REF_CAPS: quality(shop.evaluate(untouched), steps=False)}
    for name, entry in SYSTEMS.items():
        edits = entry.kind is not Kind.CAPTIONER
        rows[entry.label] = quality(shop.evaluate(shop.outcomes(name)), steps=edits)
    rows[shop.label(MAIN)] = quality(shop.evaluate(shop.outcomes(MAIN)))
    if shop.guest is not None:
        rows[shop.guest.label] = quality(shop.evaluate(shop.kept(shop.guest.name, shop.guest.editor)))
    return rows


def keep_weights(shop: Workshop) -> Measured:
    """Table 4."""
    return {f"{weight}": quality(shop.evaluate(shop.outcomes(Variant(weight)))) for weight in LAMBDAS}


def one_tagger(shop: Workshop) -> Measured:
    """Table 5."""
    found = {
        "neither": shop.outcomes(UNWEIGHTED),
        "T_del": shop.kept(WEIGHTED_ALONE[0], lambda: shop.combined(MAIN, UNWEIGHTED)),
        "T_add": shop.kept(WEIGHTED_ALONE[1], lambda: shop.combined(UNWEIGHTED, MAIN)),
        "both": shop.outcomes(MAIN),
    }
    return {label: quality(shop.evaluate(outcomes)) for label, outcomes in found.items()}


def rounds(shop: Workshop) -> Measured:
    """Table 6."""
    return {f"{number}": quality(shop.evaluate(shop.outcomes(MAIN, number))) for number in ROUNDS}


def pretraining(shop: Workshop) -> Measured:
    """Table 7."""
    variants = {"without": MAIN, "pre-trained": PRETRAINED}
    return {label: quality(shop.evaluate(shop.outcomes(variant))) for label, variant in variants.items()}


def transfer(shop: Workshop) -> Measured:
    """Table 8."""
    rows: dict[str, Values] = {}
    for name in EXPLICIT:
        written = shop.outcomes(name)
        again = shop.kept(_then_tiger(name), lambda: shop.editor(MAIN), [outcome.tokens for outcome in written])
        rows[shop.label(name)] = quality(shop.evaluate(written), steps=False)
        rows[f"{shop.label(name)} + TIger"] = quality(shop.evaluate(again), steps=False)
    return rows


def costs(shop: Workshop) -> Measured:
    """Table 9."""
    rows: dict[str, Values] = {}
    for name in EXPLICIT:
        cost = measure_cost(shop.editor(name), shop.benchmark, shop.scale.timed)
        rows[shop.label(name)] = {**cost, "C": shop.evaluate(shop.outcomes(name)).scores["CIDEr-D"]}
    for number in ROUNDS[:-1]:
        cost = measure_cost(shop.editor(MAIN, number), shop.benchmark, shop.scale.timed)
        label = f"TIger, {number} round{'s' if number > 1 else ''}"
        rows[label] = {**cost, "C": shop.evaluate(shop.outcomes(MAIN, number)).scores["CIDEr-D"]}
    return rows


def _then_tiger(system: str) -> str:
    return f"{system}-then-tiger"


def _after_rounds(shop: Workshop) -> tuple[str, ...]:
    return tuple(shop.output_name(MAIN, number) for number in ROUNDS)


BOTH = (COCO, FLICKR)
PLANS = {
    1: Plan(BOTH, (), statistics, notes=("Ours are of the files that this reproduction was given.",)),
    2: Plan((COCO,), (*SYSTEMS, MAIN), comparison, columns=("broken %",)),
    3: Plan((FLICKR,), (*SYSTEMS, MAIN), comparison, columns=("broken %",)),
    4: Plan(BOTH, tuple(Variant(weight) for weight in LAMBDAS), keep_weights),
    5: Plan(
        BOTH,
        (UNWEIGHTED, MAIN),
        one_tagger,
        lambda shop: WEIGHTED_ALONE,
        notes=("TIger's modules share no weights: these are put together from the modules of two trained TIgers.",),
    ),
    6: Plan(BOTH, (MAIN,), rounds, _after_rounds),
    7: Plan(
        BOTH,
        (MAIN, PRETRAINED),
        pretraining,
        notes=(
            "The paper pre-trains by ViLBERT on 3.3 M captions. We train one encoder to fill holes in the training "
            "captions, and start all three modules from it.",
        ),
    ),
    8: Plan(BOTH, (*EXPLICIT, MAIN), transfer, lambda shop: tuple(map(_then_tiger, EXPLICIT))),
    9: Plan(
        BOTH,
        (*EXPLICIT, MAIN),
        costs,
        _after_rounds,
        notes=(
            "Ours: one caption at a time, on the CPU, visual tokens given; milliseconds are those of this machine.",
        ),
    ),
}
ORDER = (1, 2, 3, 6, 8, 9, 7, 5, 4)
"""In which tables are made: first what trains the models that most others need, last the ablations."""

"""Where a benchmark's models are made: each is trained once, and then loaded; its outputs are kept, too.

A workshop's folder is named after its scale and data, so that nothing stale is ever loaded, and a reproduction that was
broken off goes on where it was.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from capedit.edits import Steps, Trace
from capedit.experiments.reproduce.benchmark import Benchmark
from capedit.experiments.reproduce.guest import Guest
from capedit.experiments.reproduce.rates import Rates, measure_captions, measure_step, stopwatch
from capedit.experiments.reproduce.scale import Scale
from capedit.experiments.reproduce.tigers import (
    MAIN,
    TigerEditor,
    Variant,
    combined,
    pretraining,
    recipe,
    start_from,
)
from capedit.metrics import Evaluation, SpiceScorer
from capedit.models.system import Outcome
from capedit.models.systems import SYSTEM_FILE, SYSTEMS, load_system
from capedit.models.tiger import Tiger
from capedit.models.tiger_files import load_tiger, save_tiger
from capedit.models.vocabulary import Vocabulary
from capedit.training.checkpoint import load_checkpoint, load_into
from capedit.training.config import TrainConfig
from capedit.training.distributed import Workers
from capedit.training.loop import Progress, fit
from capedit.training.pairs import Lesson
from capedit.training.recipe import Recipe
from capedit.training.systems import Edits, SystemExamination, SystemTask
from capedit.training.tiger import TigerTask
from capedit.training.train_system import EXAMINED, LSTM_SYSTEMS, SystemRecipe, setup, train_system
from capedit.training.train_tiger import setup as setup_tiger

Model = str | Variant
"""One of `SYSTEMS` by name, or a variant of TIger."""
EVALUATIONS = 2
"""Times that a model is examined in training, half-way and at the end; the better one is kept."""
CHECKPOINTS = 20
"""Times that a model is saved in training: what is lost if the machine goes down is a part of so many."""
TRIED = 32
"""Captions edited to see how long that takes."""


def name_of(model: Model) -> str:
    return model if isinstance(model, str) else model.name


@dataclass
class Workshop:
    """Makes what tables ask for."""

    scale: Scale
    benchmark: Benchmark
    folder: Path
    spice: SpiceScorer | None = None
    guest: Guest | None = None
    """Shown beside the comparison."""
    workers: Workers = field(default_factory=Workers)
    watch: Callable[[str, Progress], None] = lambda name, progress: None

    def __post_init__(self) -> None:
        self.folder = self.folder / (
            f"{self.benchmark.name.lower()}-{self.scale.fingerprint()}-{self.benchmark.fingerprint()}"
        )
        self.vocabulary: Vocabulary = self.benchmark.vocabulary(self.scale.min_count)
        self.examination = SystemExamination(self.benchmark.questions, self.benchmark.store)
        self._evaluations: dict[bytes, Evaluation] = {}

    @property
    def rounds(self) -> int:
        """TIger's rounds on this benchmark."""
        return self.scale.rounds_on(self.benchmark.name)

    # --- training ---

    def prepare(self, model: Model) -> None:
        """Train a model, or go on training it, unless it is there. Every process must call this."""
        if self.is_ready(model):
            return
        out = self.folder / name_of(model)
        train = self.training_of(model)
        spent = out / "spent.json"
        before: float = json.loads(spent.read_text(encoding="utf-8")) if spent.exists() else 0.0
        with stopwatch() as watch:
            try:
                if isinstance(model, Variant):
                    notes = self._train_tiger(model, train, out)
                else:
                    notes = self._train(model, train, out)
            finally:  # what was spent is spent, finished or not
                if self.workers.leads and out.exists():
                    spent.write_text(json.dumps(before + watch.read()), encoding="utf-8")
        if self.workers.leads:
            notes = {**notes, "steps": train.steps, "batch": train.batch_size, "seconds": before + watch.seconds}
            (out / "finished.json").write_text(json.dumps(notes, indent=2) + "\n", encoding="utf-8")
        self.workers.agree(True)  # nobody asks whether it is ready before it is

    def is_ready(self, model: Model) -> bool:
        return (self.folder / name_of(model) / "finished.json").exists()

    def notes(self, model: Model) -> dict[str, float]:
        """What was noted when a model was trained: steps, CPU seconds, pairs that it could not learn from, …"""
        noted: dict[str, float] = json.loads((self.folder / name_of(model) / "finished.json").read_text())
        return noted

    def training_of(self, model: Model) -> TrainConfig:
        """How a model is trained: as many steps as its budget buys."""
        train = self.scale.train_of(name_of(model))
        if self.scale.seconds is None:
            return train
        steps = max(EVALUATIONS, round(self.scale.seconds / self.rates(model).step))
        return replace(
            train, steps=steps, evaluate_every=-(-steps // EVALUATIONS), checkpoint_every=-(-steps // CHECKPOINTS)
        )

    def rates(self, model: Model) -> Rates:
        """What a model costs here, measured once and then kept: a run that is taken up keeps its budget.

        All TIgers cost the same, and an ablation needs them trained for the same number of steps.
        """
        like = model if isinstance(model, str) else MAIN
        path = self.folder / name_of(like) / "rates.json"
        if not path.exists():
            measured = self._measure(like)
            if self.workers.leads and not path.exists():  # another process may have been faster
                path.parent.mkdir(parents=True, exist_ok=True)
                unfinished = path.with_suffix(".unfinished")
                unfinished.write_text(json.dumps(asdict(measured), indent=2) + "\n", encoding="utf-8")
                unfinished.replace(path)
            self.workers.agree(True)
        return Rates(**json.loads(path.read_text(encoding="utf-8")))

    def _measure(self, model: Model) -> Rates:
        train = self.scale.train_of(name_of(model))
        with stopwatch() as watch:
            task: SystemTask | TigerTask
            if isinstance(model, Variant):
                planned = recipe(model, self.scale, train, self.rounds)
                started, vocabulary = self._tiger(planned)
                task = self._tiger_task(started, vocabulary, planned)
                editor: Edits = TigerEditor.published(started, vocabulary, self.rounds)
            else:
                task = editor_task = self._system_task(model, train)
                editor = editor_task.model
        step = measure_step(task, train, self.scale.seconds or 0.0, self.workers)
        task.model.eval()
        tried = SystemExamination(self.benchmark.questions[:TRIED], self.benchmark.store)
        return Rates(watch.seconds, step, measure_captions(lambda: len(tried.outcomes(editor))))

    def _train(self, system: str, train: TrainConfig, out: Path) -> dict[str, float]:
        material, questions, store = self.benchmark.material, self.benchmark.questions, self.benchmark.store
        trained = train_system(
            self._recipe(system, train),
            material,
            questions,
            self.vocabulary,
            store,
            out,
            workers=self.workers,
            watch=lambda progress: self.watch(system, progress),
        )
        return trained.notes

    def _train_tiger(self, variant: Variant, train: TrainConfig, out: Path) -> dict[str, float]:
        """As `train_tiger` does, but examined like the other systems."""
        told = recipe(variant, self.scale, train, self.rounds)
        model, vocabulary = self._tiger(told)
        if variant.pretrained:
            before = pretraining(self.scale, train, self.rounds)
            start_from(model, self._fit(self._tiger(before)[0], vocabulary, before, out))
        self._fit(model, vocabulary, told, out)
        if self.workers.leads:
            vocabulary.save(out / "vocabulary.json")
            save_tiger(model, out / "weights.safetensors")
        return {}

    def _fit(self, model: Tiger, vocabulary: Vocabulary, told: Recipe, out: Path) -> Tiger:
        (stage,) = told.stages
        task = self._tiger_task(model, vocabulary, told)
        watch = partial(self.watch, f"{out.name} {stage.name}")
        fit(task, stage.train, out / stage.name, workers=self.workers, watch=watch)
        best = out / stage.name / "best.safetensors"
        load_into(model, load_checkpoint(best).tensors, best)
        return model

    def _tiger(self, told: Recipe) -> tuple[Tiger, Vocabulary]:
        """A TIger as it starts."""
        benchmark = self.benchmark
        ready = setup_tiger(told, benchmark.material, benchmark.questions, benchmark.store, None)
        return ready.model, ready.vocabulary

    def _tiger_task(self, model: Tiger, vocabulary: Vocabulary, told: Recipe) -> TigerTask:
        (stage,) = told.stages
        material = self.benchmark.material
        edits = [(image, caption, caption) for image, caption in material.right] if stage.captions else material.edits
        lesson = Lesson.of(edits, material.right, vocabulary)
        asked = self.benchmark.questions[:: max(1, len(self.benchmark.questions) // EXAMINED)]
        examination = SystemExamination(asked, self.benchmark.store)
        return TigerTask(
            model,
            vocabulary,
            lesson,
            self.benchmark.store,
            stage.tiger,
            lambda modules: examination(TigerEditor.published(modules.model, modules.vocabulary, self.rounds)),
        )

    def _system_task(self, system: str, train: TrainConfig) -> SystemTask:
        benchmark = self.benchmark
        told = self._recipe(system, train)
        return setup(told, benchmark.material, benchmark.questions, self.vocabulary, benchmark.store)[0]

    def _recipe(self, system: str, train: TrainConfig) -> SystemRecipe:
        shape = self.scale.lstm if system in LSTM_SYSTEMS else {"encoder": self.scale.encoder}
        return SystemRecipe(system, shape, train, self.scale.phrases)

    # --- what they write ---

    def editor(self, model: Model, rounds: int | None = None) -> Edits:
        """A trained model; `rounds` are TIger's."""
        folder = self.folder / name_of(model)
        if isinstance(model, str):
            return load_system(folder / SYSTEM_FILE)
        vocabulary = Vocabulary.load(folder / "vocabulary.json")
        return TigerEditor.published(load_tiger(folder / "weights.safetensors"), vocabulary, rounds or self.rounds)

    def combined(self, deleter: Variant, adder: Variant) -> TigerEditor:
        """Tagger_del of one TIger with the rest of another."""
        vocabulary = Vocabulary.load(self.folder / adder.name / "vocabulary.json")
        parts = [load_tiger(self.folder / variant.name / "weights.safetensors") for variant in (deleter, adder)]
        return TigerEditor.published(combined(*parts), vocabulary, self.rounds)

    def outcomes(self, model: Model, rounds: int | None = None) -> list[Outcome]:
        """What a model makes of the benchmark's captions."""
        return self.kept(self.output_name(model, rounds), lambda: self.editor(model, rounds))

    def output_name(self, model: Model, rounds: int | None = None) -> str:
        """Under which outputs are kept; TIger's usual rounds need not be named."""
        return name_of(model) + ("" if rounds in (None, self.rounds) else f"-{rounds}-rounds")

    def kept(
        self, name: str, editor: Callable[[], Edits], captions: Sequence[Sequence[str]] | None = None
    ) -> list[Outcome]:
        """Outputs that were written before under this name, or those of an editor."""
        path = self._outputs(name)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            made = self.examination.outcomes(editor(), captions)
            unfinished = path.with_suffix(".unfinished")
            unfinished.write_text("".join(json.dumps(_to_json(each)) + "\n" for each in made), encoding="utf-8")
            unfinished.replace(path)
        return [_from_json(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]

    def has_outputs(self, name: str) -> bool:
        """Whether outputs were written under this name."""
        return self._outputs(name).exists()

    def _outputs(self, name: str) -> Path:
        return self.folder / "outputs" / f"{name}.jsonl"

    def evaluate(self, outcomes: Sequence[Outcome]) -> Evaluation:
        """Scores; those of outputs that several tables show are computed once."""
        key = sha256(repr([(outcome.tokens, outcome.steps) for outcome in outcomes]).encode()).digest()
        if key not in self._evaluations:
            self._evaluations[key] = self.examination.evaluate(outcomes, spice=self.spice)
        return self._evaluations[key]

    @property
    def signature(self) -> str | None:
        """How scores were computed, if any were."""
        return next((str(evaluation.signature) for evaluation in self._evaluations.values()), None)

    def label(self, model: Model) -> str:
        """The name of a model in the paper."""
        return SYSTEMS[model].label if isinstance(model, str) else "TIger"


def _to_json(outcome: Outcome) -> dict[str, object]:
    trace = None if outcome.trace is None else outcome.trace.to_json()
    return {"tokens": outcome.tokens, "steps": outcome.steps.to_json(), "trace": trace}


def _from_json(told: dict[str, object]) -> Outcome:
    tokens, steps, trace = told["tokens"], told["steps"], told["trace"]
    assert isinstance(tokens, list)
    assert isinstance(steps, dict)
    counted = Steps(steps["deletes"], steps["adds"], steps["moves"])
    return Outcome(tokens, counted, Trace.from_json(trace) if isinstance(trace, dict) else None)

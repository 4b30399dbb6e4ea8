"""Where a benchmark's models are made: each is trained once, and then loaded; its outputs are kept, too.

A workshop's folder is named after its scale and data, so that nothing stale is ever loaded, and a reproduction that was
broken off goes on where it was.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from capedit.edits import Steps, Trace
from capedit.experiments.reproduce.benchmark import Benchmark
from capedit.experiments.reproduce.scale import LSTM_SYSTEMS, Scale
from capedit.experiments.reproduce.tigers import TigerEditor, Variant, combined, recipe
from capedit.metrics import Evaluation, SpiceScorer
from capedit.models.system import Outcome
from capedit.models.systems import SYSTEMS, load_system
from capedit.models.tiger import Tiger
from capedit.models.tiger_files import load_tiger, save_tiger
from capedit.models.vocabulary import Vocabulary
from capedit.training.checkpoint import load_checkpoint, load_into
from capedit.training.config import TrainConfig
from capedit.training.distributed import Workers
from capedit.training.loop import Progress, fit, make_optimizer, train_step
from capedit.training.pairs import Lesson
from capedit.training.recipe import Recipe, Stage
from capedit.training.systems import Edits, SystemExamination
from capedit.training.task import Task
from capedit.training.tiger import TigerTask
from capedit.training.train_system import EXAMINED, SystemRecipe, setup, train_system
from capedit.training.train_tiger import setup as setup_tiger

Model = str | Variant
"""One of `SYSTEMS` by name, or a variant of TIger."""
MEASURED_STEPS = 10
EVALUATIONS = 5
"""Times that a model is examined in training, to keep the best."""


def name_of(model: Model) -> str:
    return model if isinstance(model, str) else model.name


@dataclass
class Workshop:
    """Makes what tables ask for."""

    scale: Scale
    benchmark: Benchmark
    folder: Path
    spice: SpiceScorer | None = None
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
        train = self._budget(model, out)
        start = time.perf_counter()
        notes = self._train_tiger(model, train, out) if isinstance(model, Variant) else self._train(model, train, out)
        if self.workers.leads:
            notes = {**notes, "steps": train.steps, "seconds": time.perf_counter() - start}
            (out / "finished.json").write_text(json.dumps(notes, indent=2) + "\n", encoding="utf-8")
        self.workers.agree(True)  # nobody asks whether it is ready before it is

    def is_ready(self, model: Model) -> bool:
        return (self.folder / name_of(model) / "finished.json").exists()

    def notes(self, model: Model) -> dict[str, float]:
        """What was noted when a model was trained: steps, seconds, pairs that it could not learn from, …"""
        noted: dict[str, float] = json.loads((self.folder / name_of(model) / "finished.json").read_text())
        return noted

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
        for stage in told.stages:
            task = self._tiger_task(model, vocabulary, stage)
            watch = partial(self.watch, f"{variant.name} {stage.name}")
            fit(task, stage.train, out / stage.name, workers=self.workers, watch=watch)
            best = out / stage.name / "best.safetensors"
            load_into(model, load_checkpoint(best).tensors, best)
        if self.workers.leads:
            vocabulary.save(out / "vocabulary.json")
            save_tiger(model, out / "weights.safetensors")
        return {}

    def _tiger(self, told: Recipe) -> tuple[Tiger, Vocabulary]:
        """A TIger as it starts."""
        benchmark = self.benchmark
        ready = setup_tiger(told, benchmark.material, benchmark.questions, benchmark.store, None)
        return ready.model, ready.vocabulary

    def _tiger_task(self, model: Tiger, vocabulary: Vocabulary, stage: Stage) -> TigerTask:
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
            lambda modules: examination(TigerEditor(modules.model, modules.vocabulary, self.rounds)),
        )

    def _recipe(self, system: str, train: TrainConfig) -> SystemRecipe:
        shape = self.scale.lstm if system in LSTM_SYSTEMS else {"encoder": self.scale.encoder}
        return SystemRecipe(system, shape, train, self.scale.phrases)

    def _budget(self, model: Model, out: Path) -> TrainConfig:
        """The model's training: as many steps as fit into the scale's time, measured once and then kept."""
        train = self.scale.train_of(name_of(model))
        if self.scale.seconds is None:
            return train
        path = out / "budget.json"
        if not path.exists():
            rate = _steps_a_second(self._task(model, train), train, self.workers)
            steps = self.workers.from_leader(max(EVALUATIONS, round(rate * self.scale.seconds)))
            if self.workers.leads:
                out.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps({"seconds": self.scale.seconds, "steps": steps}), encoding="utf-8")
        else:
            steps = int(json.loads(path.read_text(encoding="utf-8"))["steps"])
        return replace(train, steps=steps, evaluate_every=-(-steps // EVALUATIONS))

    def _task(self, model: Model, train: TrainConfig) -> Task:
        """A model with its lessons, to be thrown away after a measurement."""
        benchmark = self.benchmark
        if isinstance(model, str):
            told = self._recipe(model, train)
            return setup(told, benchmark.material, benchmark.questions, self.vocabulary, benchmark.store)[0]
        planned = recipe(model, self.scale, train, self.rounds)
        return self._tiger_task(*self._tiger(planned), planned.stages[-1])

    # --- what they write ---

    def editor(self, model: Model, rounds: int | None = None) -> Edits:
        """A trained model; `rounds` are TIger's."""
        folder = self.folder / name_of(model)
        if isinstance(model, str):
            return load_system(folder / "system.safetensors")
        vocabulary = Vocabulary.load(folder / "vocabulary.json")
        return TigerEditor(load_tiger(folder / "weights.safetensors"), vocabulary, rounds or self.rounds)

    def combined(self, deleter: Variant, adder: Variant) -> TigerEditor:
        """Tagger_del of one TIger with the rest of another."""
        vocabulary = Vocabulary.load(self.folder / adder.name / "vocabulary.json")
        parts = [load_tiger(self.folder / variant.name / "weights.safetensors") for variant in (deleter, adder)]
        return TigerEditor(combined(*parts), vocabulary, self.rounds)

    def outcomes(self, model: Model, rounds: int | None = None) -> list[Outcome]:
        """What a model makes of the benchmark's captions."""
        suffix = "" if rounds is None else f"-{rounds}-rounds"
        return self.kept(f"{name_of(model)}{suffix}", lambda: self.editor(model, rounds))

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

    def has_outputs(self, model: Model) -> bool:
        return self._outputs(name_of(model)).exists()

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


def _steps_a_second(task: Task, train: TrainConfig, workers: Workers) -> float:
    optimizer = make_optimizer(task, train)
    train_step(task, train, optimizer, 0, workers)
    start = time.perf_counter()
    for step in range(1, MEASURED_STEPS + 1):
        train_step(task, train, optimizer, min(step, train.steps - 1), workers)
    return MEASURED_STEPS / (time.perf_counter() - start)


def _to_json(outcome: Outcome) -> dict[str, object]:
    trace = None if outcome.trace is None else outcome.trace.to_json()
    return {"tokens": outcome.tokens, "steps": outcome.steps.to_json(), "trace": trace}


def _from_json(told: dict[str, object]) -> Outcome:
    tokens, steps, trace = told["tokens"], told["steps"], told["trace"]
    assert isinstance(tokens, list)
    assert isinstance(steps, dict)
    counted = Steps(steps["deletes"], steps["adds"], steps["moves"])
    return Outcome(tokens, counted, Trace.from_json(trace) if isinstance(trace, dict) else None)

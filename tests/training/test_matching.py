from pathlib import Path

import numpy as np
import torch

from capedit.models.tiger import Tiger
from capedit.training import TrainConfig, fit
from capedit.training.examination import Question
from capedit.training.matching import MatchingTask
from capedit.training.pairs import Lesson
from capedit.vision import WITHHELD
from tests.editing.tiny import tiny_config
from tests.training.test_tiger import VOCABULARY, made_pairs, made_store

CONFIG = TrainConfig(steps=60, batch_size=16, learning_rate=0.03, evaluate_every=60, checkpoint_every=60)


def made_task(folder: Path) -> MatchingTask:
    torch.manual_seed(0)
    pairs = made_pairs(32)
    blind = [(WITHHELD, reference, target) for _, reference, target in pairs[:3]]
    kept = [(image, target, target) for image, _, target in pairs[:3]]
    lesson = Lesson.of([*pairs, *blind, *kept], [], VOCABULARY)
    questions = [Question(image, tuple(reference), tuple(target)) for image, reference, target in pairs]
    model = Tiger(tiny_config(), torch.arange(7, 15))
    return MatchingTask(model, VOCABULARY, lesson, made_store(folder / "store", pairs), questions)


def test_only_what_tells_right_from_wrong_can_teach_it(tmp_path: Path) -> None:
    assert len(made_task(tmp_path)) == 32  # neither captions whose image nobody sees, nor those that stay as they are


def test_wrong_captions_come_first_and_each_meets_its_image(tmp_path: Path) -> None:
    task = made_task(tmp_path)
    batch = task.batch(np.array([5, 9]), np.random.default_rng(0))
    wrong, right = batch.text.ids[:2], batch.text.ids[2:]
    assert (wrong == VOCABULARY.encode(["sitting"])[0]).any(1).all()
    assert (right == VOCABULARY.encode(["red"])[0]).any(1).all()
    alone = [task.batch(np.array([at]), np.random.default_rng(0)) for at in (5, 9)]
    together = float(task.loss(batch)["match"].total.detach())
    assert np.isclose(together, sum(float(task.loss(one)["match"].total.detach()) for one in alone), atol=1e-5)


def test_the_head_learns_and_nothing_else_changes(tmp_path: Path) -> None:
    task = made_task(tmp_path)
    before = {name: weight.clone() for name, weight in task.model.state_dict().items()}
    told = task.evaluate()["AUC"]
    fit(task, CONFIG, tmp_path / "run")
    assert task.evaluate()["AUC"] > told + 0.2  # as much as can be told by what nobody has trained
    changed = {name for name, weight in task.model.state_dict().items() if not torch.equal(weight, before[name])}
    assert changed == {"match.weight", "match.bias", "match_fit"}

from pathlib import Path

import numpy as np
import pytest
import torch

from capedit.models.concepts import ConceptConfig, ConceptHead
from capedit.models.tiger import Tiger
from capedit.models.vilbert import VisionInput
from capedit.training import TrainConfig, fit
from capedit.training.concepts import ConceptTask
from capedit.training.pairs import Lesson, Pair
from tests.editing.tiny import DIM, tiny_config
from tests.training.test_tiger import VOCABULARY, made_pairs, made_store

CHANNEL = ConceptConfig(words=8, shown=3, layers=1)
CONFIG = TrainConfig(steps=30, batch_size=16, learning_rate=3e-3, evaluate_every=30, checkpoint_every=30)


def made_task(folder: Path) -> ConceptTask:
    torch.manual_seed(0)
    pairs = made_pairs(32)
    model = Tiger(tiny_config(concepts=CHANNEL), torch.arange(7, 15))
    lesson = Lesson.of(pairs, [(image, right) for image, _, right in pairs], VOCABULARY)
    examined = [Pair(image, [], VOCABULARY.encode(right)) for image, _, right in pairs]
    return ConceptTask(model.concepts, model.concept_words, lesson, made_store(folder / "store", pairs), examined)


def test_it_starts_as_the_linear_scores_are_and_learns_more(tmp_path: Path) -> None:
    task = made_task(tmp_path)
    assert task.evaluate()["gain"] == 0
    linear = {name: weight.clone() for name, weight in task.model.score.state_dict().items()}
    fit(task, CONFIG, tmp_path / "run")
    assert task.evaluate()["gain"] > 1
    assert all(torch.equal(weight, linear[name]) for name, weight in task.model.score.state_dict().items())


def test_shares_are_of_captions_that_have_a_word(tmp_path: Path) -> None:
    task = made_task(tmp_path)
    batch = task.batch(np.arange(32), np.random.default_rng(0))
    assert set(batch.shares.unique().tolist()) == {0.0, 1.0}  # one caption an image
    assert batch.shares.sum(1).min() >= 1


def test_some_images_are_withheld(tmp_path: Path) -> None:
    task = made_task(tmp_path)
    batches = [task.batch(np.arange(32), np.random.default_rng(seed)) for seed in range(8)]
    masks = torch.cat([batch.vision.mask for batch in batches if batch.vision.mask is not None])
    nothing = ~masks[:, 1:].any(1)
    assert 0 < nothing.sum() < 30  # of 256
    features = torch.cat([batch.vision.features for batch in batches])
    assert not features[nothing].any()
    assert masks[:, 0].all()


@pytest.mark.parametrize("tokens", [1, 5])
def test_what_is_padding_is_not_seen(tokens: int) -> None:
    torch.manual_seed(0)
    head = ConceptHead(DIM, CHANNEL)
    assert head.context is not None
    torch.nn.init.normal_(head.context.correct.weight)
    features, places = torch.randn(2, tokens, DIM), torch.rand(2, tokens, 5)
    there = torch.arange(tokens + 2).expand(2, -1) < tokens
    padded = VisionInput(
        torch.cat([features, torch.full((2, 2, DIM), 9.0)], 1), torch.cat([places, torch.ones(2, 2, 5)], 1), there
    )
    torch.testing.assert_close(head(padded), head(VisionInput(features, places, None)), rtol=1e-4, atol=1e-4)

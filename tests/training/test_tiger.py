import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from capedit.edits import Alignment, Order
from capedit.models.decoding import Calibration, Knobs, Scale
from capedit.models.tiger import Tiger
from capedit.models.vilbert import TextInput
from capedit.models.vocabulary import PAD, START, UNKNOWN, Vocabulary
from capedit.training import TrainConfig, fit, load_checkpoint
from capedit.training.distributed import join_workers
from capedit.training.examination import Examination, Question, area_under_curve
from capedit.training.loop import objective
from capedit.training.pairs import Lesson, Pair, Slips, as_it_stands, replacements, with_holes
from capedit.training.rows import Rows
from capedit.training.states import CHANGE, IGNORE, find_path
from capedit.training.tiger import Batch, TigerTask, TigerTraining
from capedit.vision import FeatureStore, StoreWriter, VisualTokens
from capedit.vision.tokens import grid_corners
from tests.editing.tiny import DIM, WORDS, MeanColours, tiny_config

VOCABULARY = Vocabulary(WORDS)
ANIMALS, PLACES = ["dog", "cat", "man", "woman"], ["sofa", "table", "grass"]
OURS = TigerTraining(
    keep_weight=1.0,
    right=1.0,
    slips=0.5,
    strangers=0.5,
    holes=0.2,
    own_states=0.5,
    word_noise=0.02,
    factors={"match": 0.5},
)


def made_pairs(count: int) -> list[tuple[str, list[str], list[str]]]:
    """Wrong captions whose right ones can be read off the image."""
    rng = np.random.default_rng(0)
    pairs = []
    for number in range(count):
        animal, other = rng.permutation(ANIMALS)[:2].tolist()
        place = str(rng.choice(PLACES))
        pairs.append(
            (f"{number}", ["a", other, "sitting", "on", "the", place], ["a", animal, "on", "the", "red", place])
        )
    return pairs


def made_store(folder: Path, pairs: list[tuple[str, list[str], list[str]]]) -> FeatureStore:
    if not folder.exists():
        with StoreWriter(folder, MeanColours()) as writer:
            for image, _, target in pairs:
                feature = np.zeros((4, DIM), np.float32)
                feature[:, ANIMALS.index(target[1])] = 2
                feature[:, 6 + PLACES.index(target[-1])] = 2
                feature[:, 10] = int(image) / 16
                writer.add(image, VisualTokens.from_regions(feature, grid_corners(2, 2)))
    return FeatureStore(folder)


def made_task(
    folder: Path, training: TigerTraining = OURS, count: int = 32, calibration: Calibration | None = None
) -> tuple[TigerTask, Examination]:
    torch.manual_seed(0)
    pairs = made_pairs(count)
    store = made_store(folder / "store", pairs)
    model = Tiger(tiny_config(), torch.arange(7, 15))
    right = [(image, target) for image, _, target in pairs]
    exam = Examination([Question(image, tuple(r), tuple(t)) for image, r, t in pairs], store, Knobs(fits_above=0.5))
    lesson = Lesson.of(pairs, right, VOCABULARY)
    return TigerTask(model, VOCABULARY, lesson, store, training, exam, calibration), exam


@pytest.mark.parametrize("training", [TigerTraining(), OURS], ids=["published", "ours"])
def test_overfits_32_instances(tmp_path: Path, training: TigerTraining) -> None:
    task, _ = made_task(tmp_path, training)
    config = TrainConfig(steps=170, batch_size=32, learning_rate=0.01, evaluate_every=170, checkpoint_every=170)
    fit(task, config, tmp_path / "run")
    figures = task.evaluate()
    assert figures["CIDEr-D"] > 950  # of 1000
    if training is OURS:
        assert figures["right unchanged"] > 90
        assert figures["AUC"] > 0.95


def test_resuming_equals_never_stopping(tmp_path: Path) -> None:
    config = TrainConfig(steps=6, batch_size=8, evaluate_every=6, checkpoint_every=3)
    fit(made_task(tmp_path)[0], config, tmp_path / "whole")

    class Stopped(TigerTask):
        calls = 0

        def batch(self, indices: np.ndarray, rng: np.random.Generator) -> object:  # type: ignore[override]
            self.calls += 1
            if self.calls == 5:
                raise MemoryError
            return super().batch(indices, rng)

    stopped = made_task(tmp_path)[0]
    stopped.__class__ = Stopped
    with pytest.raises(MemoryError):
        fit(stopped, config, tmp_path / "parts")
    fit(made_task(tmp_path)[0], config, tmp_path / "parts")
    whole, parts = (load_checkpoint(tmp_path / name / "last.safetensors").tensors for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


STEADY = TrainConfig(steps=4, batch_size=8, evaluate_every=4, checkpoint_every=4)
GOLD = replace(OURS, own_states=0.0)  # what a model that knows nothing decides hangs on rounding


def test_two_processes_equal_one(tmp_path: Path) -> None:
    fit(made_task(tmp_path, GOLD)[0], STEADY, tmp_path / "one")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", __name__]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([*command, str(tmp_path)], check=True, env=environment)
    one, two = (load_checkpoint(tmp_path / name / "last.safetensors").part("model") for name in ("one", "two"))
    start = made_task(tmp_path, GOLD)[0].model.state_dict()
    # Over all weights, not each: where a gradient is next to nothing, Adam blows up its rounding.
    moved = sum(float((one[name] - start[name]).float().norm() ** 2) for name in one) ** 0.5
    apart = sum(float((one[name] - two[name]).float().norm() ** 2) for name in one) ** 0.5
    assert apart < 0.03 * moved


def test_rows_are_labelled_as_told(tmp_path: Path) -> None:
    task, _ = made_task(tmp_path, replace(OURS, word_noise=0.0, own_states=0.0))
    batch = task.batch(np.arange(8), np.random.default_rng(0))
    rows = batch.rows["delete"]
    right = rows.labels[(rows.fits == 1)]
    assert len(right) >= 8
    assert (right[right != IGNORE] == 0).all()  # nothing goes from a right caption
    wrong = rows.labels[rows.fits == 0]
    assert (wrong == 1).any()
    assert (rows.ids[:, 0] == START).all()


def test_unchanged_examples_are_right_captions(tmp_path: Path) -> None:
    task = made_task(tmp_path, TigerTraining(unchanged=0.5), 16)[0]
    wrong = made_task(tmp_path, TigerTraining(), 16)[0].batch(np.arange(16), np.random.default_rng(0)).rows["delete"]
    mixed = task.batch(np.arange(16), np.random.default_rng(0)).rows["delete"]
    assert not wrong.fits.any()
    assert 3 <= mixed.fits.sum() <= 13
    for labels, fits in zip(mixed.labels, mixed.fits, strict=True):
        assert bool((labels == CHANGE).any()) != bool(fits)


NOTHING = {"delete": 0.0, "add": 0.0, "insert": 0.0, "match": 0.0, "reward": 0.0, "rivals": 0.0}
TRIED = replace(OURS, own_states=1.0, flips=3, rivals=4, word_noise=0.0)


def learn(task: TigerTask, batch: Batch, steps: int = 5) -> None:
    optimizer = torch.optim.SGD(task.model.parameters(), lr=0.02)
    for _ in range(steps):
        objective(task.loss(batch), task.loss_weights(batch)).backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.mark.parametrize("module", ["delete", "add"])
def test_what_leads_to_better_captions_than_its_opposite_becomes_likelier(tmp_path: Path, module: str) -> None:
    task, _ = made_task(tmp_path, replace(TRIED, factors=NOTHING | {"reward": 1.0}))
    batch = task.batch(np.arange(32), np.random.default_rng(0))
    rows = batch.rows[module]
    assert (rows.worth > 0).any()
    assert (rows.worth < 0).any()
    assert task.loss_weights(batch)["reward"] == sum(int((part.worth != 0).sum()) for part in batch.rows.values())

    @torch.no_grad()
    def gain() -> float:
        """How much better captions are to be expected by deciding as likely as the model does."""
        text, sight = TextInput(rows.ids, rows.ids != PAD), task.model.see(batch.vision).rows(rows.images)
        tags = task.model.delete(text, sight)[0] if module == "delete" else task.model.add(text, sight)
        return float((rows.worth * tags.softmax(-1)[..., CHANGE]).sum())

    before = gain()
    learn(task, batch)
    assert gain() > before


def test_words_that_make_better_captions_than_their_rivals_become_likelier(tmp_path: Path) -> None:
    task, _ = made_task(tmp_path, replace(TRIED, factors=NOTHING | {"rivals": 1.0}))
    batch = task.batch(np.arange(16), np.random.default_rng(0))
    assert batch.openings
    numbers = batch.rows["insert"].opening
    assert sorted(numbers[numbers >= 0].tolist()) == list(range(len(batch.openings)))
    assert task.loss_weights(batch)["rivals"] == len(batch.openings)
    before = float(task.loss(batch)["rivals"].total.detach())
    learn(task, batch)
    assert float(task.loss(batch)["rivals"].total.detach()) < before


def test_what_was_only_tried_is_no_gold_label(tmp_path: Path) -> None:
    task, _ = made_task(tmp_path, replace(TRIED, fillings=1))
    tried = task.batch(np.arange(16), np.random.default_rng(0))
    weights = task.loss_weights(tried)
    masks = int((tried.rows["insert"].labels != IGNORE).sum())
    assert weights["insert"] == masks - len(tried.openings)


def test_losses_are_of_opinions_as_a_calibration_reads_them(tmp_path: Path) -> None:
    def losses(calibration: Calibration | None) -> dict[str, float]:
        task, _ = made_task(tmp_path, TigerTraining(), calibration=calibration)
        batch = task.batch(np.arange(32), np.random.default_rng(0))
        return {
            name: float(term.total.detach() / task.loss_weights(batch)[name]) for name, term in task.loss(batch).items()
        }

    sure = Scale(1, 50.0)  # of any change, and of any caption that it fits
    plain, certain = losses(None), losses(Calibration(sure, sure, Scale(1e6), sure))
    assert losses(Calibration()) == plain
    assert certain["match"] > 40 + plain["match"]  # every caption is wrong
    assert certain["delete"] > 10 + plain["delete"]  # KEEP is gold for most words
    assert certain["add"] > 10 + plain["add"]
    assert np.isclose(certain["insert"], np.log(len(VOCABULARY)), atol=1e-3)  # no word is likelier than another


def test_slips_are_learned_from_replacements() -> None:
    pair = Pair("0", [5, 6, 7, 8], [5, 9, 7, 10, 11])
    assert replacements(pair) == [(6, 9)]
    slipped = Slips([pair]).slip([9, 7, 9], 1, np.random.default_rng(0))
    assert sorted(slipped) == [6, 7, 9]
    assert replacements(Pair("0", [5, UNKNOWN], [5, 9])) == []


def test_holes_leave_words_in_order() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        caption = list(range(10, 20))
        path = with_holes(caption, Order.LEFT_TO_RIGHT, rng)
        assert list(path.source) == sorted(path.source)
        assert set(path.source) < set(caption)
        assert sorted([*path.source, *(word for gap in path.gaps for word in gap)]) == caption
        assert path == find_path(path.source, caption, Alignment.SHORTEST, Order.LEFT_TO_RIGHT)
    assert with_holes([5], Order.LEFT_TO_RIGHT, rng).gaps == [[5]]


def test_a_round_is_drawn_by_the_words_that_come_in_it() -> None:
    path = find_path([5], [6, 7, 5, 8], Alignment.SHORTEST, Order.LEFT_TO_RIGHT)  # 6 and 8 come first, then 7
    drawn = [path.draw_round(np.random.default_rng(seed)) for seed in range(300)]
    assert 0.6 < drawn.count(1) / len(drawn) < 0.73
    assert set(drawn) == {1, 2}
    assert find_path([5], [5], Alignment.SHORTEST, Order.LEFT_TO_RIGHT).draw_round(np.random.default_rng(0)) is None


def test_groups_of_rows_have_round_sizes_and_lose_nothing() -> None:
    lengths = np.random.default_rng(0).integers(1, 18, 150)
    ids = torch.tensor([[START, *[9] * length, *[PAD] * (18 - length)] for length in lengths])
    labels = torch.where(ids == 9, torch.arange(150)[:, None], IGNORE)
    fits, worth = torch.arange(150) % 2, (ids == 9) * 0.5
    groups = Rows(ids, labels, torch.arange(150), fits, worth, torch.where(ids == 9, 3, -1)).by_length()
    assert all(rows % 16 == 0 and width % 4 == 0 for rows, width in (tuple(group.ids.shape) for group in groups))
    assert len({tuple(group.ids.shape) for group in groups}) > 1
    for group in groups:
        assert (group.ids != PAD).any(1).all()
        empty = (group.labels == IGNORE).all(1)
        assert (group.fits[empty] == -1).all()
        assert (group.worth[empty] == 0).all()
        assert torch.equal(group.opening == 3, group.ids == 9)
        told = group.labels[~empty].clamp(min=0).max(1).values
        assert torch.equal(told, group.images[~empty])
        assert torch.equal(group.fits[~empty], group.images[~empty] % 2)
    assert sum(float(group.worth.sum()) for group in groups) == float(worth.sum())
    assert sum(int((group.labels != IGNORE).sum()) for group in groups) == int((labels != IGNORE).sum())


def test_a_gap_in_which_a_wrong_word_stands_gets_nothing_more() -> None:
    path = as_it_stands([5, 99, 6], [5, 7, 6, 8], Alignment.SHORTEST, Order.LEFT_TO_RIGHT)
    assert path.gaps == [[], [], [], [8]]
    assert path.kept == [0, 1, 2]


def test_area_under_curve_counts_ties_half() -> None:
    assert area_under_curve(np.array([0.9, 0.5]), np.array([0.5, 0.1])) == 0.875
    assert area_under_curve(np.array([1.0]), np.array([0.0])) == 1.0


def main(folder: str) -> None:
    with join_workers() as workers:
        fit(made_task(Path(folder), GOLD)[0], STEADY, Path(folder) / "two", workers=workers)


if __name__ == "__main__":
    main(*sys.argv[1:])

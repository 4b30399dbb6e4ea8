"""The dual encoder: its vectors, its files, that it learns, and that it ranks."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from capedit.data.builders.candidates import Scorer
from capedit.data.builders.captions import CaptionTable
from capedit.errors import CapeditError
from capedit.models.dual_encoder import PADDING, UNKNOWN, DualEncoder, DualEncoderConfig, Vocabulary
from capedit.models.scorers import ClipScorer, DualEncoderScorer
from capedit.training import TrainConfig, dual_encoder
from capedit.training.dual_encoder import held_out_images, train_dual_encoder
from capedit.vision import FeatureStore, StoreWriter, VisualTokens
from capedit.vision.tokens import grid_corners

CONFIG = DualEncoderConfig(features=12, width=16, heads=2, text_layers=1, max_words=6)
CAPTIONS = [("a", "red", "bus"), ("a", "cat"), ("a", "dog", "on", "the", "red", "bus", "today")]


def make_model(seed: int = 0) -> DualEncoder:
    torch.manual_seed(seed)
    return DualEncoder(CONFIG, Vocabulary.from_captions(CAPTIONS, min_count=1), "some encoder").eval()


def tokens(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    return rng.random((count, 5, 12), np.float32), rng.random((count, 5, 5), np.float32)


def test_vocabulary_numbers_by_frequency_and_pads() -> None:
    vocabulary = Vocabulary.from_captions([("b", "a", "b"), ("b", "a", "c")], min_count=2)
    assert vocabulary.words == ("b", "a")
    assert vocabulary.encode([("a", "c"), ("b", "a", "a", "a")], 3).tolist() == [[3, UNKNOWN, PADDING], [2, 3, 3]]


def test_vectors_have_unit_length_and_do_not_depend_on_the_batch() -> None:
    model = make_model()
    images = model.embed_images(*tokens(4))
    captions = model.embed_captions(CAPTIONS, batch=2)
    assert np.allclose(np.linalg.norm(images, axis=1), 1, atol=1e-5)
    assert np.allclose(np.linalg.norm(captions, axis=1), 1, atol=1e-5)
    alone = np.concatenate([model.embed_captions([caption]) for caption in CAPTIONS])
    assert np.allclose(captions, alone, atol=1e-5)


def test_the_loss_is_the_cross_entropy_of_both_directions() -> None:
    model = make_model()
    features, boxes = map(torch.from_numpy, tokens(3))
    words = torch.from_numpy(model.vocabulary.encode(CAPTIONS, CONFIG.max_words))
    scores = model.embed_images(*tokens(3)) @ model.embed_captions(CAPTIONS).T / 0.07
    by_image = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    by_caption = np.exp(scores) / np.exp(scores).sum(axis=0, keepdims=True)
    expected = -(np.log(np.diag(by_image)) + np.log(np.diag(by_caption))).sum() / 2
    assert model.loss(features, boxes, words).item() == pytest.approx(expected, rel=1e-4)


def test_save_and_load_give_the_same_vectors(tmp_path: Path) -> None:
    model = make_model()
    model.save(tmp_path / "saved")
    again = DualEncoder.load(tmp_path / "saved")
    assert (again.hash, again.features_hash, again.config) == (model.hash, "some encoder", CONFIG)
    assert np.array_equal(again.embed_captions(CAPTIONS), model.embed_captions(CAPTIONS))
    assert model.hash != make_model(seed=1).hash


def test_what_is_no_dual_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CapeditError, match="no dual encoder here"):
        DualEncoder.load(tmp_path)
    make_model().save(tmp_path)
    (tmp_path / "config.json").write_text('{"shape": {}, "vocabulary": ["a"], "features_hash": ""}', encoding="utf-8")
    with pytest.raises(CapeditError, match="not a dual encoder that can be loaded"):
        DualEncoder.load(tmp_path)


def toy_world(folder: Path, images: int = 120) -> tuple[CaptionTable, FeatureStore]:
    """Image i has a colour and a thing, both plain to see in its features and named by its captions."""
    encoder: Any = SimpleNamespace(name="toy", hash="toyhash", dim=12)
    pairs = []
    with StoreWriter(folder / "store", encoder) as writer:
        for image in range(images):
            colour, thing = image % 6, image // 6 % 6
            cells = np.zeros((4, 12), np.float32)
            cells[image % 4, colour] = cells[:, 6 + thing] = 1
            writer.add(str(image), VisualTokens.from_regions(cells, grid_corners(2, 2)))
            pairs += [(image, ("a", f"colour{colour}", f"thing{thing}")), (image, (f"thing{thing}", f"colour{colour}"))]
    pairs.append((images, ("not", "in", "the", "store")))
    return CaptionTable.from_pairs(pairs), FeatureStore(folder / "store")


def test_training_finds_the_caption_of_unseen_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dual_encoder, "HELD_OUT_IMAGES", 20)
    table, store = toy_world(tmp_path)
    config = TrainConfig(steps=120, batch_size=24, learning_rate=1e-2, evaluate_every=60)
    shape = DualEncoderConfig(features=12, width=16, heads=2, max_words=6)
    figures = train_dual_encoder(table, store, config, tmp_path / "out", shape=shape)
    # 20 images show at most 36 different scenes, some of them twice: an untrained model finds 1 in 20.
    assert figures["text to image R@5"] > 80
    assert figures["image to text R@5"] > 80
    model = DualEncoder.load(tmp_path / "out")
    assert model.features_hash == "toyhash"
    assert (tmp_path / "out" / "recall.json").exists()

    scorer: Scorer = DualEncoderScorer(
        model, lambda ids: store.batch(list(map(str, ids)))[:2], lambda image_id: str(image_id) in store
    )
    captions = [("a", "colour2", "thing3"), ("a", "colour5", "thing0")]
    image = 3 * 6 + 2
    scores = scorer.embed_images([image]) @ scorer.embed_captions(captions).T
    assert scores[0, 0] > scores[0, 1]
    assert not scorer.can_see(120)
    assert model.hash in scorer.name


def test_too_few_images_are_refused(tmp_path: Path) -> None:
    table, store = toy_world(tmp_path)
    with pytest.raises(CapeditError, match="features of 120 captioned images, more than 1000 needed"):
        train_dual_encoder(table, store, TrainConfig(steps=1), tmp_path / "out")


def test_held_out_images_follow_from_the_seed() -> None:
    ids = list(range(500))
    assert len(held_out_images(ids, 1, 50)) == 50
    assert held_out_images(ids, 1, 50) == held_out_images(ids[::-1], 1, 50)
    assert held_out_images(ids, 1, 50) != held_out_images(ids, 2, 50)


class FakeClip(torch.nn.Module):
    """As much of an open_clip model as the scorer calls."""

    def encode_text(self, words: torch.Tensor) -> torch.Tensor:
        return torch.stack([words.float(), torch.ones(len(words))], dim=1)

    def encode_image(self, pictures: torch.Tensor) -> torch.Tensor:
        return pictures.mean(dim=(2, 3))[:, :2]


def test_clip_through_open_clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(picture: Image.Image) -> torch.Tensor:
        return torch.from_numpy(np.array(picture, np.float32)).permute(2, 0, 1)

    def split(texts: Sequence[str]) -> torch.Tensor:
        return torch.tensor([len(text.split()) for text in texts])

    module: Any = ModuleType("open_clip")
    module.create_model_and_transforms = lambda model, pretrained: (FakeClip(), None, prepare)
    module.get_tokenizer = lambda model: split
    monkeypatch.setitem(sys.modules, "open_clip", module)
    Image.new("RGB", (4, 4), (30, 40, 0)).save(tmp_path / "7.png")
    scorer: Scorer = ClipScorer(lambda image_id: tmp_path / f"{image_id}.png", "ViT-B-32", "openai")
    assert scorer.name == "open_clip ViT-B-32 openai"
    assert scorer.can_see(7)
    assert not scorer.can_see(8)
    assert np.allclose(scorer.embed_images([7]), [[0.6, 0.8]])
    assert np.allclose(scorer.embed_captions([("a", "b", "c")]), np.array([[3, 1]]) / np.sqrt(10))


def test_clip_without_open_clip_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(CapeditError, match=r"capedit\[clip\]"):
        ClipScorer(lambda image_id: Path(str(image_id)))

"""CLIP behind a stand-in for `open_clip`, which cannot be installed with the CPU build of torch."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from capedit.errors import CapeditError
from capedit.vision.clip import ClipEncoder
from capedit.vision.registry import load_encoder


class Tower(nn.Module):
    """A patch embedding with the face of open_clip's vision transformer."""

    image_size = (32, 32)

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.output_tokens = False
        self.patches = nn.Conv2d(3, 12, 8, 8)

    def forward(self, pixels: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        tokens = self.patches(pixels).flatten(2).transpose(1, 2)
        pooled: Tensor = tokens.mean(1)
        return (pooled, tokens) if self.output_tokens else pooled


@pytest.fixture
def open_clip(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    module = SimpleNamespace(
        OPENAI_DATASET_MEAN=(0.5, 0.4, 0.3),
        OPENAI_DATASET_STD=(0.3, 0.3, 0.3),
        create_model=lambda name, pretrained: SimpleNamespace(visual=Tower()),
    )
    monkeypatch.setitem(sys.modules, "open_clip", module)
    return module


@pytest.mark.usefixtures("open_clip")
def test_patches_are_regions() -> None:
    encoder = load_encoder("clip:ViT-Tiny:nothing")
    assert isinstance(encoder, ClipEncoder)
    assert (encoder.name, encoder.dim) == ("open_clip ViT-Tiny nothing", 12)
    picture = Image.new("RGB", (100, 50), (128, 102, 77))  # the mean colour: nearly zero once normalised
    picture.paste((255, 255, 255), (75, 0, 100, 12))  # the upper right patch
    tokens = encoder.encode([picture] * 11)
    assert len(tokens) == 11
    assert len(tokens[0]) == 17
    change = np.abs(tokens[0].features[1:] - tokens[0].features[1 + 12]).max(axis=1)
    assert change.argmax() == 3
    np.testing.assert_allclose(tokens[0].boxes[4], [0.75, 0, 1, 0.25, 0.0625])


def test_towers_without_patches_are_refused(open_clip: SimpleNamespace) -> None:
    open_clip.create_model = lambda name, pretrained: SimpleNamespace(visual=nn.Identity())
    with pytest.raises(CapeditError, match="take a ViT"):
        ClipEncoder("RN50")


def test_tokens_that_are_no_patches_are_refused(open_clip: SimpleNamespace) -> None:
    class Pooler(Tower):
        def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
            pooled, tokens = super().forward(pixels)
            return pooled, tokens[:, 1:]

    open_clip.create_model = lambda name, pretrained: SimpleNamespace(visual=Pooler())
    with pytest.raises(CapeditError, match="15 tokens, which are no square"):
        ClipEncoder("coca_ViT-B-32")


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(CapeditError, match=r"capedit\[clip\]"):
        ClipEncoder()

"""Make the image encoder: ImageNet weights in, an encoder that knows the words of captions out."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from capedit.data.builders.captions import CaptionTable
from capedit.errors import CapeditError
from capedit.models.concept_files import ConceptTable
from capedit.models.device import CPU, placed, working_on
from capedit.models.efficientnet import EfficientNetLite
from capedit.models.efficientnet_onnx import export_onnx
from capedit.models.efficientnet_tail import Tail
from capedit.models.onnx_precision import Bits
from capedit.training.caption_words import CaptionWordsTask, WordReader, WordTargets, concept_words
from capedit.training.checkpoint import load_checkpoint, load_into
from capedit.training.config import TrainConfig
from capedit.training.loop import Progress, fit
from capedit.training.maps import fill_maps
from capedit.vision import GridEncoder
from capedit.vision.extraction import ImageEntry
from capedit.vision.grid import area_pooling

ENCODER, CONCEPTS = "encoder.onnx", "concepts.safetensors"
"""What comes out, in the folder of a trained encoder."""


@dataclass(frozen=True)
class EncoderRecipe:
    """What is trained, and what comes out."""

    words: int = 3000
    """Concept words: the commonest of all captions that say something about an image."""
    frozen_stages: int = 5
    """Stages that stay as ImageNet made them; their maps are computed once."""
    grid: int = 4
    """The encoder's map is pooled to so many rows and columns."""
    held_out: int = 2000
    """Images on which the gain is measured."""
    tail_rate: float = 0.15
    """Learning rate of the encoder's last stages over that of the word scores; 0 trains the scores alone."""


def train_encoder(
    network: EfficientNetLite,
    table: CaptionTable,
    picture: Callable[[int], Path],
    config: TrainConfig,
    out: Path,
    *,
    recipe: EncoderRecipe | None = None,
    start: ConceptTable | None = None,
    maps: Path | None = None,
    workers: int = 2,
    report: Callable[[int], None] = lambda done: None,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, float]:
    """Fine-tune the last stages of `network` on the captions of `table`; returns the figures on held-out images.

    With `start`, the concept head of an encoder that was trained before, words and all, is trained further.

    `out` gets `encoder.onnx`, `concepts.safetensors` and `figures.json`. `maps` is where the frozen stages' maps are
    kept (about 70 KB an image; default `out/maps`). Called again, it goes on where it was. Images that cannot be read
    are left out.
    """
    recipe = recipe or EncoderRecipe()
    out.mkdir(parents=True, exist_ok=True)
    entries = [ImageEntry(str(image), picture(image)) for image in table.image_ids.tolist()]
    store = fill_maps(network, recipe.frozen_stages, entries, maps or out / "maps", workers=workers, report=report)
    table = table.only(lambda image: str(image) in store)
    if len(table) <= recipe.held_out:
        raise CapeditError(f"{store.path}: maps of {len(table)} captioned images, more than {recipe.held_out} needed")
    words = concept_words(table.captions, recipe.words) if start is None else list(start.words)
    targets = WordTargets(table, words)
    held_out = np.sort(np.random.default_rng(config.seed).choice(len(table), recipe.held_out, replace=False))
    prior = targets.mean(np.setdiff1d(np.arange(len(table)), held_out).tolist())
    torch.manual_seed(config.seed)
    with working_on(CPU):  # the same start on every device
        model = WordReader(Tail(network, recipe.frozen_stages), network.config.dim, prior)
        if start is not None:
            model.score.load_state_dict({"weight": start.weight, "bias": start.bias})
    placed(model)
    images = list(map(str, table.image_ids.tolist()))
    task = CaptionWordsTask(model, store, images, targets, held_out.tolist(), recipe.tail_rate)
    fit(task, config, out / "run", watch=watch)

    best = load_checkpoint(out / "run" / "best.safetensors")
    load_into(model, best.tensors, out / "run" / "best.safetensors")
    model.tail.write_back(network)
    encoder, score = write_encoder(network, out / ENCODER, recipe.grid), model.score
    ConceptTable(tuple(words), encoder.hash, score.weight, score.bias, torch.logit(prior, eps=1e-5)).save(
        out / CONCEPTS
    )
    figures: dict[str, float] = best.state["figures"]
    (out / "figures.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return figures


def write_encoder(network: EfficientNetLite, path: Path, grid: int) -> GridEncoder:
    """The network as a file that an editor's images are encoded with."""
    pooling = area_pooling(network.config.side, grid)
    export_onnx(network, path, name="capedit", bits=Bits.FLOAT16, pooling=pooling)
    return GridEncoder(path)

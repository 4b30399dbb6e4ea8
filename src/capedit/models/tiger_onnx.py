"""TIger as ONNX files: `see.onnx` for images, and one `read` graph for each encoder.

A shared encoder serves all three modules from one file: which of them is asked for comes in as a number, and the heads
that are not wanted cost next to nothing. So the weights are stored once.
"""

import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from capedit.models.device import CPU, working_on
from capedit.models.tiger import Module, Tiger, TigerSight
from capedit.models.vilbert import TextInput, VisionInput
from capedit.models.weight_names import name_weights

OPSET = 17
SEE_INPUTS = ("features", "boxes", "there")
SEE_OUTPUTS = ("views", "mask", "concepts", "cells")
READ_INPUTS = ("ids", "there", "views", "mask", "concepts", "cells", "role", "rows", "columns")
READ_OUTPUTS = ("delete", "add", "match", "words", "support")


class _See(nn.Module):
    def __init__(self, tiger: Tiger) -> None:
        super().__init__()
        self.tiger = tiger

    def forward(self, features: Tensor, boxes: Tensor, there: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        sight = self.tiger.see(VisionInput(features, boxes, there))
        assert sight.mask is not None
        nothing = features.new_zeros(features.shape[0], 2, 0)
        concepts, cells = (nothing if part is None else part for part in (sight.concepts, sight.cells))
        return sight.views, sight.mask, concepts, cells


class _Read(nn.Module):
    """One encoder with the heads of all modules that use it; the outputs of the others are zeros."""

    def __init__(self, tiger: Tiger, trunk: str) -> None:
        super().__init__()
        self.tiger, self.trunk = tiger, trunk
        self.serves = set(Module) if tiger.config.shared else {Module(trunk)}

    def forward(
        self,
        ids: Tensor,
        there: Tensor,
        views: Tensor,
        mask: Tensor,
        concepts: Tensor,
        cells: Tensor,
        role: Tensor,
        rows: Tensor,
        columns: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        model = self.tiger
        sight = TigerSight(
            views,
            mask,
            None if model.config.concepts is None else concepts,
            None if model.config.grounding is None else cells,
        )
        text = TextInput(ids, there)
        vector, grounds = None if model.role is None else model.role(role), model.ground(text, sight)
        x = model.read(self.trunk, vector, text, sight, grounds)
        nothing = x.new_zeros(x.shape[0])
        match = model.matching(x, grounds) if Module.DELETE in self.serves else None
        words = model.words_at(x, sight, rows, columns) if Module.INSERT in self.serves else x.new_zeros(0, 0)
        return (
            self._tags(Module.DELETE, x, nothing),
            self._tags(Module.ADD, x, nothing),
            nothing if match is None else match,
            words,
            nothing if grounds is None else grounds.similarity,
        )

    def _tags(self, module: Module, x: Tensor, nothing: Tensor) -> Tensor:
        if module not in self.serves:
            return nothing
        tags: Tensor = self.tiger.taggers[module.value](x)
        return tags[..., 1] - tags[..., 0]


def export_tiger(model: Tiger, folder: Path) -> list[Path]:
    """Write the networks of a model into a folder; returns the files. The model is on the CPU afterwards."""
    with working_on(CPU):  # the files would name any other device
        return _export_all(model.cpu().eval(), folder)


def _export_all(model: Tiger, folder: Path) -> list[Path]:
    encoder = model.config.encoder
    features, boxes = torch.randn(2, 5, encoder.feature_width), torch.rand(2, 5, 5)
    see, there = _See(model), torch.ones(2, 5, dtype=torch.bool)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "see.onnx"]
    images = {name: {0: "images", 1: "tokens"} for name in SEE_INPUTS}
    seen_axes = {name: {0: "images"} for name in SEE_OUTPUTS}
    _export(see, (features, boxes, there), files[0], SEE_INPUTS, SEE_OUTPUTS, images | seen_axes)
    with torch.no_grad():
        views, mask, concepts, cells = see(features, boxes, there)
    width = views.dim() - 2 if encoder.vision_reads_text is False else 2  # where the number of visual tokens stands
    axes = {
        "ids": {0: "captions", 1: "length"},
        "there": {0: "captions", 1: "length"},
        "views": {0: "captions", width: "tokens"},
        "mask": {0: "captions", 1: "tokens"},
        "concepts": {0: "captions"},
        "cells": {0: "captions", 1: "tokens"},
        "rows": {0: "masks"},
        "columns": {0: "masks"},
        "delete": {0: "captions", 1: "length"},
        "add": {0: "captions", 1: "length"},
        "match": {0: "captions"},
        "words": {0: "masks"},
        "support": {0: "captions", 1: "length", 2: "tokens"} if model.config.grounding else {0: "captions"},
    }
    ids, text_there = torch.tensor([[2, 5, 6, 3], [2, 7, 3, 0]]), torch.tensor([[True] * 4, [True] * 3 + [False]])
    place = torch.tensor([1])
    for trunk in model.encoders:
        files.append(folder / f"read-{trunk}.onnx")
        inputs = (ids, text_there, views, mask, concepts, cells, torch.tensor(0), place * 0, place)
        _export(_Read(model, trunk), inputs, files[-1], READ_INPUTS, READ_OUTPUTS, axes)
    return files


def _export(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    path: Path,
    input_names: tuple[str, ...],
    output_names: tuple[str, ...],
    axes: dict[str, dict[int, str]],
) -> None:
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the tracer warns of shapes that are meant to be constant
        torch.onnx.export(
            module.eval(),
            inputs,
            str(path),
            input_names=list(input_names),
            output_names=list(output_names),
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
    name_weights(path, module)

"""The published network once more, written straight from the published names: a checkpoint, and what it computes.

Nothing here is shared with `capedit.models`: it is what an import is held against.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from capedit.models.tiger import TigerConfig
from capedit.models.vilbert import StreamConfig, VilbertConfig

PIECES = "[PAD] table a dog [UNK] [CLS] [SEP] [MASK] cat ##s sofa on the bi ##cy ##clist red lies".split()
TINY = VilbertConfig(
    vocabulary=len(PIECES),
    text=StreamConfig(width=16, layers=4, heads=4, inner=24),
    vision=StreamConfig(width=12, layers=2, heads=3, inner=10),
    co_width=8,
    co_heads=2,
    feature_width=14,
    positions=40,
)
SHAPE = asdict(TigerConfig(TINY))
State = dict[str, Tensor]


def write_vocabulary(folder: Path) -> Path:
    path = folder / "vocab.txt"
    path.write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    return path


def checkpoint(seed: int) -> State:
    """Random weights under the names of a published file, unused parts and all."""
    chance = torch.Generator().manual_seed(seed)
    state: State = {}

    def table(name: str, rows: int, width: int) -> None:
        state[f"{name}.weight"] = torch.randn(rows, width, generator=chance) * 0.5

    def linear(name: str, inputs: int, outputs: int) -> None:
        table(name, outputs, inputs)
        state[f"{name}.bias"] = torch.randn(outputs, generator=chance) * 0.3

    def norm(name: str, width: int) -> None:
        state[f"{name}.weight"] = 1 + 0.3 * torch.randn(width, generator=chance)
        state[f"{name}.bias"] = 0.3 * torch.randn(width, generator=chance)

    def stream(name: str, shape: StreamConfig, layers: int) -> None:
        for number in range(layers):
            layer = f"{name}.{number}"
            for part in ("query", "key", "value"):
                linear(f"{layer}.attention.self.{part}", shape.width, shape.width)
            linear(f"{layer}.attention.output.dense", shape.width, shape.width)
            norm(f"{layer}.attention.output.LayerNorm", shape.width)
            thought(f"{layer}.intermediate", f"{layer}.output", shape)

    def thought(widen: str, back: str, shape: StreamConfig) -> None:
        linear(f"{widen}.dense", shape.width, shape.inner)
        linear(f"{back}.dense", shape.inner, shape.width)
        norm(f"{back}.LayerNorm", shape.width)

    text, vision, co = TINY.text, TINY.vision, TINY.co_width
    table("bert.embeddings.word_embeddings", TINY.vocabulary, text.width)
    table("bert.embeddings.position_embeddings", TINY.positions, text.width)
    table("bert.embeddings.token_type_embeddings", TINY.segments, text.width)
    norm("bert.embeddings.LayerNorm", text.width)
    linear("bert.v_embeddings.image_embeddings", TINY.feature_width, vision.width)
    linear("bert.v_embeddings.image_location_embeddings", 5, vision.width)
    norm("bert.v_embeddings.LayerNorm", vision.width)
    stream("bert.encoder.layer", text, text.layers)
    stream("bert.encoder.v_layer", vision, vision.layers)
    for number in range(vision.layers):
        layer = f"bert.encoder.c_layer.{number}"
        for part in ("query", "key", "value"):
            linear(f"{layer}.biattention.{part}1", vision.width, co)
            linear(f"{layer}.biattention.{part}2", text.width, co)
        for part in ("dense", "q_dense"):
            linear(f"{layer}.biOutput.{part}1", co, vision.width)
            linear(f"{layer}.biOutput.{part}2", co, text.width)
        norm(f"{layer}.biOutput.LayerNorm1", vision.width)
        norm(f"{layer}.biOutput.LayerNorm2", text.width)
        thought(f"{layer}.v_intermediate", f"{layer}.v_output", vision)
        thought(f"{layer}.t_intermediate", f"{layer}.t_output", text)
    linear("bert.t_pooler.dense", text.width, co)
    linear("bert.v_pooler.dense", vision.width, co)
    for head in ("predictions", "tagger_predictions"):
        linear(f"cls.{head}.transform.dense", text.width, text.width)
        norm(f"cls.{head}.transform.LayerNorm", text.width)
    state["cls.predictions.bias"] = torch.randn(TINY.vocabulary, generator=chance)
    state["cls.predictions.decoder.weight"] = state["bert.embeddings.word_embeddings.weight"].clone()
    state["cls.tagger_predictions.bias"] = torch.randn(2, generator=chance)
    table("cls.tagger_predictions.decoder", 2, text.width)
    linear("cls.bi_seq_relationship", co, 2)
    linear("cls.imagePredictions.transform.dense", vision.width, vision.width)
    norm("cls.imagePredictions.transform.LayerNorm", vision.width)
    linear("cls.imagePredictions.decoder", vision.width, 7)
    return state


def tag_scores(state: State, ids: Tensor, there: Tensor, features: Tensor, boxes: Tensor) -> Tensor:
    x = _transform(state, "cls.tagger_predictions", _text_stream(state, ids, there, features, boxes))
    return x @ state["cls.tagger_predictions.decoder.weight"].T + state["cls.tagger_predictions.bias"]


def word_scores(state: State, ids: Tensor, there: Tensor, features: Tensor, boxes: Tensor) -> Tensor:
    x = _transform(state, "cls.predictions", _text_stream(state, ids, there, features, boxes))
    return x @ state["cls.predictions.decoder.weight"].T + state["cls.predictions.bias"]


def _text_stream(state: State, ids: Tensor, there: Tensor, features: Tensor, boxes: Tensor) -> Tensor:
    embeddings = "bert.embeddings"
    x = state[f"{embeddings}.word_embeddings.weight"][ids]
    x = x + state[f"{embeddings}.position_embeddings.weight"][: ids.shape[1]]
    x = _norm(state, f"{embeddings}.LayerNorm", x + state[f"{embeddings}.token_type_embeddings.weight"][0])
    y = _linear(state, "bert.v_embeddings.image_embeddings", features)
    y = _norm(
        state, "bert.v_embeddings.LayerNorm", y + _linear(state, "bert.v_embeddings.image_location_embeddings", boxes)
    )
    hidden = (1 - there[:, None, None, :].float()) * -10000.0
    all_seen = torch.zeros(1, 1, 1, features.shape[1])
    text, vision = TINY.text, TINY.vision
    alone = text.layers - vision.layers
    for number in range(alone):
        x = _layer(state, f"bert.encoder.layer.{number}", x, hidden, text.heads)
    for number in range(vision.layers):
        y, x = _connection(state, f"bert.encoder.c_layer.{number}", y, all_seen, x, hidden)
        y = _layer(state, f"bert.encoder.v_layer.{number}", y, all_seen, vision.heads)
        x = _layer(state, f"bert.encoder.layer.{alone + number}", x, hidden, text.heads)
    return x


def _connection(
    state: State, name: str, y: Tensor, y_hidden: Tensor, x: Tensor, x_hidden: Tensor
) -> tuple[Tensor, Tensor]:
    query1, key1, value1 = (_linear(state, f"{name}.biattention.{p}1", y) for p in ("query", "key", "value"))
    query2, key2, value2 = (_linear(state, f"{name}.biattention.{p}2", x) for p in ("query", "key", "value"))
    text_saw = _mix(query2, key1, value1, y_hidden, TINY.co_heads)
    vision_saw = _mix(query1, key2, value2, x_hidden, TINY.co_heads)
    y = _norm(state, f"{name}.biOutput.LayerNorm1", _linear(state, f"{name}.biOutput.dense1", vision_saw) + y)
    x = _norm(state, f"{name}.biOutput.LayerNorm2", _linear(state, f"{name}.biOutput.dense2", text_saw) + x)
    y = _think(state, f"{name}.v_intermediate", f"{name}.v_output", y)
    return y, _think(state, f"{name}.t_intermediate", f"{name}.t_output", x)


def _layer(state: State, name: str, x: Tensor, hidden: Tensor, heads: int) -> Tensor:
    query, key, value = (_linear(state, f"{name}.attention.self.{p}", x) for p in ("query", "key", "value"))
    mixed = _linear(state, f"{name}.attention.output.dense", _mix(query, key, value, hidden, heads))
    x = _norm(state, f"{name}.attention.output.LayerNorm", mixed + x)
    return _think(state, f"{name}.intermediate", f"{name}.output", x)


def _think(state: State, widen: str, back: str, x: Tensor) -> Tensor:
    inner = _gelu(_linear(state, f"{widen}.dense", x))
    return _norm(state, f"{back}.LayerNorm", _linear(state, f"{back}.dense", inner) + x)


def _transform(state: State, name: str, x: Tensor) -> Tensor:
    return _norm(state, f"{name}.transform.LayerNorm", _gelu(_linear(state, f"{name}.transform.dense", x)))


def _mix(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor, heads: int) -> Tensor:
    query, key, value = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (query, key, value))
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) + hidden
    return (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)


def _linear(state: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def _norm(state: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-12).sqrt()
    return state[f"{name}.weight"] * scaled + state[f"{name}.bias"]


def _gelu(x: Tensor) -> Tensor:
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))

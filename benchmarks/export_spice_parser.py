"""Write the trained SPICE parser as a small ONNX file: weights kept in 8 bits, computed in 32.

    python benchmarks/export_spice_parser.py RUN src/capedit/metrics/spice

The graph is spelled out by hand rather than traced: it is short, any batch and length fit it, and the 8-bit weights
are widened once, when the session starts.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from capedit.metrics.spice.vocabulary import FEATURES
from train_spice_parser import load_average

Array = npt.NDArray[np.float32]


class GraphWriter:
    """Nodes and initializers in order, with fresh names."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def constant(self, value: npt.NDArray[np.generic]) -> str:
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names[0]

    def eight_bits(self, weights: Array) -> tuple[str, str]:
        """(numbers, scales): one scale for each row of the last axis."""
        scale = np.maximum(np.abs(weights).max(-1, keepdims=True), 1e-8).astype(np.float32) / 127
        return self.constant(np.round(weights / scale).astype(np.int8)), self.constant(scale)

    def weights(self, weights: Array) -> str:
        numbers, scale = self.eight_bits(weights)
        return self.add("Mul", self.add("Cast", numbers, to=TensorProto.FLOAT), scale)

    def lookup(self, table: Array, ids: str) -> str:
        numbers, scale = self.eight_bits(table)
        rows = self.add("Cast", self.add("Gather", numbers, ids), to=TensorProto.FLOAT)
        return self.add("Mul", rows, self.add("Gather", scale, ids))

    def linear(self, x: str, layer: dict[str, Array]) -> str:
        """x @ weight.T + bias"""
        weight = self.add("Transpose", self.weights(layer["weight"]), perm=[1, 0])
        return self.add("Add", self.add("MatMul", x, weight), self.constant(layer["bias"]))


def lstm_weights(layer: dict[str, Array], kind: str) -> Array:
    """(2, 4 H, ...): both directions, gates from PyTorch's order (input, forget, cell, output) to ONNX's."""
    sides = []
    for side in ("", "_reverse"):
        i, f, g, o = np.split(layer[f"{kind}_l0{side}"], 4)
        sides.append(np.concatenate([i, o, f, g]))
    return np.stack(sides)


def graph_of(state: dict[str, Array], layers: int, hidden: int, trained_words: int, relations: int) -> onnx.ModelProto:
    def part(name: str) -> dict[str, Array]:
        return {key.removeprefix(name + "."): value for key, value in state.items() if key.startswith(name + ".")}

    g = GraphWriter()
    columns = [g.add("Gather", "ids", g.constant(np.array(k)), axis=2) for k in range(FEATURES)]
    learnt = np.repeat(state["word.weight"][:1], len(state["text_vectors"]), 0)
    learnt[:trained_words] = state["word.weight"]
    tables = (state["text_vectors"] + learnt, *(state[f"{n}.weight"] for n in ("ending3", "ending2", "kind")))
    x = g.add("Concat", *(g.lookup(t, c) for t, c in zip(tables, columns, strict=True)), axis=-1)
    x = g.add("Transpose", x, perm=[1, 0, 2])  # (n, B, D)
    for k in range(layers):
        layer = part(f"rnn.{k}")
        bias = np.concatenate([lstm_weights(layer, "bias_ih"), lstm_weights(layer, "bias_hh")], 1)
        inputs = (g.weights(lstm_weights(layer, "weight_ih")), g.weights(lstm_weights(layer, "weight_hh")))
        x = g.add("LSTM", x, *inputs, g.constant(bias), hidden_size=hidden, direction="bidirectional")
        x = g.add("Reshape", g.add("Transpose", x, perm=[0, 2, 1, 3]), g.ints(0, 0, 2 * hidden))
    x = g.add("Transpose", x, perm=[1, 0, 2])  # (B, n, D)
    tags = g.add("ArgMax", g.linear(x, part("tag")), axis=-1, keepdims=0)
    batch = g.add("Slice", g.add("Shape", x), g.ints(0), g.ints(1))
    root = g.add("Expand", g.constant(state["root"][None, None]), g.add("Concat", batch, g.ints(1, 2 * hidden), axis=0))
    above = g.add("Concat", root, x, axis=1)  # (B, n + 1, D)

    def side(name: str, y: str, ones: bool) -> str:
        y = g.add("LeakyRelu", g.linear(y, part(name)), alpha=0.1)
        return g.add("Pad", y, g.ints(0, 0, 0, 0, 0, 1), g.constant(np.array(1.0, dtype=np.float32))) if ones else y

    arcs = g.add("MatMul", side("arc_child", x, True), g.weights(state["arc"]))
    arcs = g.add("MatMul", arcs, g.add("Transpose", side("arc_head", above, False), perm=[0, 2, 1]))
    bilinear = state["relation"]  # (R, child + 1, head + 1)
    flat = g.weights(bilinear.transpose(1, 0, 2).reshape(bilinear.shape[1], -1))
    pairs = g.add("MatMul", side("relation_child", x, True), flat)  # (B, n, R * (head + 1))
    pairs = g.add("Reshape", pairs, g.ints(0, -1, bilinear.shape[2]))  # (B, n * R, head + 1)
    pairs = g.add("MatMul", pairs, g.add("Transpose", side("relation_head", above, True), perm=[0, 2, 1]))
    # (B, n * R, n + 1) -> (B, n, R, n + 1)
    shape = g.add("Concat", g.add("Shape", x, end=2), g.ints(relations, -1), axis=0)
    names = g.add("LogSoftmax", g.add("Reshape", pairs, shape), axis=2)
    best = g.add("ReduceMax", names, g.ints(2), keepdims=0)
    scores = g.add("Add", g.add("LogSoftmax", arcs, axis=-1), best)
    outputs = []
    heads = ["captions", "words", "heads"]
    for name, value, kind, axes in (
        ("tags", tags, TensorProto.INT64, heads[:2]),
        ("scores", scores, TensorProto.FLOAT, heads),
        ("relations", g.add("ArgMax", names, axis=2, keepdims=0), TensorProto.INT64, heads),
    ):
        g.nodes.append(helper.make_node("Identity", [value], [name]))
        outputs.append(helper.make_tensor_value_info(name, kind, axes))
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["captions", "words", FEATURES])
    graph = helper.make_graph(g.nodes, "spice-parser", [ids], outputs, g.initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("run", type=Path)
    arguments.add_argument("folder", type=Path)
    given = arguments.parse_args()
    parser, vocabulary = load_average(given.run)
    state = {name: value.numpy() for name, value in parser.state_dict().items() if isinstance(value, torch.Tensor)}
    shape = parser.shape
    model = graph_of(state, shape.layers, shape.hidden, parser.trained_words, len(vocabulary.relations))
    onnx.checker.check_model(model)
    target = given.folder / "parser.onnx"
    onnx.save(model, str(target))
    shutil.copy(given.run / "vocabulary.json", given.folder / "vocabulary.json")
    print(f"{target}: {target.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()

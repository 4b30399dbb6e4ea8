"""Smaller ONNX files: weights in 16 bits, or matrix products in 8."""

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from capedit.models.bits import Bits as Bits

LARGE = 1024
"""Smaller tensors stay as they are: there is nothing to gain, and norms and biases are best left exact."""


def shrink(path: Path, bits: Bits) -> None:
    """Rewrite an ONNX file in place."""
    if bits is Bits.FLOAT16:
        store_in_16_bits(path)
    elif bits is Bits.INT8:
        compute_in_8_bits(path)


def store_in_16_bits(path: Path) -> None:
    """Keep weights as float16; the runtime widens them once, when it loads the file, and computes in float32."""
    model = onnx.load(path)
    casts = []
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and np.prod(tensor.dims) >= LARGE:
            values = numpy_helper.to_array(tensor)
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}.stored"))
            casts.append(helper.make_node("Cast", [f"{name}.stored"], [name], to=TensorProto.FLOAT))
    del model.graph.value_info[:]  # the quantiser's guesses at shapes, which do not know that captions vary
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, path)


def compute_in_8_bits(path: Path) -> None:
    """Matrix products with fixed weights in 8 bits, scales by output channel; activations are scaled as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    wide = path.with_suffix(".wide.onnx")
    path.replace(wide)
    try:
        quantize_dynamic(wide, path, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul"])
        _look_up_in_8_bits(path)
        _keep_tables_once(path)
        store_in_16_bits(path)  # what is neither
    finally:
        wide.unlink()


def _look_up_in_8_bits(path: Path) -> None:
    """Embedding tables in 8 bits, a scale for each row; only the rows that are looked up are widened."""
    model = onnx.load(path)
    graph = model.graph
    tables = {tensor.name: tensor for tensor in graph.initializer if _is_table(tensor, graph)}
    nodes = []
    for node in graph.node:
        if node.op_type != "Gather" or node.input[0] not in tables:
            nodes.append(node)
            continue
        table, ids, rows = node.input[0], node.input[1], node.output[0]
        nodes += [
            helper.make_node("Gather", [f"{table}.numbers", ids], [f"{rows}.numbers"]),
            helper.make_node("Gather", [f"{table}.scales", ids], [f"{rows}.scales"]),
            helper.make_node("Cast", [f"{rows}.numbers"], [f"{rows}.wide"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"{rows}.wide", f"{rows}.scales"], [rows]),
        ]
    for name, tensor in tables.items():
        values = numpy_helper.to_array(tensor)
        scales = np.maximum(np.abs(values).max(1, keepdims=True), 1e-8).astype(np.float32) / 127
        numbers = np.round(values / scales).astype(np.int8)
        graph.initializer.remove(tensor)
        graph.initializer.extend(
            [numpy_helper.from_array(numbers, f"{name}.numbers"), numpy_helper.from_array(scales, f"{name}.scales")]
        )
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, path)


def _keep_tables_once(path: Path) -> None:
    """A table that words are looked up in and also told by: as a matrix it is turned on its side, not kept again.

    Both have a scale for each word, so they hold the same numbers; the runtime turns the table once, when it loads it.
    """
    model = onnx.load(path)
    graph = model.graph
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer if _is_numbers(tensor)}
    tables = {name: numbers for name, numbers in held.items() if name.endswith(".numbers")}
    turns = []
    for tensor in [each for each in graph.initializer if each.name in held and each.name not in tables]:
        for name, numbers in tables.items():
            if _alike(held[tensor.name], numbers.T):
                graph.initializer.remove(tensor)
                turns.append(helper.make_node("Transpose", [name], [tensor.name], perm=[1, 0]))
                break
    nodes = [*turns, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, path)


def _is_numbers(tensor: onnx.TensorProto) -> bool:
    return tensor.data_type == TensorProto.INT8 and len(tensor.dims) == 2


def _alike(one: NDArray[np.int8], other: NDArray[np.int8]) -> bool:
    """Whether two matrices differ in nothing but how a number between two was rounded."""
    return one.shape == other.shape and int(np.abs(one.astype(np.int16) - other).max(initial=0)) <= 1


def _is_table(tensor: onnx.TensorProto, graph: onnx.GraphProto) -> bool:
    """Whether a tensor is only ever looked up by row."""
    if tensor.data_type != TensorProto.FLOAT or len(tensor.dims) != 2 or np.prod(tensor.dims) < LARGE:
        return False
    users = [node for node in graph.node if tensor.name in node.input]
    return bool(users) and all(
        node.op_type == "Gather"
        and node.input[0] == tensor.name
        and all(attribute.i == 0 for attribute in node.attribute if attribute.name == "axis")
        for node in users
    )

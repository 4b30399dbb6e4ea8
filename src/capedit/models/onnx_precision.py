"""Smaller ONNX files: weights in 16 bits or in 8, all of them computed with in 32.

Products of matrices in 8 bits would be faster on some processors, but not the same on all: those without instructions
for them (VNNI) let sums overflow. And as activations are scaled by the largest of a batch, what becomes of a caption
would depend on its neighbours.
"""

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from capedit.models.bits import Bits as Bits

LARGE = 1024
"""Smaller tensors stay as they are: there is nothing to gain, and norms and biases are best left exact."""
Values = NDArray[np.float32]


def shrink(path: Path, bits: Bits) -> None:
    """Rewrite an ONNX file in place. The runtime widens what is stored so once, when it loads the file."""
    if bits is Bits.FLOAT32:
        return
    model = onnx.load(path)
    if bits is Bits.INT8:
        _store_tables_in_8_bits(model.graph)
        _store_matrices_in_8_bits(model.graph)
    _store_in_16_bits(model.graph)  # all, or what is left
    onnx.save(model, path)


def _store_in_16_bits(graph: onnx.GraphProto) -> None:
    casts = []
    for tensor in _large(graph):
        values, name = numpy_helper.to_array(tensor), tensor.name
        tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}.stored"))
        casts.append(helper.make_node("Cast", [f"{name}.stored"], [name], to=TensorProto.FLOAT))
    _put_first(graph, casts)


def _store_tables_in_8_bits(graph: onnx.GraphProto) -> None:
    """Tables that words are looked up in, with a scale for each row; only the rows that are looked up are widened.

    A matrix that is such a table turned on its side (words are told by the table that they are looked up in) is not
    kept again.
    """
    turned = list[onnx.NodeProto]()
    for tensor in [each for each in _large(graph) if _is_table(each, graph)]:
        table, name = numpy_helper.to_array(tensor), tensor.name
        _replace_in_8_bits(graph, tensor, (1,))
        for twin in [each for each in _large(graph) if tuple(each.dims) == table.T.shape]:
            if np.array_equal(numpy_helper.to_array(twin), table.T):
                graph.initializer.remove(twin)
                turned += _widening(name, f"{twin.name}.turned")
                turned.append(helper.make_node("Transpose", [f"{twin.name}.turned"], [twin.name], perm=[1, 0]))
        nodes = list[onnx.NodeProto]()
        for node in graph.node:
            nodes += _looked_up(node) if name in node.input else [node]
        del graph.node[:]
        graph.node.extend(nodes)
    _put_first(graph, turned)


def _looked_up(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """A look-up in a table of 8-bit numbers and their scales."""
    table, ids, rows = node.input[0], node.input[1], node.output[0]
    return [
        helper.make_node("Gather", [f"{table}.numbers", ids], [f"{rows}.numbers"]),
        helper.make_node("Gather", [f"{table}.scales", ids], [f"{rows}.scales"]),
        *_widening(rows, rows),
    ]


def _store_matrices_in_8_bits(graph: onnx.GraphProto) -> None:
    """Matrices of products and kernels of convolutions, with a scale for each output."""
    widened = list[onnx.NodeProto]()
    for tensor in _large(graph):
        found = {_summed(node, tensor) for node in graph.node if tensor.name in node.input}
        if len(found) == 1 and (axes := found.pop()):
            name = tensor.name
            _replace_in_8_bits(graph, tensor, axes)
            widened += _widening(name, name)
    _put_first(graph, widened)


def _summed(node: onnx.NodeProto, tensor: onnx.TensorProto) -> tuple[int, ...]:
    """The axes of a product's matrix, or of a convolution's kernels, over which it sums; none if this is no such."""
    if node.op_type not in ("MatMul", "Gemm", "Conv") or node.input[1] != tensor.name:
        return ()
    if node.op_type == "Conv":
        return tuple(range(1, len(tensor.dims)))
    turned = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
    return (1,) if turned else (0,)


def _replace_in_8_bits(graph: onnx.GraphProto, tensor: onnx.TensorProto, axes: tuple[int, ...]) -> None:
    """Numbers and scales in a tensor's stead; all numbers along the axes share a scale."""
    values: Values = numpy_helper.to_array(tensor)
    scales = np.maximum(np.abs(values).max(axes, keepdims=True), 1e-8).astype(np.float32) / 127
    numbers = np.round(values / scales).astype(np.int8)
    name = tensor.name
    graph.initializer.remove(tensor)
    graph.initializer.extend(
        [numpy_helper.from_array(numbers, f"{name}.numbers"), numpy_helper.from_array(scales, f"{name}.scales")]
    )


def _widening(stored: str, name: str) -> list[onnx.NodeProto]:
    """What makes numbers and scales a tensor again."""
    return [
        helper.make_node("Cast", [f"{stored}.numbers"], [f"{name}.wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [f"{name}.wide", f"{stored}.scales"], [name]),
    ]


def stored_values(graph: onnx.GraphProto) -> dict[str, Values]:
    """What `shrink` stored in fewer bits, and all else that is stored, in 32 bits under the names it is used by."""
    values = {each.name: numpy_helper.to_array(each).astype(np.float32) for each in graph.initializer}
    for node in graph.node:
        if all(name in values for name in node.input):
            if node.op_type == "Cast":
                values[node.output[0]] = values[node.input[0]]
            elif node.op_type == "Mul":
                values[node.output[0]] = values[node.input[0]] * values[node.input[1]]
    return values


def _put_first(graph: onnx.GraphProto, nodes: list[onnx.NodeProto]) -> None:
    after = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *after])


def _large(graph: onnx.GraphProto) -> list[onnx.TensorProto]:
    return [each for each in graph.initializer if each.data_type == TensorProto.FLOAT and np.prod(each.dims) >= LARGE]


def _is_table(tensor: onnx.TensorProto, graph: onnx.GraphProto) -> bool:
    """Whether a tensor is only ever looked up by row."""
    users = [node for node in graph.node if tensor.name in node.input]
    return (
        len(tensor.dims) == 2
        and bool(users)
        and all(
            node.op_type == "Gather"
            and node.input[0] == tensor.name
            and all(attribute.i == 0 for attribute in node.attribute if attribute.name == "axis")
            for node in users
        )
    )

"""Smaller ONNX files: weights in 16 bits, or matrix products in 8."""

from enum import StrEnum
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LARGE = 1024
"""Smaller tensors stay as they are: there is nothing to gain, and norms and biases are best left exact."""


class Bits(StrEnum):
    """How weights are kept."""

    FLOAT32 = "fp32"
    FLOAT16 = "fp16"
    INT8 = "int8"


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
        store_in_16_bits(path)  # what is no matrix product: the embedding tables
    finally:
        wide.unlink()

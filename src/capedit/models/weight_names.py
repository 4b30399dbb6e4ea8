"""Weights in ONNX files under the names that torch knows them by, so that a model folder can be trained further.

The tracer keeps the names of most weights. Those of products it turns on their side, and of some it keeps single rows
or numbers, all without a name; these get one here, which says what was done to them. What is stored in few bits
(`onnx_precision`) is widened when it is read back.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import nn

from capedit.models.device import array

TURNED = ".turned"
FEW = 4
"""Weights of fewer rows (or numbers) than this are also known by their rows."""
Weights = dict[str, NDArray[np.float32]]
_ANONYMOUS = "onnx::"
_ELEMENT = re.compile(r"(.+)\[(\d+)\]")


def name_weights(path: Path, module: nn.Module) -> None:
    """Name the nameless weights in the file of a module, where they can be told by their values."""
    model = onnx.load(path)
    graph, forms = model.graph, _forms(module)
    taken = {tensor.name for tensor in graph.initializer}
    renamed = {}
    for tensor in graph.initializer:
        name = forms.get(numpy_helper.to_array(tensor).tobytes())
        if tensor.name.startswith(_ANONYMOUS) and name is not None and name not in taken:
            renamed[tensor.name] = name
            taken.add(name)
            tensor.name = name
    for node in graph.node:
        for at, name in enumerate(node.input):
            node.input[at] = renamed.get(name, name)
    onnx.save(model, path)


def _forms(module: nn.Module) -> dict[bytes, str]:
    """The values in which a weight may be found, and what to call it then."""
    forms: dict[bytes, str] = {}
    for name, parameter in module.named_parameters():
        values = array(parameter.detach())
        forms.setdefault(values.tobytes(), name)
        if values.ndim == 2:
            forms.setdefault(values.T.tobytes(), name + TURNED)
        if values.ndim and len(values) < FEW:
            for at, value in enumerate(values):
                forms.setdefault(value.tobytes(), f"{name}[{at}]")
    return forms


def read_weights(paths: Iterable[Path], shapes: Mapping[str, tuple[int, ...]]) -> Weights:
    """The weights of these names and shapes, as far as they are in the files."""
    found: Weights = {}
    for path in paths:
        for name, values in _stored(onnx.load(path).graph):
            if name.endswith(TURNED):
                name, values = name.removesuffix(TURNED), values.T
            element = _ELEMENT.fullmatch(name)
            if element and element[1] in shapes:
                found.setdefault(element[1], np.zeros(shapes[element[1]], np.float32))[int(element[2])] = values
            elif name in shapes:
                found[name] = values.reshape(shapes[name])
    return found


def _stored(graph: onnx.GraphProto) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """All tensors of a file, widened, by their names."""
    tensors = {tensor.name.removesuffix(".stored"): numpy_helper.to_array(tensor) for tensor in graph.initializer}
    twins = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Identity"}  # equal weights
    for name, values in tensors.items():
        if name.endswith(".numbers"):
            name = name.removesuffix(".numbers")
            values = values.astype(np.float32) * tensors[f"{name}.scales"]
        yield name, values.astype(np.float32)
    for name, twin in twins.items():
        if twin in tensors:
            yield name, tensors[twin].astype(np.float32)

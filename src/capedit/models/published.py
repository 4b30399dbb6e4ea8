"""The checkpoints that TIger's authors published, one a module: what every tensor in them is, and how they are read.

Their names are those of ViLBERT. In a co-attention layer 1 stands for vision and 2 for text. Each of the three files
holds a whole network with all heads, of which editing needs one; nothing that could matter is passed over in silence.
"""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor

from capedit.errors import CapeditError
from capedit.models.tensor_files import read_tensors
from capedit.models.tiger import Module, Tiger, TigerConfig

_EMBEDDINGS = {
    "embed_text.word": "bert.embeddings.word_embeddings",
    "embed_text.position": "bert.embeddings.position_embeddings",
    "embed_text.segment": "bert.embeddings.token_type_embeddings",
    "embed_text.norm": "bert.embeddings.LayerNorm",
    "embed_vision.feature": "bert.v_embeddings.image_embeddings",
    "embed_vision.location": "bert.v_embeddings.image_location_embeddings",
    "embed_vision.norm": "bert.v_embeddings.LayerNorm",
}
_LAYER = {
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attended.dense": "attention.output.dense",
    "attended.norm": "attention.output.LayerNorm",
    "feed_forward.widen": "intermediate.dense",
    "feed_forward.output.dense": "output.dense",
    "feed_forward.output.norm": "output.LayerNorm",
}
_TEXT_READS = {
    "attention.query": "biattention.query2",
    "attention.key": "biattention.key1",
    "attention.value": "biattention.value1",
    "attended.dense": "biOutput.dense2",
    "attended.norm": "biOutput.LayerNorm2",
    "feed_forward.widen": "t_intermediate.dense",
    "feed_forward.output.dense": "t_output.dense",
    "feed_forward.output.norm": "t_output.LayerNorm",
}
_VISION_READS = {
    "attention.query": "biattention.query1",
    "attention.key": "biattention.key2",
    "attention.value": "biattention.value2",
    "attended.dense": "biOutput.dense1",
    "attended.norm": "biOutput.LayerNorm1",
    "feed_forward.widen": "v_intermediate.dense",
    "feed_forward.output.dense": "v_output.dense",
    "feed_forward.output.norm": "v_output.LayerNorm",
}
_STACKS = {
    "text": ("bert.encoder.layer", _LAYER),
    "vision": ("bert.encoder.v_layer", _LAYER),
    "text_reads": ("bert.encoder.c_layer", _TEXT_READS),
    "vision_reads": ("bert.encoder.c_layer", _VISION_READS),
}
_TAG_HEAD = {
    "layers.0.weight": "cls.tagger_predictions.transform.dense.weight",
    "layers.0.bias": "cls.tagger_predictions.transform.dense.bias",
    "layers.2.weight": "cls.tagger_predictions.transform.LayerNorm.weight",
    "layers.2.bias": "cls.tagger_predictions.transform.LayerNorm.bias",
    "layers.3.weight": "cls.tagger_predictions.decoder.weight",
    "layers.3.bias": "cls.tagger_predictions.bias",
}
_WORD_HEAD = {
    "transform.0.weight": "cls.predictions.transform.dense.weight",
    "transform.0.bias": "cls.predictions.transform.dense.bias",
    "transform.2.weight": "cls.predictions.transform.LayerNorm.weight",
    "transform.2.bias": "cls.predictions.transform.LayerNorm.bias",
    "bias": "cls.predictions.bias",
}
_TABLE, _DECODER = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"


@dataclass(frozen=True)
class Imported:
    """A published network, and what became of its tensors."""

    model: Tiger
    used: int
    """Tensors that went into the model."""
    unused: Mapping[str, int]
    """How many did not, by what they are."""


def import_published(files: Mapping[Module, Path], config: TigerConfig, rows: Sequence[int]) -> Imported:
    """Read the three checkpoints into one model of this shape.

    `rows` tells the order of word pieces wanted, by their rows in the published table: a vocabulary here puts its
    special tokens first, and BERT's has them at 0 and 100 to 103.
    """
    if config != TigerConfig(config.encoder):
        raise CapeditError("the published network has three encoders, and neither concepts, grounding nor matching")
    if sorted(rows) != list(range(config.encoder.vocabulary)):
        raise CapeditError(f"the vocabulary has {len(rows)} pieces, the network {config.encoder.vocabulary}")
    with torch.device("meta"):  # no memory for weights that are thrown away at once
        model = Tiger(config)
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
    order, found, unused = torch.tensor(rows), dict[str, Tensor](), dict[str, int]()
    for module in Module:
        path = files[module]
        left = read_checkpoint(path)
        if module is Module.INSERT:
            _check_tie(left, path)
        for ours, theirs in _names(model, module):
            if theirs not in left:
                raise CapeditError(f"{path}: {theirs} is missing")
            tensor = left.pop(theirs).float()
            if tensor.shape != shapes[ours]:
                raise CapeditError(f"{path}: {theirs} is {_size(tensor.shape)}, expected {_size(shapes[ours])}")
            found[ours] = tensor[order] if theirs in (_TABLE, "cls.predictions.bias") else tensor
        for name in left:
            reason = _why_unused(name, module, config)
            if reason is None:
                raise CapeditError(f"{path}: {name} is not known to belong to a {module.value} module of TIger")
            unused[reason] = unused.get(reason, 0) + 1
    model.load_state_dict(found, assign=True)
    return Imported(model.eval(), len(found), unused)


def read_checkpoint(path: Path) -> dict[str, Tensor]:
    """The named tensors of a safetensors or torch file. Nothing in the file is executed, whoever wrote it."""
    try:
        if path.suffix == ".safetensors":
            _, state = read_tensors(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = str(error).splitlines()[0]
        raise CapeditError(f"{path}: refused, for it holds more than tensors or is no torch file ({reason})") from error
    except (OSError, SafetensorError, RuntimeError, ValueError, LookupError, EOFError, AttributeError) as error:
        raise CapeditError(f"{path}: cannot be read as a checkpoint ({error})") from error
    if not isinstance(state, dict) or not state or not all(isinstance(tensor, Tensor) for tensor in state.values()):
        raise CapeditError(f"{path}: expected named tensors and nothing else")
    wrapped = all(str(name).startswith("module.") for name in state)  # saved from several GPUs
    return {str(name).removeprefix("module.") if wrapped else str(name): tensor for name, tensor in state.items()}


def _names(model: Tiger, module: Module) -> Iterator[tuple[str, str]]:
    """Every tensor of a module: its name in our model, and in the published file."""
    prefix = f"encoders.{module.value}."
    for name in model.encoder(module).state_dict():
        yield prefix + name, _encoder_name(name)
    if module is Module.INSERT:
        yield from ((f"words.{ours}", theirs) for ours, theirs in _WORD_HEAD.items())
    else:
        yield from ((f"taggers.{module.value}.{ours}", theirs) for ours, theirs in _TAG_HEAD.items())


def _encoder_name(name: str) -> str:
    part, leaf = name.rsplit(".", 1)
    if part in _EMBEDDINGS:
        return f"{_EMBEDDINGS[part]}.{leaf}"
    stack, number, inside = part.split(".", 2)
    published, names = _STACKS[stack]
    return f"{published}.{number}.{names[inside]}.{leaf}"


def _why_unused(name: str, module: Module, config: TigerConfig) -> str | None:
    """Why no output of a module depends on a tensor; None if that is not known."""
    last = config.encoder.connections - 1
    last_reader = {f"bert.encoder.c_layer.{last}.{part}" for part in _VISION_READS.values()}
    part = name.rsplit(".", 1)[0]
    if name.startswith(f"bert.encoder.v_layer.{last}.") or part in last_reader:
        return "the end of the vision stream, which no word sees"
    if part.endswith((".biOutput.q_dense1", ".biOutput.q_dense2")):
        return "second projections of co-attention, which are never called"
    if part in ("bert.t_pooler.dense", "bert.v_pooler.dense", "cls.bi_seq_relationship"):
        return "poolers and alignment head"
    if name.startswith("cls.imagePredictions."):
        return "image head"
    if module is Module.INSERT and name == _DECODER:
        return "the decoder of words, which is the embedding table once more"
    others = _TAG_HEAD.values() if module is Module.INSERT else (*_WORD_HEAD.values(), _DECODER)
    return "heads of other modules" if name in others else None


def _check_tie(state: Mapping[str, Tensor], path: Path) -> None:
    """The decoder of words is the embedding table; a file where it is not is of another network."""
    if _DECODER in state and not torch.equal(state[_DECODER], state.get(_TABLE, torch.empty(0))):
        raise CapeditError(f"{path}: {_DECODER} differs from {_TABLE}; the published network ties them")


def _size(shape: torch.Size) -> str:
    return " x ".join(map(str, shape))

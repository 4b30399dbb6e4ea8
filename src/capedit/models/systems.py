"""The compared systems by name, and their weights as one safetensors file that carries its own shape and words."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from capedit.errors import CapeditError
from capedit.models.attention_lstm import WriterConfig
from capedit.models.device import placed
from capedit.models.edit_nts import EditNts, EditNtsConfig
from capedit.models.etn import Etn
from capedit.models.felix import Felix, FelixConfig
from capedit.models.laser_tagger import LaserTagger, LaserTaggerConfig
from capedit.models.mn import ModificationNetwork
from capedit.models.system import Kind, System
from capedit.models.tensor_files import read_tensors, save_tensors
from capedit.models.updn import UpDn, UpDnE
from capedit.models.vilbert import StreamConfig, VilbertConfig
from capedit.models.vocabulary import SPECIALS, Vocabulary

SYSTEM_FILE = "system.safetensors"
"""The name of a system's file in the folder of its training."""


@dataclass(frozen=True)
class Entry:
    """A system that can be named."""

    label: str
    """Its name in the paper."""
    build: Callable[[Any, Vocabulary], System]
    read_config: Callable[[dict[str, Any]], Any]
    """Its shape from JSON."""
    kind: Kind


def _with_encoder(config: type[FelixConfig] | type[LaserTaggerConfig]) -> Callable[[dict[str, Any]], Any]:
    def read(values: dict[str, Any]) -> Any:
        encoder = dict(values["encoder"])
        streams = {name: StreamConfig(**encoder[name]) for name in ("text", "vision")}
        known = {**values, "encoder": VilbertConfig(**{**encoder, **streams})}
        if "phrases" in known:
            known["phrases"] = tuple(tuple(phrase) for phrase in known["phrases"])
        return config(**known)

    return read


def _writer(values: dict[str, Any]) -> WriterConfig:
    return WriterConfig(**values)


SYSTEMS = {
    "updn": Entry("UpDn", UpDn, _writer, UpDn.kind),
    "updn-e": Entry("UpDn-E", UpDnE, _writer, UpDnE.kind),
    "mn": Entry("MN", ModificationNetwork, _writer, ModificationNetwork.kind),
    "etn": Entry("ETN", Etn, _writer, Etn.kind),
    "v-editnts": Entry("V-EditNTS", EditNts, lambda values: EditNtsConfig(**values), EditNts.kind),
    "v-lasertagger": Entry("V-LaserTagger", LaserTagger, _with_encoder(LaserTaggerConfig), LaserTagger.kind),
    "v-felix": Entry("V-Felix", Felix, _with_encoder(FelixConfig), Felix.kind),
}


def name_of(system: System) -> str:
    """The name under which a system is known here."""
    return next(name for name, entry in SYSTEMS.items() if entry.build is type(system))


@dataclass(frozen=True)
class SystemCard:
    """What a file tells of a system beside its shape, words and weights."""

    encoder: str | None = None
    """Hash of the encoder whose visual tokens it was trained on."""
    marks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Described:
    """A file, without its weights."""

    name: str
    parameters: int
    card: SystemCard


def save_system(system: System, path: Path, card: SystemCard | None = None) -> None:
    described = {
        "system": name_of(system),
        "config": json.dumps(asdict(system.config)),
        "words": json.dumps(system.vocabulary.words[len(SPECIALS) :], ensure_ascii=False),
        "card": json.dumps(asdict(card or SystemCard())),
    }
    save_tensors(system.state_dict(), path, described)


def describe_system(path: Path) -> Described:
    """What a file holds; its weights are not read."""
    try:
        with safe_open(path, framework="pt") as file:
            described = file.metadata() or {}
            size = sum(prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 (no mapping)
        return Described(described["system"], size, SystemCard(**json.loads(described["card"])))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CapeditError(f"{path}: not one of the compared systems ({error!r})") from error


def load_system(path: Path) -> System:
    """Read a system, onto torch's default device; nothing in the file is executed, whoever wrote it."""
    try:
        described, tensors = read_tensors(path)
        entry = SYSTEMS[described["system"]]
        config = entry.read_config(json.loads(described["config"]))
        vocabulary = Vocabulary(json.loads(described["words"]))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise CapeditError(f"{path}: not one of the compared systems ({error!r})") from error
    with torch.device("meta"):  # no memory for weights that are thrown away at once
        system = entry.build(config, vocabulary)
    try:
        system.load_state_dict(tensors, assign=True)
    except RuntimeError as error:
        raise CapeditError(f"{path}: weights do not fit the shape that the file states ({error})") from error
    return placed(system).eval()

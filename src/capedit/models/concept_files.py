"""A trained concept head as one file: which words it knows, and how it scores them."""

import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from torch import Tensor

from capedit.errors import CapeditError
from capedit.models.tensor_files import read_tensors, save_tensors


@dataclass(frozen=True)
class ConceptTable:
    """Scores of words: weight (C, F), bias (C,), and the logit of each word without any image (C,)."""

    words: tuple[str, ...]
    encoder: str
    """Hash of the encoder whose features it reads."""
    weight: Tensor
    bias: Tensor
    prior: Tensor

    def save(self, path: Path) -> None:
        tensors = {"weight": self.weight, "bias": self.bias, "prior": self.prior}
        metadata = {"words": json.dumps(self.words), "encoder": self.encoder}
        save_tensors(tensors, path, metadata)

    @classmethod
    def load(cls, path: Path) -> "ConceptTable":
        try:
            metadata, tensors = read_tensors(path)
            scores = {name: tensors[name] for name in ("weight", "bias", "prior")}
            table = cls(tuple(json.loads(metadata["words"])), metadata["encoder"], **scores)
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise CapeditError(f"{path}: not a concept table ({error!r})") from error
        if not len(table.words) == len(table.weight) == len(table.bias) == len(table.prior):
            raise CapeditError(f"{path}: {len(table.words)} words, but scores for {len(table.weight)}")
        return table

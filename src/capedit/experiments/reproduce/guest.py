"""A model that is no part of the paper's comparison, shown beside it: such as the one that comes with this package."""

from dataclasses import dataclass

import torch

from capedit.editing.bundle import BUNDLED, Bundle
from capedit.editing.editor import Runtime, load_modules
from capedit.errors import CapeditError
from capedit.experiments.reproduce.tigers import TigerEditor
from capedit.metrics.clashes import find_open_seams


@dataclass(frozen=True)
class Guest:
    """A model folder, used at its own operating point."""

    bundle: Bundle

    @classmethod
    def load(cls, model: str, encoder: str) -> "Guest":
        """The bundled model (`default`) or a folder; it must read the tokens of that encoder."""
        bundle = Bundle.load(BUNDLED if model == "default" else model)
        if bundle.encoder != encoder:
            raise CapeditError(f"{bundle.folder}: reads visual tokens of {bundle.encoder}, not of {encoder}")
        return cls(bundle)

    @property
    def name(self) -> str:
        return f"guest-{self.bundle.hash}"

    @property
    def label(self) -> str:
        return f"({self.bundle.name})"

    @property
    def note(self) -> str:
        return (
            f"{self.label} is a model of this package and no part of the comparison: it was trained longer and on "
            f"more, and has evidence, repairs and an operating point that the paper has not ({self.bundle.label})."
        )

    def editor(self) -> TigerEditor:
        modules = load_modules(self.bundle, Runtime.ONNX, torch.get_num_threads())
        return TigerEditor(modules, self.bundle.knobs, calibration=self.bundle.calibration, breaks=find_open_seams)

"""A model folder computed by torch: for training runs, GPUs and comparison."""

from capedit.editing.bundle import Bundle
from capedit.models.device import choose_device
from capedit.models.tiger_files import load_chorus
from capedit.models.tiger_torch import TorchModules


def load_torch_modules(bundle: Bundle, device: str = "cpu") -> TorchModules:
    """The network of a model folder that has `weights.safetensors`."""
    model = load_chorus(bundle.folder / "weights.safetensors", choose_device(device))
    return TorchModules(model, bundle.vocabulary)

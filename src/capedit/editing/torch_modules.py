"""A model folder computed by torch: for training runs, GPUs and comparison."""

from capedit.editing.bundle import Bundle
from capedit.errors import CapeditError
from capedit.models.chorus import Chorus
from capedit.models.device import choose_device
from capedit.models.tiger_files import load_chorus, read_config, recover_chorus
from capedit.models.tiger_torch import TorchModules


def load_network(bundle: Bundle) -> Chorus:
    """The network of a model folder, to be trained further; out of its ONNX files if there is nothing better."""
    weights = bundle.folder / "weights.safetensors"
    if weights.is_file():
        return load_chorus(weights)
    try:
        config = read_config(bundle.card["shape"])
    except (KeyError, TypeError) as error:
        raise CapeditError(f"{bundle.folder}: does not state its shape ({error!r})") from error
    return recover_chorus(bundle.folder, config, int(bundle.card.get("voices", 1)))


def load_torch_modules(bundle: Bundle, device: str = "cpu") -> TorchModules:
    """The network of a model folder that has `weights.safetensors`."""
    model = load_chorus(bundle.folder / "weights.safetensors", choose_device(device))
    return TorchModules(model, bundle.vocabulary)

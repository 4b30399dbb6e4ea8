"""A model folder computed by torch: for training runs, GPUs and comparison."""

from capedit.editing.bundle import Bundle
from capedit.errors import CapeditError
from capedit.models.device import choose_device
from capedit.models.tiger import Tiger
from capedit.models.tiger_files import load_tiger, read_config, recover_tiger
from capedit.models.tiger_torch import TorchModules


def load_network(bundle: Bundle) -> Tiger:
    """The network of a model folder, to be trained further; out of its ONNX files if there is nothing better."""
    weights = bundle.folder / "weights.safetensors"
    if weights.is_file():
        return load_tiger(weights)
    try:
        config = read_config(bundle.card["shape"])
    except (KeyError, TypeError) as error:
        raise CapeditError(f"{bundle.folder}: does not state its shape ({error!r})") from error
    return recover_tiger(bundle.folder, config)


def load_torch_modules(bundle: Bundle, device: str = "cpu") -> TorchModules:
    """The network of a model folder that has `weights.safetensors`."""
    model = load_tiger(bundle.folder / "weights.safetensors", choose_device(device))
    return TorchModules(model, bundle.vocabulary)

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from capedit.editing import Bundle, Runtime
from capedit.editing.editor import load_modules
from capedit.editing.export import Description, export_bundle
from capedit.errors import CapeditError
from capedit.models.decoding import pad_rows
from capedit.models.onnx_precision import Bits
from capedit.models.runtime import Floats, Images
from capedit.models.tensor_files import read_tensors, save_tensors
from capedit.models.tiger import Tiger
from capedit.models.tiger_files import load_tiger, save_tiger
from capedit.models.vilbert import VisionInput
from capedit.models.vocabulary import Vocabulary
from tests.editing.tiny import DIM, MeanColours, tiny_config

CHANCE = torch.Generator().manual_seed(1)
PICTURES = VisionInput(
    torch.randn(2, 5, DIM, generator=CHANCE), torch.rand(2, 5, 5, generator=CHANCE), torch.ones(2, 5, dtype=torch.bool)
)


def test_a_file_that_lacks_weights_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_tiger(Tiger(tiny_config()), path)
    facts, tensors = read_tensors(path)
    save_tensors({name: tensor for name, tensor in tensors.items() if not name.startswith("words.")}, path, facts)
    with pytest.raises(CapeditError, match="weights do not fit the shape"):
        load_tiger(path)


def test_in_eight_bits_words_are_kept_once(tmp_path: Path) -> None:
    """The table that words are looked up in is the matrix that they are told by."""
    vocabulary = Vocabulary(f"word{number}" for number in range(200))  # smaller tables stay as they are
    config, size = tiny_config(), len(vocabulary)
    assert config.grounding is not None
    encoder, grounding = replace(config.encoder, vocabulary=size), replace(config.grounding, vocabulary=size)
    torch.manual_seed(0)
    model = Tiger(replace(config, encoder=encoder, grounding=grounding), torch.arange(7, 15)).eval()
    wide, narrow = (
        export_bundle(model, vocabulary, Description("few bits", MeanColours.hash), tmp_path / bits.value, bits=bits)
        for bits in (Bits.FLOAT32, Bits.INT8)
    )
    tensors = onnx.load(narrow.folder / "read-all.onnx").graph.initializer
    assert [sorted(tensor.dims) for tensor in tensors].count([16, size]) == 2  # TIger's own and the grounding's
    told, nearly = (word_logits(bundle) for bundle in (wide, narrow))
    assert np.abs(told - nearly).max() < 0.05 * np.abs(told).max()


def word_logits(bundle: Bundle) -> Floats:
    modules = load_modules(bundle, Runtime.ONNX, 1)
    seen = modules.see(Images(PICTURES.features.numpy(), PICTURES.locations.numpy(), np.array([5, 5])))
    return modules.insert(pad_rows([[2, 4, 9, 3], [2, 4, 8, 3]]), seen, np.array([0, 1]), np.array([1, 1]))

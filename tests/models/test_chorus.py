from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor

from capedit.editing import Bundle, Editor, Runtime
from capedit.editing.editor import load_modules
from capedit.editing.export import Description, export_bundle
from capedit.errors import CapeditError
from capedit.models.accounting import parameters
from capedit.models.chorus import Chorus
from capedit.models.decoding import pad_rows
from capedit.models.onnx_precision import Bits
from capedit.models.runtime import Floats, Images
from capedit.models.tensor_files import read_tensors, save_tensors
from capedit.models.tiger import Tiger
from capedit.models.tiger_files import load_chorus, load_tiger, save_tiger
from capedit.models.vilbert import VisionInput
from capedit.models.vocabulary import Vocabulary
from tests.editing.tiny import DIM, WORDS, MeanColours, tiny_config
from tests.models.test_tiger import text_of

CHANCE = torch.Generator().manual_seed(1)
PICTURES = VisionInput(
    torch.randn(2, 5, DIM, generator=CHANCE), torch.rand(2, 5, 5, generator=CHANCE), torch.ones(2, 5, dtype=torch.bool)
)


def voices(count: int, **changes: object) -> list[Tiger]:
    """TIgers that differ in all but their eyes."""
    torch.manual_seed(0)
    made = [Tiger(tiny_config(**changes), torch.arange(7, 15)).eval() for _ in range(count)]
    for voice in made:
        with torch.no_grad():  # far from zero, so that they have opinions
            for parameter in voice.parameters():
                if parameter.ndim > 1:
                    parameter.mul_(12)
        for eye in ("concepts", "grounding"):
            if hasattr(voice, eye):
                getattr(voice, eye).load_state_dict(getattr(made[0], eye).state_dict())
    return made


def opinions(model: Tiger | Chorus) -> list[Tensor]:
    text, sight = text_of([2, 8, 9, 3], [2, 10, 3]), model.see(PICTURES)
    tags, match = model.delete(text, sight)
    words = model.insert(text, sight, torch.tensor([0, 1]), torch.tensor([1, 1]))
    return [tags, model.add(text, sight), words, *([] if match is None else [match])]


@pytest.mark.parametrize("changes", [{}, {"shared": False}, {"grounding": None, "concepts": None, "matching": False}])
@torch.no_grad()
def test_a_chorus_says_what_its_voices_say_on_average(changes: Mapping[str, object]) -> None:
    alone = [opinions(voice) for voice in voices(3, **changes)]
    assert not torch.allclose(alone[0][0], alone[1][0])
    for together, *apart in zip(opinions(Chorus(voices(3, **changes))), *alone, strict=True):
        torch.testing.assert_close(together, torch.stack(apart).mean(0), atol=1e-4, rtol=1e-4)


def test_a_further_voice_costs_no_eyes() -> None:
    one, two = parameters(Chorus(voices(1))), Chorus(voices(2))
    eyes = parameters(two.first.concepts) + parameters(two.first.grounding)
    assert parameters(two) == 2 * one - eyes


def test_voices_with_other_eyes_are_refused() -> None:
    one, other = voices(2)
    with torch.no_grad():
        other.grounding.weigh.bias.add_(1)
    with pytest.raises(CapeditError, match=r"same eyes; grounding\.weigh\.bias differs"):
        Chorus([one, other])
    with pytest.raises(CapeditError, match="one shape"):
        Chorus([one, Tiger(tiny_config(matching=False), torch.arange(7, 15))])


def test_a_chorus_survives_its_file(tmp_path: Path) -> None:
    chorus, path = Chorus(voices(2)), tmp_path / "weights.safetensors"
    save_tiger(chorus, path)
    again = load_chorus(path)
    assert again.voices[0].grounding is again.voices[1].grounding
    for one, other in zip(opinions(chorus), opinions(again), strict=True):
        torch.testing.assert_close(one, other)  # where tensors lie in memory may change how sums are rounded
    with pytest.raises(CapeditError, match="not one TIger, but a chorus of 2"):
        load_tiger(path)


def test_a_chorus_of_one_is_a_tiger(tmp_path: Path) -> None:
    [voice] = voices(1)
    save_tiger(Chorus([voice]), tmp_path / "weights.safetensors")
    again = load_tiger(tmp_path / "weights.safetensors")
    assert again.state_dict().keys() == voice.state_dict().keys()


def test_a_file_that_lacks_a_voice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_tiger(Chorus(voices(2)), path)
    facts, tensors = read_tensors(path)
    save_tensors({name: tensor for name, tensor in tensors.items() if "voices.1." not in name}, path, facts)
    with pytest.raises(CapeditError, match="weights do not fit the shape"):
        load_chorus(path)


@pytest.mark.parametrize("changes", [{}, {"shared": False}])
def test_an_exported_chorus_edits_as_torch_does(tmp_path: Path, changes: Mapping[str, object]) -> None:
    description = Description("choir", MeanColours.hash)
    bundle = export_bundle(Chorus(voices(2, **changes)), Vocabulary(WORDS), description, tmp_path, with_torch=True)
    assert bundle.card["voices"] == 2
    editors = [Editor(bundle, load_modules(bundle, runtime, 1), MeanColours()) for runtime in Runtime]
    pictures = [np.random.default_rng(seed).integers(0, 256, (40, 60, 3), dtype=np.uint8) for seed in range(6)]
    captions = ("a dog is on the sofa", "two women in the grass")
    pairs = [(picture, caption) for picture in pictures for caption in captions]
    by_onnx, by_torch = (editor.edit_many(pairs) for editor in editors)
    assert any(edit.changed for edit in by_onnx)
    for one, other in zip(by_onnx, by_torch, strict=True):
        assert one.caption == other.caption
        assert one.confidence == pytest.approx(other.confidence, abs=1e-4)


def test_in_eight_bits_words_are_kept_once(tmp_path: Path) -> None:
    """The table that words are looked up in is the matrix that they are told by."""
    vocabulary = Vocabulary(f"word{number}" for number in range(200))  # smaller tables stay as they are
    config, size = tiny_config(), len(vocabulary)
    assert config.grounding is not None
    encoder, grounding = replace(config.encoder, vocabulary=size), replace(config.grounding, vocabulary=size)
    torch.manual_seed(0)
    model = Tiger(replace(config, encoder=encoder, grounding=grounding), torch.arange(7, 15)).eval()
    wide, narrow = (
        export_bundle(model, vocabulary, Description("choir", MeanColours.hash), tmp_path / bits.value, bits=bits)
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

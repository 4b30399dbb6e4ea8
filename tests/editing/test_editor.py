from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from capedit.editing import Bundle, CaptionError, Editor
from capedit.editing.editor import Runtime, load_modules
from capedit.edits import Op
from capedit.errors import CapeditError
from capedit.models.concepts import ConceptConfig
from capedit.models.onnx_precision import Bits
from tests.editing.tiny import MeanColours, tiny_config, tiny_editor, write_tiny_model

PICTURES = [np.random.default_rng(seed).integers(0, 256, (40, 60, 3), dtype=np.uint8) for seed in range(6)]
CAPTIONS = ["A dog is on the sofa.", "Two women sitting, in the grass!", "a cat", "the red table with a blue dog on it"]


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Editor:
    return tiny_editor(tmp_path_factory.mktemp("model"))


def test_torch_and_onnx_agree(tmp_path: Path, editor: Editor) -> None:
    other = tiny_editor(tmp_path, runtime=Runtime.TORCH)
    seen = editor.see(editor.encoder.encode(list(PICTURES)))
    again = other.see(editor.encoder.encode(list(PICTURES)))
    np.testing.assert_allclose(seen.views, again.views, atol=1e-4)
    np.testing.assert_allclose(seen.concepts, again.concepts, atol=1e-4)
    pairs = [(picture, caption) for picture in PICTURES for caption in CAPTIONS]
    for one, two in zip(editor.edit_many(pairs), other.edit_many(pairs), strict=True):
        assert one.caption == two.caption
        assert one.confidence == pytest.approx(two.confidence, abs=1e-4)


def test_a_batch_of_any_mix_gives_what_single_calls_give(editor: Editor) -> None:
    pairs = [(picture, caption) for picture in PICTURES[:3] for caption in CAPTIONS]
    together = editor.edit_many(pairs, batch_size=5)
    assert any(edit.changed for edit in together)
    for (picture, caption), edit in zip(pairs, together, strict=True):
        alone = editor.edit(picture, caption)
        assert alone.caption == edit.caption
        assert alone.steps == edit.steps


def test_an_edit_tells_its_story(editor: Editor) -> None:
    edit = next(e for e in editor.edit_many([(p, CAPTIONS[0]) for p in PICTURES]) if e.changed)
    told = edit.to_json()
    assert told["caption"] == edit.caption != edit.source
    assert {"caption", "operations", "rounds", "steps", "confidence", "model"} <= told.keys()
    kept_or_deleted = [o["token"] for o in told["operations"] if o["op"] != "ADD"]
    assert kept_or_deleted == ["a", "dog", "is", "on", "the", "sofa"]
    assert all(0 <= o["probability"] <= 1 for o in told["operations"])
    assert edit.steps == sum(o.op is not Op.KEEP for o in edit.operations)


def test_knobs_act(editor: Editor) -> None:
    pairs = [(picture, caption) for picture in PICTURES for caption in CAPTIONS]
    free = editor.edit_many(pairs, fluent=False)
    careful = editor.edit_many(pairs, keep_bias=100.0, fluent=False)
    assert not any(o.op is Op.DELETE for e in careful for o in e.operations)
    assert any(o.op is Op.DELETE for e in free for o in e.operations)
    shy = editor.edit_many(pairs, stop_bias=100.0, fluent=False)
    assert not any(o.op is Op.ADD for e in shy for o in e.operations)
    assert not any(e.changed for e in editor.edit_many(pairs, max_edits=0))
    assert not any(e.changed for e in editor.edit_many(pairs, fits_above=0.0))
    sure = editor.edit_many(pairs, min_confidence=0.6, fluent=False)
    assert all(o.probability >= 0.6 for e in sure for _, o in e.trace.changes() if o.probability is not None)
    assert all("dog" in e.caption for e in editor.edit_many([(p, CAPTIONS[0]) for p in PICTURES], protected={"dog"}))
    assert max(e.trace.insertion_rounds for e in editor.edit_many(pairs, rounds=1)) <= 1


def test_no_word_stands_twice_in_a_row_and_no_special_is_added(editor: Editor) -> None:
    for edit in editor.edit_many([(p, c) for p in PICTURES for c in CAPTIONS], rounds=4):
        added = [o.token for o in edit.operations if o.op is Op.ADD]
        assert not any(token.startswith("[") for token in added)
        words = edit.trace.target
        assert all(a != b for a, b in pairwise(words))


@pytest.mark.parametrize("caption", ["", "   ", "...", "word " * 200])
def test_captions_that_cannot_be_edited_are_named(editor: Editor, caption: str) -> None:
    with pytest.raises(CaptionError, match="caption"):
        editor.edit(PICTURES[0], caption)


@pytest.mark.parametrize("caption", ["Ein Hund läuft über die Straße", "一只猫在沙发上", "a dog 🐶 on a sofa", "א כלב"])
def test_other_languages_are_edited_or_left_but_never_crash(editor: Editor, caption: str) -> None:
    edit = editor.edit(PICTURES[0], caption)
    assert edit.source == caption
    assert isinstance(edit.caption, str)


def test_unknown_knobs_and_models_are_refused(editor: Editor, tmp_path: Path) -> None:
    with pytest.raises(CapeditError, match="no such knob"):
        editor.edit(PICTURES[0], "a dog", boldness=3)
    with pytest.raises(CapeditError, match="not a model folder"):
        Editor.load(tmp_path)


@pytest.mark.parametrize("bits", [Bits.FLOAT16, Bits.INT8])
def test_smaller_files_see_nearly_the_same(tmp_path: Path, editor: Editor, bits: Bits) -> None:
    config = tiny_config()
    small = Bundle.load(write_tiny_model(tmp_path, config, bits=bits))
    modules = load_modules(small, Runtime.ONNX, 1)
    tokens = editor.encoder.encode(list(PICTURES))
    wide = editor.see(tokens)
    narrow = Editor(small, modules, editor.encoder).see(tokens)
    assert np.abs(wide.concepts - narrow.concepts).max() < 0.05 * np.abs(wide.concepts).max()


@pytest.mark.parametrize(
    "changes",
    [
        {"shared": False},
        {"matching": False},
        {"concepts": None, "shared": False},
        {"grounding": None},
        {"concepts": ConceptConfig(words=8, shown=3, layers=1)},
    ],
)
def test_every_shape_exports_and_agrees_with_torch(tmp_path: Path, changes: dict[str, object]) -> None:
    bundle = Bundle.load(write_tiny_model(tmp_path, tiny_config(**changes)))
    editors = [Editor(bundle, load_modules(bundle, runtime, 1), MeanColours()) for runtime in Runtime]
    pairs = [(picture, caption) for picture in PICTURES for caption in CAPTIONS]
    onnx, torch = ([edit.caption for edit in editor.edit_many(pairs)] for editor in editors)
    assert onnx == torch


def test_support_says_where_a_word_can_be_seen(tmp_path: Path, editor: Editor) -> None:
    found = editor.support(PICTURES[0], "A dog on the sofa.")
    assert found is not None
    assert found.words == ["a", "dog", "on", "the", "sofa"]
    assert found.values.shape == (5, 5)
    assert found.boxes.shape == (5, 5)
    assert np.abs(found.values).max() <= 1 + 1e-5
    again = tiny_editor(tmp_path, runtime=Runtime.TORCH).support(PICTURES[0], "A dog on the sofa.")
    assert again is not None
    np.testing.assert_allclose(found.values, again.values, atol=1e-4)

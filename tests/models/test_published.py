import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from capedit.errors import CapeditError
from capedit.models.published import Imported, import_published, read_checkpoint
from capedit.models.tiger import Module, TigerConfig
from capedit.models.vilbert import TextInput, VisionInput
from capedit.models.vocabulary import END, MASK, START, UNKNOWN
from capedit.models.word_pieces import WordPieces, rows_of_bert
from tests.models.published_network import TINY, State, checkpoint, tag_scores, word_scores, write_vocabulary

CONFIG = TigerConfig(TINY)
SEEDS = {Module.DELETE: 1, Module.ADD: 2, Module.INSERT: 3}
Change = Callable[[State], object]


def imported(
    folder: Path, module: Module = Module.DELETE, change: Change = lambda state: None, config: TigerConfig = CONFIG
) -> Imported:
    """An import of three files, one of which was changed before."""
    files = {}
    for one, seed in SEEDS.items():
        state = checkpoint(seed)
        if one is module:
            change(state)
        files[one] = folder / f"{one.value}.bin"
        torch.save(state, files[one])
    return import_published(files, config, rows_of_bert(write_vocabulary(folder)))


def test_an_imported_network_computes_what_the_published_one_does(tmp_path: Path) -> None:
    rows = torch.tensor(rows_of_bert(write_vocabulary(tmp_path)))
    pieces = WordPieces.read_bert(tmp_path / "vocab.txt")
    captions = [["a", "dog", "lies", "on", "the", "sofa"], ["a", "cat"]]
    framed = [[START, *pieces.encode(caption), MASK, END] for caption in captions]
    ids = torch.tensor([framed[0], framed[1] + [0] * 4])
    there = torch.tensor([[True] * 9, [True] * 5 + [False] * 4])
    chance = torch.Generator().manual_seed(0)
    features = torch.randn(2, 6, TINY.feature_width, generator=chance)
    boxes = torch.rand(2, 6, 5, generator=chance)
    theirs = (rows[ids], there, features, boxes)
    text = TextInput(ids, there)

    model = imported(tmp_path).model
    with torch.no_grad():
        sight = model.see(VisionInput(features, boxes))
        deletes, match = model.delete(text, sight)
        adds = model.add(text, sight)
        words = model.insert(text, sight, *(ids == MASK).nonzero().T)
    assert match is None
    assert_close = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)
    assert_close(deletes[there], tag_scores(checkpoint(1), *theirs)[there])
    assert_close(adds[there], tag_scores(checkpoint(2), *theirs)[there])
    assert_close(words, word_scores(checkpoint(3), *theirs)[ids == MASK][:, rows])
    assert deletes.std() > 0.1  # and the weights matter


def test_pieces_keep_their_embeddings(tmp_path: Path) -> None:
    model, table = imported(tmp_path).model, checkpoint(1)["bert.embeddings.word_embeddings.weight"]
    lines = write_vocabulary(tmp_path).read_text().splitlines()
    pieces = WordPieces.read_bert(tmp_path / "vocab.txt")
    ours = model.encoder(Module.DELETE).embed_text.word.weight
    named = {START: "[CLS]", END: "[SEP]", MASK: "[MASK]", UNKNOWN: "[UNK]", pieces.encode(["dog"])[0]: "dog"}
    for number, piece in named.items():
        torch.testing.assert_close(ours[number], table[lines.index(piece)])


def test_every_tensor_is_accounted_for(tmp_path: Path) -> None:
    found = imported(tmp_path)
    assert found.used == len(found.model.state_dict())
    assert found.used + sum(found.unused.values()) == sum(len(checkpoint(seed)) for seed in SEEDS.values())
    assert found.unused == {
        "the end of the vision stream, which no word sees": 3 * 2 * (8 + 8),
        "second projections of co-attention, which are never called": 3 * 2 * 4,
        "poolers and alignment head": 3 * 6,
        "image head": 3 * 6,
        "heads of other modules": 2 * 6 + 6,
        "the decoder of words, which is the embedding table once more": 1,
    }


@pytest.mark.parametrize("module", Module)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.update({"vil_logit.weight": torch.zeros(1)}), "vil_logit.weight is not known"),
        (
            lambda state: state.update({"bert.encoder.layer.9.output.dense.bias": torch.zeros(1)}),
            r"layer\.9.* not known",
        ),
        (lambda state: state.pop("bert.encoder.c_layer.1.biattention.key1.bias"), "key1.bias is missing"),
        (
            lambda state: state.update({"bert.embeddings.LayerNorm.bias": torch.zeros(3)}),
            "LayerNorm.bias is 3, exp.* 16",
        ),
    ],
)
def test_what_is_not_the_published_network_is_refused(
    tmp_path: Path, module: Module, change: Change, message: str
) -> None:
    with pytest.raises(CapeditError, match=message) as error:
        imported(tmp_path, module, change)
    assert f"{module.value}.bin" in str(error.value)


@pytest.mark.parametrize("head", ["cls.tagger_predictions.decoder.weight", "cls.tagger_predictions.bias"])
def test_a_tagger_without_its_head_is_refused(tmp_path: Path, head: str) -> None:
    with pytest.raises(CapeditError, match=f"{head} is missing"):
        imported(tmp_path, Module.ADD, lambda state: state.pop(head))


def test_an_inserter_whose_decoder_is_not_its_table_is_refused(tmp_path: Path) -> None:
    def untie(state: State) -> None:
        state["cls.predictions.decoder.weight"] += 1

    imported(tmp_path, Module.ADD, untie)  # a tagger makes no use of it
    with pytest.raises(CapeditError, match="ties them"):
        imported(tmp_path, Module.INSERT, untie)


def test_another_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CapeditError, match="has 18 pieces, the network 17"):
        imported(tmp_path, config=TigerConfig(replace(TINY, vocabulary=17)))
    with pytest.raises(CapeditError, match="three encoders"):
        imported(tmp_path, config=TigerConfig(TINY, shared=True))


def test_files_of_several_kinds_are_read(tmp_path: Path) -> None:
    state = checkpoint(1)
    name = "bert.embeddings.LayerNorm.weight"
    torch.save({f"module.{key}": tensor for key, tensor in state.items()}, tmp_path / "wrapped.bin")
    torch.save(state, tmp_path / "old.bin", _use_new_zipfile_serialization=False)
    save_file(state, tmp_path / "safe.safetensors")
    for file in ("wrapped.bin", "old.bin", "safe.safetensors"):
        read = read_checkpoint(tmp_path / file)
        assert read.keys() == state.keys()
        torch.testing.assert_close(read[name], state[name])


class Hostile:
    """Runs a command when it is unpickled."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.witness}",)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_hostile_pickle_is_refused(tmp_path: Path, protocol: int) -> None:
    witness = tmp_path / "owned"
    plain, saved = tmp_path / "plain.bin", tmp_path / "saved.bin"
    plain.write_bytes(pickle.dumps({"x": Hostile(witness)}, protocol=protocol))
    torch.save({**checkpoint(1), "x": Hostile(witness)}, saved, pickle_protocol=protocol)
    for path in (plain, saved):
        with pytest.raises(CapeditError, match=f"{path.name}: .*refused"):
            read_checkpoint(path)
    assert not witness.exists()
    pickle.loads(plain.read_bytes())
    assert witness.exists()  # it would have worked


@pytest.mark.parametrize("suffix", ["bin", "safetensors"])
@pytest.mark.parametrize("data", [b"", b"hello", b"PK\x03\x04 nothing", b"\x80\x02}q\x00."])
def test_what_is_no_checkpoint_is_named(tmp_path: Path, suffix: str, data: bytes) -> None:
    path = tmp_path / f"file.{suffix}"
    path.write_bytes(data)
    with pytest.raises(CapeditError, match=rf"file\.{suffix}: "):
        read_checkpoint(path)


def test_other_things_than_tensors_are_refused(tmp_path: Path) -> None:
    for number, content in enumerate(({"epoch": 3}, [torch.zeros(1)], {}, {"model": {"x": torch.zeros(1)}})):
        path = tmp_path / f"{number}.bin"
        torch.save(content, path)
        with pytest.raises(CapeditError, match="named tensors and nothing else"):
            read_checkpoint(path)
    with pytest.raises(CapeditError, match="nowhere"):
        read_checkpoint(tmp_path / "nowhere.bin")

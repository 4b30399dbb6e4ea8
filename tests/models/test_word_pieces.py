from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from capedit.edits import Op
from capedit.errors import CapeditError
from capedit.models.decoding import Knobs, decode
from capedit.models.draft import Word
from capedit.models.vocabulary import SPECIALS, UNKNOWN, Vocabulary
from capedit.models.word_pieces import BERT_SPECIALS, PieceDraft, WordPieces, load_vocabulary, rows_of_bert
from tests.models.test_decoding import SEEN, Opinions

PIECES = "a bi ##cy ##clist dog ##s half - eaten ' t n the c ##a ##fe ride cafe".split()
VOCABULARY = WordPieces(PIECES)


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("dog", ["dog"]),
        ("bicyclist", ["bi", "##cy", "##clist"]),
        ("half-eaten", ["half", "-", "eaten"]),
        ("n't", ["n", "'", "t"]),
        ("café", ["cafe"]),
        ("dogs", ["dog", "##s"]),
        ("zebra", ["[UNK]"]),
        ("half-zebra", ["[UNK]"]),
        ("dog" * 40, ["[UNK]"]),
    ],
)
def test_words_split_as_in_bert(word: str, pieces: list[str]) -> None:
    assert VOCABULARY.split(word) == pieces


def test_rows_follow_the_vocabulary(tmp_path: Path) -> None:
    lines = ["[PAD]", "[unused0]", "the", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "dog", "##s"]
    file = tmp_path / "vocab.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    vocabulary, rows = WordPieces.read_bert(file), rows_of_bert(file)
    named = dict(zip(SPECIALS, BERT_SPECIALS, strict=True))
    assert [named.get(word, word) for word in vocabulary.words] == [lines[row] for row in rows]
    assert sorted(rows) == list(range(len(lines)))


def test_a_vocabulary_file_says_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.json"
    VOCABULARY.save(path)
    pieces = load_vocabulary(path)
    assert isinstance(pieces, WordPieces)
    assert pieces.words == VOCABULARY.words
    Vocabulary(["dog"]).save(path)
    assert type(load_vocabulary(path)) is Vocabulary
    path.write_text('{"pieces": [1]}')
    with pytest.raises(CapeditError, match="pieces"):
        load_vocabulary(path)


@pytest.mark.parametrize("text", ["[PAD]\n[UNK]\n[CLS]\n[SEP]\ndog\n", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\na\n"])
def test_what_is_no_bert_vocabulary_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "vocab.txt"
    file.write_text(text)
    with pytest.raises(CapeditError, match=r"vocab\.txt: .*(MASK|twice)"):
        WordPieces.read_bert(file)


def told(draft: PieceDraft) -> list[list[str]]:
    return [[f"{o.op.value} {o.token}" for o in script] for script in draft.trace().rounds]


def test_a_trace_is_told_in_words() -> None:
    draft = PieceDraft.split("a bicyclist".split(), VOCABULARY)
    assert draft.tokens == ["a", "bi", "##cy", "##clist"]
    draft.rounds = 1
    for piece, sure in zip(draft.words[1:], (0.9, 0.7, 0.8), strict=True):
        piece.died, piece.deleted = 1, sure
    draft.rounds = 2
    draft.insert_after(draft.words[0], Word("dog", born=2, added=0.6))
    draft.rounds = 3
    draft.insert_after(draft.words[1], Word("##s", born=3, added=0.5))
    assert told(draft) == [
        ["KEEP a", "DELETE bicyclist"],
        ["KEEP a", "ADD dog"],
        ["KEEP a", "DELETE dog", "ADD dogs"],
    ]
    trace = draft.trace()
    assert trace.source == ("a", "bicyclist")
    assert trace.target == ["a", "dogs"]
    assert trace.rounds[0].operations[1].probability == 0.7
    assert trace.rounds[2].operations[2].probability == 0.5


def test_a_word_that_lost_a_piece_is_another_word() -> None:
    draft = PieceDraft.split(["the", "half-eaten"], VOCABULARY)
    draft.rounds = 1
    draft.words[1].died, draft.words[1].deleted = 1, 0.9
    assert told(draft) == [["KEEP the", "DELETE half-eaten", "ADD -", "ADD eaten"]]


def test_an_unknown_word_comes_back_as_it_was() -> None:
    draft = PieceDraft.split(["the", "zebra", "dog"], VOCABULARY)
    draft.rounds = 1
    draft.words[2].died = 1
    assert draft.trace().target == ["the", "zebra"]


def test_untouched_means_untouched() -> None:
    draft = PieceDraft.split(["bicyclist"], VOCABULARY)
    draft.rounds, draft.words[0].died = 1, 1
    draft.insert_after(None, Word("dog", born=1))
    again = draft.untouched()
    assert isinstance(again, PieceDraft)
    assert again.trace().target == ["bicyclist"]


@pytest.mark.parametrize("seed", range(60))
def test_any_history_gives_a_sound_trace(seed: int) -> None:
    chance = Random(seed)
    words = chance.choices(["a", "bicyclist", "half-eaten", "zebra", "dogs", "n't"], k=chance.randint(1, 6))
    draft = PieceDraft.split(words, VOCABULARY)
    for number in range(1, chance.randint(1, 4) + 1):
        draft.rounds = number
        for piece in draft.standing:
            fate = chance.choice(["stays", "stays", "dies", "grows"])
            if fate == "dies":
                piece.died, piece.deleted = number, 0.5
            elif fate == "grows":
                draft.insert_after(piece, Word(chance.choice(PIECES), born=number, added=0.5))
    trace = draft.trace()  # a trace checks itself: each round must edit what the last one left
    assert list(trace.source) == words
    glued = "".join(piece.removeprefix("##") for piece in draft.tokens if piece != SPECIALS[UNKNOWN])
    assert "".join(trace.target).replace("zebra", "") == glued
    for script, (before, after) in zip(trace.rounds, pairwise(trace.states), strict=True):
        assert script.source == before
        assert script.target == after
        assert all(o.probability is None or o.probability == 0.5 for o in script if o.op is not Op.KEEP)


def edited(modules: Opinions, caption: str, knobs: Knobs) -> list[str]:
    return decode(modules, SEEN, [caption.split()], knobs)[0].trace().target


def test_decoding_goes_by_pieces_and_ends_in_words() -> None:
    modules = Opinions({"##cy": 3.0}, {"dog": 2.0}, {"dog": ["##s"]}, vocabulary=VOCABULARY)
    assert edited(modules, "a bicyclist dog", Knobs(rounds=1)) == ["a", "biclist", "dogs"]
    assert edited(modules, "a bicyclist dog", Knobs(rounds=1, max_edits=3)) == ["a", "bicyclist", "dog"]
    assert edited(modules, "a bicyclist dog", Knobs(rounds=1, max_edits=4)) == ["a", "biclist", "dogs"]


def test_a_protected_word_neither_loses_a_piece_nor_gains_one() -> None:
    modules = Opinions({"##cy": 3.0}, {"dog": 2.0}, {"dog": ["##s", "a"]}, vocabulary=VOCABULARY)
    protected = Knobs(rounds=1, protected=frozenset({"bicyclist", "dog"}))
    assert edited(modules, "a bicyclist dog", protected) == ["a", "bicyclist", "dog", "a"]


def test_too_many_pieces_are_refused() -> None:
    with pytest.raises(CapeditError, match="33 tokens; the model reads at most 30"):
        edited(Opinions(vocabulary=VOCABULARY), "bicyclist " * 11, Knobs())

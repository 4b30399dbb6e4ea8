"""Decoding with modules whose opinions are written down, so that what comes out is known."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from capedit.edits import Op
from capedit.errors import CapeditError
from capedit.models.decoding import Calibration, Knobs, Scale, decode
from capedit.models.draft import Draft, Word
from capedit.models.runtime import Floats, Images, Ints, Seen, Text
from capedit.models.vocabulary import MASK, Vocabulary

VOCABULARY = Vocabulary("a the dog cat sofa red on big lies".split())
NOTHING = np.zeros((4, 2, 0), np.float32)
SEEN = Seen(np.zeros((4, 1), np.float32), np.ones((4, 1), bool), NOTHING, NOTHING)


@dataclass
class Opinions:
    """Logits by word: of deleting it, of adding after it, and of the words that may come after it."""

    delete_logits: Mapping[str, float] = field(default_factory=dict)
    add_logits: Mapping[str, float] = field(default_factory=dict)
    words_after: Mapping[str, list[str]] = field(default_factory=dict)
    match: float | None = None
    vocabulary: Vocabulary = VOCABULARY
    max_words: int = 30
    calls: list[tuple[str, int]] = field(default_factory=list)

    def see(self, images: Images) -> Seen:
        raise NotImplementedError

    def delete(self, text: Text, seen: Seen) -> tuple[Floats, Floats | None]:
        self.calls.append(("delete", len(text.ids)))
        match = None if self.match is None else np.full(len(text.ids), self.match, np.float32)
        return self._by_word(text, self.delete_logits), match

    def add(self, text: Text, seen: Seen) -> Floats:
        self.calls.append(("add", len(text.ids)))
        return self._by_word(text, self.add_logits)

    def insert(self, text: Text, seen: Seen, rows: Ints, columns: Ints) -> Floats:
        logits = np.zeros((len(rows), len(self.vocabulary)), np.float32)
        logits[:, : MASK + 1] = 50  # specials are likeliest of all, and must not be taken
        for number, (row, column) in enumerate(zip(rows, columns, strict=True)):
            assert text.ids[row, column] == MASK
            before = self.vocabulary.words[text.ids[row, column - 1]]
            for rank, word in enumerate(self.words_after.get(before, [])):
                logits[number, self.vocabulary.encode([word])[0]] = 20 - 2 * rank
        return logits

    def support(self, text: Text, seen: Seen) -> Floats | None:
        return None

    def _by_word(self, text: Text, logits: Mapping[str, float]) -> Floats:
        named = np.vectorize(lambda number: logits.get(self.vocabulary.words[number], -5.0))
        result: Floats = named(text.ids).astype(np.float32)
        return result


def broken(tokens: list[str]) -> list[int]:
    """A sentence is broken where "a" is followed by "on" or by the end."""
    following = [*tokens[1:], "on"]
    return [at + 1 for at, (one, two) in enumerate(zip(tokens, following, strict=True)) if (one, two) == ("a", "on")]


def edited(modules: Opinions, caption: str, knobs: Knobs | None = None, **more: object) -> Draft:
    return decode(modules, SEEN, [caption.split()], knobs or Knobs(), **more)[0]  # type: ignore[arg-type]


def test_repairs_go_on_until_nothing_is_broken() -> None:
    caption = "a dog on " * 9 + "sofa"
    knobs = Knobs(rounds=1, min_confidence=0.9999)  # no word is sure enough to come
    assert edited(Opinions({"dog": 20.0}), caption, knobs, breaks=broken).tokens == caption.split()


def test_deletes_then_adds_round_by_round() -> None:
    modules = Opinions({"dog": 3.0}, {"a": 2.0, "big": 1.0}, {"a": ["big"], "big": ["cat"]})
    modules.add_logits = {"a": 2.0}
    draft = edited(modules, "a dog lies", Knobs(rounds=1))
    assert draft.tokens == ["a", "big", "lies"]
    deletion, addition = draft.trace().rounds
    assert [(o.op, o.token) for o in deletion] == [(Op.KEEP, "a"), (Op.DELETE, "dog"), (Op.KEEP, "lies")]
    assert [(o.op, o.token) for o in addition] == [(Op.KEEP, "a"), (Op.ADD, "big"), (Op.KEEP, "lies")]
    assert [o.probability for o in deletion][1] == pytest.approx(1 / (1 + np.exp(-3)))


def test_stops_when_nothing_is_left_to_add() -> None:
    modules = Opinions({"dog": 3.0})
    edited(modules, "a dog lies", Knobs(rounds=4))
    assert modules.calls == [("delete", 1), ("add", 1)]


def test_finished_rows_leave_the_batch() -> None:
    modules = Opinions({}, {"big": 2.0, "red": 2.0}, {"big": ["red"], "red": ["cat"]})
    decode(modules, SEEN, [["a", "big", "dog"], ["a", "dog"]], Knobs(rounds=3))
    assert [count for name, count in modules.calls if name == "add"] == [2, 1, 1]


def test_a_torn_gap_is_filled() -> None:
    modules = Opinions({"dog": 3.0}, {}, {"a": ["cat"]})
    assert edited(modules, "a dog on the sofa", breaks=broken).tokens == "a cat on the sofa".split()
    assert edited(modules, "a dog on the sofa").tokens == "a on the sofa".split()


def test_what_cannot_be_filled_is_taken_back() -> None:
    modules = Opinions({"dog": 3.0}, {}, {"a": ["cat"]})
    draft = edited(modules, "a dog on the sofa", Knobs(min_confidence=0.9999), breaks=broken)
    assert draft.tokens == "a dog on the sofa".split()
    assert draft.trace().rounds == ()


def test_no_neighbour_is_repeated() -> None:
    modules = Opinions({}, {"big": 2.0}, {"big": ["dog", "big", "red"]})
    assert edited(modules, "a big dog", Knobs(rounds=1)).tokens == "a big red dog".split()


def test_no_content_word_comes_twice() -> None:
    modules = Opinions({}, {"on": 2.0}, {"on": ["cat", "the", "red"]})
    assert edited(modules, "the cat on sofa", Knobs(rounds=1)).tokens == "the cat on the sofa".split()


def test_the_plain_order_bars_no_word() -> None:
    modules = Opinions({}, {"on": 2.0}, {"on": ["cat", "the", "red"]})
    assert edited(modules, "the cat on sofa", Knobs(rounds=1, fluent=False)).tokens == "the cat on cat sofa".split()


def test_a_word_that_comes_back_was_kept() -> None:
    modules = Opinions({"dog": 3.0, "big": 3.0}, {"a": 2.0}, {"a": ["dog"]})
    draft = edited(modules, "a big dog lies", Knobs(rounds=1))
    assert draft.tokens == "a dog lies".split()
    assert [(o.op, o.token) for _, o in draft.trace().changes()] == [(Op.DELETE, "big")]
    (kept,) = (word.kept for word in draft.words if word.text == "dog")
    assert kept == pytest.approx(0.9, abs=0.03)  # deleted at 0.95, put back at 0.88
    plain = edited(modules, "a big dog lies", Knobs(rounds=1, fluent=False))
    assert plain.tokens == draft.tokens
    assert len(plain.trace().changes()) == 3


def test_a_word_that_changes_its_place_is_no_word_that_returns() -> None:
    draft = Draft(
        [
            Word("a"),
            Word("dog", born=2, added=0.9),
            Word("big", born=3, added=0.9),
            Word("big", died=1),
            Word("dog", died=1),
        ]
    )
    draft.rounds = 3
    draft.reclaim()
    assert draft.tokens == "a dog big".split()  # only one of the two can have stood all the time
    assert len(draft.trace().changes()) == 2


def test_the_second_look_may_delete_what_was_added() -> None:
    modules = Opinions({"cat": 3.0}, {"a": 2.0}, {"a": ["cat"]})
    assert edited(modules, "a sofa", Knobs(rounds=1)).tokens == "a cat sofa".split()
    draft = edited(modules, "a sofa", Knobs(rounds=1, looks=2))
    assert [o.op for _, o in draft.trace().changes()][:2] == [Op.ADD, Op.DELETE]


def test_a_caption_that_fits_is_left_alone() -> None:
    modules = Opinions({"dog": 3.0}, {"a": 2.0}, {"a": ["big"]}, match=2.0)
    assert edited(modules, "a dog", Knobs(fits_above=0.8)).tokens == ["a", "dog"]
    assert edited(modules, "a dog", Knobs(fits_above=0.9)).tokens != ["a", "dog"]
    assert edited(modules, "a dog").match == pytest.approx(1 / (1 + np.exp(-2)))
    cooler = edited(modules, "a dog", Knobs(fits_above=0.8), calibration=Calibration(match=Scale(2.0)))
    assert cooler.tokens != ["a", "dog"]  # less sure once calibrated


def test_a_caption_of_which_nothing_falls_need_not_grow() -> None:
    modules = Opinions({"sofa": 3.0}, {"a": 2.0}, {"a": ["big"]})
    assert edited(modules, "a dog", Knobs(rounds=1)).tokens == ["a", "big", "dog"]
    assert edited(modules, "a dog", Knobs(rounds=1, embellish=False)).tokens == ["a", "dog"]
    assert edited(modules, "a dog sofa", Knobs(rounds=1, embellish=False)).tokens == ["a", "big", "dog"]


def test_protected_words_and_bias_keep_words() -> None:
    modules = Opinions({"dog": 3.0, "sofa": 1.0})
    assert edited(modules, "dog on sofa", Knobs(protected=frozenset({"dog"}))).tokens == ["dog", "on"]
    assert edited(modules, "dog on sofa", Knobs(keep_bias=2.0)).tokens == ["on", "sofa"]
    assert edited(modules, "dog on sofa", Knobs(max_edits=1)).tokens == ["dog", "on", "sofa"]


def test_growth_ends_where_the_model_can_read_no_further() -> None:
    everywhere = {word: ["big", "red", "cat"] for word in VOCABULARY.words}
    modules = Opinions({}, dict.fromkeys(VOCABULARY.words, 2.0), everywhere, max_words=10)
    assert len(edited(modules, "a dog on the sofa", Knobs(rounds=6)).tokens) == 10


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"looks": 0}, {"min_confidence": 2.0}, {"max_edits": -1}])
def test_senseless_knobs_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(CapeditError, match=next(iter(wrong))):
        Knobs(**wrong)  # type: ignore[arg-type]


def test_a_draft_remembers_what_fell_between() -> None:
    draft = Draft([Word("a"), Word("big", died=1), Word("dog", died=1), Word("cat", born=2), Word("lies")])
    assert [word.text for word in draft.gap_before(1)] == ["big", "dog"]
    assert draft.gap_before(2) == []
    assert draft.tokens == ["a", "cat", "lies"]

"""Decisions, the journal they are kept in, and what undo means when several people decide."""

import json
import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capedit.editing import EditOperation
from capedit.edits import Op, gold_script, realise
from capedit.edits.tokens import tokenize
from capedit.server.refusal import Refusal
from capedit.server.review.book import NOTHING, ReviewBook
from capedit.server.review.decisions import Author, Decision, Standing
from capedit.server.review.journal import JournalError, LogMark
from capedit.server.review.units import decided_caption, units_of

ANN, BEN = Author("ann-browser", "Ann"), Author("ben-browser", "Ben")
YES, NO = Decision((True, True)), Decision((False, False))
MARK = LogMark(20, "2024-01-01T00:00:00+00:00")


@pytest.fixture
def book(tmp_path: Path) -> ReviewBook:
    return ReviewBook.open(tmp_path / "review.jsonl", MARK)


def reopened(book: ReviewBook, tmp_path: Path) -> ReviewBook:
    book.close()
    return ReviewBook.open(tmp_path / "review.jsonl", MARK)


@pytest.mark.parametrize(
    ("decision", "standing"),
    [
        (Decision((None, None)), Standing.OPEN),
        (Decision((None, None), skipped=True), Standing.SKIPPED),
        (Decision((True, None)), Standing.PARTIAL),
        (Decision((True, True)), Standing.ACCEPTED),
        (Decision((False, False)), Standing.REJECTED),
        (Decision((True, False)), Standing.MIXED),
        (Decision((None, None), text="a cat"), Standing.RETYPED),
        (Decision((None,), text=""), Standing.RETYPED),
        (Decision((), settled=True), Standing.ACCEPTED),
        (Decision(()), Standing.OPEN),
        (Decision((), flagged=True), Standing.OPEN),
    ],
)
def test_standing(decision: Decision, standing: Standing) -> None:
    assert decision.standing is standing
    assert Decision.from_json(json.loads(json.dumps(decision.to_json()))) == decision


def test_the_latest_change_that_is_not_undone_counts(book: ReviewBook) -> None:
    book.decide(ANN, 3, 0, YES)
    book.decide(BEN, 3, 1, NO)
    assert book.current(3)[:2] == (2, NO)
    book.undo(ANN)  # hers was covered by his: nothing is taken from him
    assert book.current(3)[:2] == (2, NO)
    book.undo(BEN)
    assert book.current(3)[:2] == (0, NOTHING)
    book.redo(ANN)
    assert book.current(3)[:2] == (1, YES)


def test_who_has_not_seen_the_latest_is_told(book: ReviewBook) -> None:
    book.decide(ANN, 3, 0, YES)
    with pytest.raises(Refusal, match="Ann has decided") as refused:
        book.decide(BEN, 3, 0, NO)
    assert refused.value.status == 409
    assert book.current(3)[1] == YES
    book.decide(BEN, 4, 0, NO)


def test_everything_is_there_after_a_restart(book: ReviewBook, tmp_path: Path) -> None:
    for row in range(5):
        book.decide(ANN, row, 0, YES)
    book.decide_many(BEN, "reject all", dict.fromkeys(range(10, 15), NO))
    book.undo(ANN)
    book.undo(BEN)
    again = reopened(book, tmp_path)
    assert [again.current(row)[1] for row in range(6)] == [YES] * 4 + [NOTHING] * 2
    assert again.depths(ANN.id) == (4, 1)
    assert again.depths(BEN.id) == (0, 1)
    again.redo(BEN)
    assert again.counts()["rejected"] == 5
    again.redo(ANN)
    assert again.counts()["accepted"] == 5
    again.decide(ANN, 9, 0, NO)
    assert again.depths(ANN.id) == (6, 0)


def test_a_bulk_change_is_undone_as_one(book: ReviewBook) -> None:
    book.decide(ANN, 1, 0, NO)
    book.decide_many(ANN, "accept", dict.fromkeys(range(10), YES))
    book.decide(BEN, 2, book.current(2)[0], NO)
    book.undo(ANN)
    assert book.current(1)[1] == NO
    assert book.current(2)[1] == NO  # decided since by another
    assert book.current(3)[1] == NOTHING
    assert book.undo(ANN) is not None
    assert book.undo(ANN) is None


def test_a_torn_line_is_skipped_and_spoils_no_other(book: ReviewBook, tmp_path: Path) -> None:
    book.decide(ANN, 1, 0, YES)
    book.decide(ANN, 2, 0, YES)
    book.close()
    path = tmp_path / "review.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    again = ReviewBook.open(path, MARK)
    assert (again.current(1)[1], again.current(2)[1]) == (YES, NOTHING)
    again.decide(ANN, 5, 0, NO)
    last = reopened(again, tmp_path)
    assert (last.current(1)[1], last.current(2)[1], last.current(5)[1]) == (YES, NOTHING, NO)


def test_a_broken_line_in_the_middle_is_named(book: ReviewBook, tmp_path: Path) -> None:
    book.close()
    path = tmp_path / "review.jsonl"
    path.write_bytes(path.read_bytes() + b'{"change": "what"}\n')
    with pytest.raises(JournalError, match="line 2"):
        ReviewBook.read(path, MARK)


def test_a_journal_knows_its_log_and_has_one_writer(book: ReviewBook, tmp_path: Path) -> None:
    path = tmp_path / "review.jsonl"
    with pytest.raises(JournalError, match="another run"):
        ReviewBook.read(path, LogMark(21, MARK.time))
    with pytest.raises(JournalError, match="another review"):
        ReviewBook.open(path, MARK)
    assert ReviewBook.read(path, MARK).sequence == 0
    book.close()
    ReviewBook.open(path, MARK).close()


def test_lines_are_only_added(book: ReviewBook, tmp_path: Path) -> None:
    path = tmp_path / "review.jsonl"
    before = path.read_bytes()
    for act in ("decide", "undo", "redo"):
        if act == "decide":
            book.decide(ANN, 1, 0, YES)
        else:
            (book.undo if act == "undo" else book.redo)(ANN)
        now = path.read_bytes()
        assert now.startswith(before)
        assert now != before
        before = now


ACTS = st.lists(
    st.tuples(st.sampled_from(["decide", "bulk", "undo", "redo"]), st.sampled_from([ANN, BEN]), st.integers(0, 19)),
    max_size=40,
)


@given(ACTS)
@settings(max_examples=60, deadline=None)
def test_any_history_reads_back_the_same(acts: list[tuple[str, Author, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, patch("os.fsync"):
        path = Path(folder) / "review.jsonl"
        book = ReviewBook.open(path, MARK)
        for number, (act, author, row) in enumerate(acts):
            decision = Decision((number % 3 == 0, None if number % 2 else True), flagged=number % 5 == 0)
            if act == "decide":
                book.decide(author, row, book.current(row)[0], decision)
            elif act == "bulk":
                decisions = dict.fromkeys(range(row, 20), decision)
                book.decide_many(author, "bulk", decisions)
            else:
                (book.undo if act == "undo" else book.redo)(author)
        book.close()
        again = ReviewBook.read(path, MARK)
    assert [again.current(row)[:2] for row in range(20)] == [book.current(row)[:2] for row in range(20)]
    assert again.counts() == book.counts()
    assert [again.depths(one.id) for one in (ANN, BEN)] == [book.depths(one.id) for one in (ANN, BEN)]
    counted = sum(book.current(row)[1].standing is Standing.ACCEPTED for row in range(20))
    assert book.counts()["accepted"] == counted


@given(ACTS)
@settings(max_examples=40, deadline=None)
def test_undoing_everything_leaves_nothing_and_redoing_brings_it_back(acts: list[tuple[str, Author, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, patch("os.fsync"):
        book = ReviewBook.open(Path(folder) / "review.jsonl", MARK)
        for _, _, row in acts:
            book.decide(ANN, row, book.current(row)[0], YES if row % 2 else NO)
        states = [book.current(row)[1] for row in range(20)]
        for _ in acts:
            assert book.undo(ANN) is not None
        assert book.undo(ANN) is None
        assert [book.current(row)[1] for row in range(20)] == [NOTHING] * 20
        for _ in acts:
            assert book.redo(ANN) is not None
        assert [book.current(row)[1] for row in range(20)] == states
        book.close()


def operations_of(original: str, target: str) -> tuple[EditOperation, ...]:
    script = gold_script(tokenize(original), tokenize(target))
    return tuple(EditOperation(one.op, one.token, 0.9, 0) for one in script)


def test_units_pair_what_goes_with_what_comes() -> None:
    operations = operations_of("two men ride horses", "a woman rides a brown horse")
    assert [unit.name for unit in units_of(operations)] == [
        "two -> a",
        "men -> woman",
        "ride -> rides",
        "horses -> a",
        "+brown",
        "+horse",
    ]
    assert [unit.name for unit in units_of(operations_of("a big dog", "a dog sleeps"))] == ["-big", "+sleeps"]
    assert units_of(operations_of("a dog", "a dog")) == []


def test_each_operation_can_be_taken_or_left() -> None:
    original, target = "A dog, on the red sofa.", "a cat on the blue sofa"
    operations = operations_of(original, target)
    units = units_of(operations)
    assert [unit.name for unit in units] == ["dog -> cat", "red -> blue"]
    refined = "A cat, on the blue sofa."
    made = [
        decided_caption(original, refined, operations, units, accepted)
        for accepted in ([True, True], [True, False], [False, True], [False, False])
    ]
    assert made == [refined, "A cat, on the red sofa.", "A dog, on the blue sofa.", original]


WORDS = st.lists(st.sampled_from("a dog cat sits on the red sofa".split()), max_size=7)


@given(WORDS, WORDS, st.data())
def test_decisions_only_ever_mix_the_two_captions(source: list[str], target: list[str], data: st.DataObject) -> None:
    original = " ".join(source)
    operations = operations_of(original, " ".join(target))
    units = units_of(operations)
    changes = [at for at, one in enumerate(operations) if one.op is not Op.KEEP]
    assert sorted(at for unit in units for at in unit.operations) == changes
    accepted = data.draw(st.lists(st.booleans(), min_size=len(units), max_size=len(units)))
    refined = realise(original, gold_script(source, target))
    words = tokenize(decided_caption(original, refined, operations, units, accepted))
    gone = sum(unit.deleted is not None for unit, yes in zip(units, accepted, strict=True) if yes)
    came = sum(unit.added is not None for unit, yes in zip(units, accepted, strict=True) if yes)
    assert len(words) == len(source) - gone + came
    assert set(words) <= {*source, *target}

"""The review app over HTTP, and what it exports."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from capedit.data import FORMATS, open_dataset
from capedit.pipeline import Run
from capedit.server.app import review_app
from capedit.server.review.index import LogIndex
from capedit.server.review.query import About, Progress, Query, Sort, Term, matching, parse_search
from capedit.server.review.review import Review
from capedit.server.review.units import units_of
from tests.calling import run
from tests.server.conftest import BASE, picture
from tests.server.runs import EDITS, write_run

ANN = {"id": "ann-browser", "name": "Ann"}
BEN = {"id": "ben-browser", "name": "Ben"}


class Client:
    """Someone at the review page."""

    def __init__(self, http: TestClient) -> None:
        self.http = http

    def post(self, path: str, status: int = 200, **body: Any) -> Any:
        answer = self.http.post(f"/api/v1/review{path}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def item(self, row: int) -> Any:
        return self.http.get(f"/api/v1/review/items/{row}").json()

    def decide(self, row: int, units: str = "", author: Any = ANN, status: int = 200, **decision: Any) -> Any:
        base = self.item(row)["state"]["change"]
        return self.post("/decide", status, author=author, row=row, base=base, decision={"units": units, **decision})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return write_run(tmp_path)


@pytest.fixture
def page(out: Path) -> Iterator[Client]:
    with TestClient(review_app(Review(out), reviewer="Ann"), base_url=BASE) as http:
        yield Client(http)


def captions(path: Path) -> list[str]:
    return [instance.reference for instance in open_dataset(path)]


def export(page: Client, **wanted: Any) -> Path:
    return Path(page.post("/export", **wanted)["path"])


def test_lowest_confidence_comes_first(page: Client) -> None:
    assert page.post("/query")["rows"] == [1, 4, 5, 3, 0]
    about = page.http.get("/api/v1/review").json()
    assert (about["total"], about["proposals"], about["reviewer"]) == (6, 5, "Ann")
    lines = page.post("/rows", rows=[1, 2])
    assert [(line["caption"], line["standing"]) for line in lines] == [
        ("A woman rides a brown horse.", "open"),
        ("A plate of food.", "open"),
    ]
    item = page.item(1)
    assert item["status"] == "held"
    assert page.http.get(item["image"]).content == picture(1, (96, 64))
    assert page.http.get("/api/v1/review/items/99").status_code == 404
    assert page.http.get("/api/v1/review/items/x").status_code == 422


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (Query(), [1, 4, 5, 3, 0]),
        (Query(sort=Sort.CONFIDENT), [0, 3, 5, 4, 1]),
        (Query(sort=Sort.DATASET), [0, 1, 3, 4, 5]),
        (Query(sort=Sort.CHANGES), [1, 4, 0, 3, 5]),
        (Query(about=About.ALL), [1, 4, 5, 3, 0, 2]),
        (Query(about=About.UNCHANGED), [2]),
        (Query(about=About.HELD), [1]),
        (Query(about=About.CHANGED), [4, 5, 3, 0]),
        (Query(about=About.FAILED), []),
        (Query(search="dog -> cat"), [4, 3, 0]),
        (Query(search="dog->cat snow"), [3]),
        (Query(search="-dog"), [4, 3, 0]),
        (Query(search="+brown"), [1]),
        (Query(search="+nothing"), []),
        (Query(search="HORSE"), [1]),
        (Query(search='"in the snow"'), [3]),
        (Query(search="-big -one"), [4]),
        (Query(min_confidence=0.5, max_confidence=0.9), [4, 5]),
        (Query(min_words=6), [4, 5, 3, 0]),
        (Query(max_words=4), [1]),
        (Query(progress=Progress.DECIDED), []),
        (Query(progress=Progress.TODO), [1, 4, 5, 3, 0]),
    ],
)
def test_filters(out: Path, query: Query, rows: list[int]) -> None:
    review = Review(out, read_only=True)
    assert matching(query, review.index, review.book).tolist() == rows


def test_the_search_language() -> None:
    assert parse_search('red "a dog" -cat +Mouse x->y p  ->  q') == [
        Term("red"),
        Term("a dog"),
        Term(deleted="cat"),
        Term(added="mouse"),
        Term(deleted="x", added="y"),
        Term(deleted="p", added="q"),
    ]
    assert parse_search("") == []


def test_the_index_knows_the_same_units_as_the_items(out: Path) -> None:
    review = Review(out, read_only=True)
    index = LogIndex(review.log)
    for row in review.log:
        units = units_of(row.operations)
        places = slice(int(index.starts[row.row]), int(index.starts[row.row + 1]))
        assert [index._word(int(code)) for code in index.deleted[places]] == [unit.deleted for unit in units]
        assert [index._word(int(code)) for code in index.added[places]] == [unit.added for unit in units]
        assert index.probability[places].tolist() == pytest.approx([unit.probability for unit in units])
    kinds = index.kinds(np.ones(len(index.deleted), bool), 3)
    assert (kinds[0].deleted, kinds[0].added, kinds[0].count) == ("dog", "cat", 3)


def test_decisions_are_saved_and_found_again(page: Client, out: Path) -> None:
    page.decide(0, "+")
    page.decide(1, "+-++--")
    page.decide(3, "-", flagged=True, note="look at the tail")
    page.decide(4, "????", text="The cat sleeps.")
    page.decide(5, "?", skipped=True)
    assert page.item(1)["state"]["caption"] == "A men rides a."
    assert [page.item(row)["state"]["standing"] for row in (0, 1, 3, 4, 5)] == [
        "accepted",
        "mixed",
        "rejected",
        "retyped",
        "skipped",
    ]
    assert page.post("/query", progress="flagged")["rows"] == [3]
    assert page.post("/query", progress="decided")["rows"] == [1, 4, 3, 0]
    assert page.post("/query", progress="skipped")["rows"] == [5]
    again = Review(out, read_only=True)
    assert again.item(3).decision.note == "look at the tail"
    assert again.item(4).caption() == "The cat sleeps."


def test_lines_say_what_items_say(page: Client) -> None:
    page.decide(0, "-")
    page.decide(1, "+-++--")
    page.decide(3, "+")
    page.decide(4, "?-??")
    page.decide(5, "?", text="a man")
    lines = page.post("/rows", rows=list(range(6)))
    assert [line["caption"] for line in lines] == [page.item(row)["state"]["caption"] for row in range(6)]
    assert [line["standing"] for line in lines] == ["rejected", "mixed", "open", "accepted", "partial", "retyped"]


def test_undo_and_redo_by_author(page: Client) -> None:
    page.decide(0, "+")
    page.decide(3, "-", author=BEN)
    page.decide(5, "+")
    told = page.post("/undo", author=ANN)
    assert (told["rows"], told["count"], told["told"]["undo"], told["told"]["redo"]) == ([5], 1, 1, 1)
    page.post("/undo", author=ANN)
    assert page.post("/undo", author=ANN)["count"] == 0
    assert page.item(3)["state"]["standing"] == "rejected"
    page.post("/redo", author=ANN)
    assert page.item(0)["state"]["standing"] == "accepted"
    assert page.item(5)["state"]["standing"] == "open"


DOG_TO_CAT: dict[str, Any] = {
    "author": ANN,
    "deleted": "dog",
    "added": "cat",
    "min_probability": 0.9,
    "verdict": "accept",
}


def test_bulk_shows_first_then_does_then_undoes(page: Client) -> None:
    page.decide(0, "-")
    seen = page.post("/bulk", **DOG_TO_CAT)
    assert (seen["items"], seen["units"], seen["decided_before"]) == (1, 1, 1)
    assert seen["samples"][0]["caption"] == "A cat runs in the snow."
    assert page.item(3)["state"]["standing"] == "open"
    done = page.post("/bulk", **DOG_TO_CAT, preview=False)
    assert done["told"]["undo"] == 2
    assert page.item(3)["state"]["standing"] == "accepted"
    assert page.item(0)["state"]["standing"] == "rejected"  # a person's word stays
    page.post("/bulk", **{**DOG_TO_CAT, "min_probability": 0, "preview": False})
    assert page.item(4)["state"]["standing"] == "partial"  # its other edits are not of this kind
    undone = page.post("/undo", author=ANN)
    assert undone["label"] == "accept dog -> cat"
    assert page.item(4)["state"]["standing"] == "open"
    everything: dict[str, Any] = {"author": BEN, "any_edit": True, "verdict": "reject", "preview": False}
    assert page.post("/bulk", **everything, query={"max_confidence": 0.6})["items"] == 2
    assert page.item(5)["state"]["standing"] == "open"
    page.post("/bulk", 422, author=ANN, verdict="accept")


def test_two_people_are_kept_apart(page: Client) -> None:
    base = page.item(1)["state"]["change"]
    page.decide(1, "++++++", author=ANN)
    refused = page.post("/decide", 409, author=BEN, row=1, base=base, decision={"units": "------"})
    assert "Ann has decided" in refused["detail"]
    assert page.item(1)["state"]["by"] == "Ann"
    page.post("/news", author=ANN, since=0, row=1)
    news = page.post("/news", author=BEN, since=0, row=4)
    assert [state["row"] for state in news["states"]] == [1]
    assert news["present"] == [{"name": "Ann", "row": 1}]
    assert page.post("/news", author=BEN, since=news["sequence"])["states"] == []
    assert news["proposals_decided"] == 1
    assert news["team_pace"] > 0
    assert news["pace"] == 0


def test_export_says_what_was_decided(page: Client, out: Path) -> None:
    original = [caption for caption, _, _ in EDITS]
    page.decide(0, "-")
    page.decide(1, "++++++")
    page.decide(4, "+???")
    page.decide(5, "?", text="a man with a hat")
    expected = [
        original[0],  # rejected, though the run had changed it
        "A woman rides a brown horse.",  # accepted, though the run had held it
        original[2],
        "A cat runs in the snow.",  # nobody decided: as in the output
        "The cat, sleeps.",
        "a man with a hat",
    ]
    assert captions(export(page, format="jsonl")) == expected
    before = captions(export(page, format="jsonl", undecided="original"))
    assert before == [*expected[:3], original[3], "The cat, a big one, sleeps.", expected[5]]
    assert captions(export(page, format="csv", undecided="refined")) == expected
    assert captions(export(page, format="jsonl", undecided="drop")) == [*expected[:2], expected[5]]
    assert captions(out) != expected  # the output itself is not touched
    record = json.loads(export(page, format="jsonl").read_text().splitlines()[5])
    assert record["licence"] == 5 % 3


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_export_in_every_format(page: Client, format: str) -> None:
    for row in (0, 3):
        page.decide(row, "-")
    path = export(page, format=format)
    expected = [EDITS[0][0], EDITS[1][0], EDITS[2][0], EDITS[3][0], "The cat, sleeps.", "a man with a blue hat"]
    found = {
        str(instance.image and Path(instance.image.name or "").stem): instance.reference
        for instance in open_dataset(path)
    }
    if format == "sidecar" or len(found) == 6:
        assert sorted(found.values()) == sorted(expected)
    else:
        assert captions(path) == expected


def test_pairs_to_train_on(page: Client, tmp_path: Path) -> None:
    page.decide(0, "+")
    page.decide(1, "------")
    page.decide(3, "+", flagged=True)
    page.decide(4, "?", skipped=True, status=422)
    page.decide(4, "????", skipped=True)
    page.decide(5, "?", text="a man with a hat")
    found = list(open_dataset(export(page, format="ee", what="pairs")))
    assert [(one.reference, one.target) for one in found] == [
        ("A dog lies on a sofa.", "A cat lies on a sofa."),
        ("Two men ride horses.", "Two men ride horses."),
        ("a man with a red hat", "a man with a hat"),
    ]
    assert found[0].image is not None
    assert found[0].image.read() == picture(0, (96, 64))
    assert found[0].target_tokens == ("a", "cat", "lies", "on", "a", "sofa")


def test_what_was_written_can_be_downloaded_and_nothing_else(page: Client, out: Path) -> None:
    told = page.post("/export", format="jsonl")
    answer = page.http.get(told["download"])
    assert answer.content == Path(told["path"]).read_bytes()
    assert "attachment" in answer.headers["content-disposition"]
    for name in ("..%2freview.jsonl", "review.jsonl", "%2e%2e", "../review.jsonl"):
        assert page.http.get(f"/api/v1/review/exports/{name}").status_code == 404
    page.post("/export", 422, format="/etc/passwd")


def test_the_command_line_exports(page: Client, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page.decide(0, "-")
    page.decide(3, "+")
    target, pairs = tmp_path / "reviewed.csv", tmp_path / "pairs.json"
    assert run("review", out, "--export", target, "--export-pairs", pairs, "--json") == 0  # while the app is running
    told = json.loads(capsys.readouterr().out)["exports"]
    assert [(one["format"], one["instances"]) for one in told] == [("csv", 6), ("ee", 2)]
    assert captions(target)[0] == EDITS[0][0]
    assert run("review", tmp_path / "none.jsonl") == 1
    assert "not made by capedit fix" in capsys.readouterr().err


def test_decisions_applied_to_the_output_and_taken_back(
    page: Client, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    untouched = out.read_bytes()
    page.decide(0, "-")
    page.decide(1, "++++++")
    assert run("review", out, "--apply") == 0
    assert captions(out)[:2] == [EDITS[0][0], "A woman rides a brown horse."]
    assert len(Run(out).decided) == 2
    page.post("/undo", author=ANN)
    page.post("/undo", author=ANN)
    assert run("review", out, "--apply") == 0
    assert out.read_bytes() == untouched
    assert "2 captions changed" in capsys.readouterr().out


def test_many_captions_are_quick(tmp_path: Path) -> None:
    """The columns must not be read row by row: ten thousand captions are no matter."""
    edits = [EDITS[number % len(EDITS)] for number in range(10_000)]
    out = write_run(tmp_path, edits, pictures=False)
    with TestClient(review_app(Review(out)), base_url=BASE) as http:
        page = Client(http)
        found = page.post("/query", search="dog -> cat", min_confidence=0.9)
        assert len(found["rows"]) == sum(edit[2] > 0.9 and "dog" in edit[0] for edit in edits)
        assert page.post("/bulk", **DOG_TO_CAT, preview=False)["items"] == len(found["rows"])
        news = page.post("/undo", author=ANN)["told"]
        assert news["stale"]
        assert news["counts"]["open"] == 10_000

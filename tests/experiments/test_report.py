import csv
from pathlib import Path

import pytest

from capedit.experiments.reproduce.claims import check_claims
from capedit.experiments.reproduce.paper import COCO, FLICKR, PAPER
from capedit.experiments.reproduce.report import Report, write_report
from capedit.experiments.reproduce.report.text import as_csv, as_latex, as_markdown
from capedit.experiments.reproduce.table import Row, Table, cell

TABLE = Table(
    2,
    "Comparison & more",
    ("B-1", "C"),
    (
        Row(COCO, "TIger", {"B-1": 54.8, "C": 194.8}, {"B-1": 50.0, "C": 150.25}),
        Row(COCO, "T_del", {"B-1": 55.0, "C": None}),
        Row(COCO, "only ours", {}, {"C": 1.5}),
    ),
    ("A note with 5 %.",),
)


def test_the_papers_own_arithmetic_holds() -> None:
    """GPS = gain in CIDEr-D over the Ref-Caps / ES, and ES = D + A, to the digits that are printed."""
    for number, benchmark in ((2, COCO), (3, FLICKR)):
        start = PAPER[number].row(benchmark, "Ref-Caps").paper["C"]
        assert start is not None
        for row in PAPER[number].rows:
            cells = [row.paper[name] for name in ("C", "ES", "GPS", "D", "A")]
            if None not in cells:
                c, es, gps, d, a = (float(value or 0) for value in cells)
                assert (c - start) / es == pytest.approx(gps, abs=0.03)
                assert d + a == pytest.approx(es, abs=0.021)


def test_rows_that_tables_share_are_printed_alike() -> None:
    for number, benchmark in ((2, COCO), (3, FLICKR)):
        tiger = PAPER[number].row(benchmark, "TIger").paper
        rounds = "4" if benchmark == COCO else "3"
        shared = [(4, "1.5"), (5, "both"), (6, rounds), (7, "pre-trained")]
        for other, label in shared:
            row = PAPER[other].row(benchmark, label).paper
            assert {name: row[name] for name in ("B-1", "B-4", "R", "C", "S")} == {
                name: tiger[name] for name in ("B-1", "B-4", "R", "C", "S")
            }
        for system in ("V-EditNTS", "V-Felix", "V-LaserTagger"):
            assert PAPER[8].row(benchmark, system).paper["C"] == PAPER[number].row(benchmark, system).paper["C"]
            assert PAPER[9].row(benchmark, system).paper["C"] == PAPER[number].row(benchmark, system).paper["C"]


def test_multiply_accumulates_of_the_paper_are_those_of_its_forwards() -> None:
    for number, rounds in enumerate(("1 round", "2 rounds", "3 rounds", "4 rounds"), start=1):
        printed = PAPER[9].row(COCO, f"TIger, {rounds}").paper["GMACs"]
        assert printed == pytest.approx(7.508 * (1 + 2 * number), abs=0.05)


def test_markdown_has_our_row_under_the_papers() -> None:
    lines = as_markdown(TABLE).splitlines()
    assert lines[2:] == [
        "| COCO-EE | | B-1 | C |",
        "|---|---|---|---|",
        "| TIger | paper | 54.8 | 194.8 |",
        "| TIger | ours | 50.0 | 150.2 |",
        "| T_del | paper | 55.0 | – |",
        "| only ours | ours | – | 1.5 |",
        "",
        "- A note with 5 %.",
    ]


def test_latex_is_escaped() -> None:
    latex = as_latex(TABLE)
    assert r"\caption{Comparison \& more}" in latex
    assert r"T\_del & paper & 55.0 & -- \\" in latex
    assert latex.count(r"\begin{tabular}{llrr}") == 1


def test_csv_can_be_read_back() -> None:
    rows = list(csv.DictReader(as_csv(TABLE).splitlines()))
    assert [(row["row"], row["source"], row["C"]) for row in rows] == [
        ("TIger", "paper", "194.8"),
        ("TIger", "ours", "150.25"),
        ("T_del", "paper", ""),
        ("only ours", "ours", "1.5"),
    ]


def test_a_table_goes_through_json() -> None:
    assert Table.from_json(TABLE.to_json()) == TABLE


@pytest.mark.parametrize(
    ("value", "column", "text"),
    [
        (None, "C", "–"),
        (97567, "", "97,567"),
        (48, "", "48"),
        (8.384, "GPS", "8.38"),
        (194.84, "C", "194.8"),
        (24.0, "B-4", "24.0"),
    ],
)
def test_numbers_are_printed_as_tables_do(value: float | None, column: str, text: str) -> None:
    assert cell(value, column) == text


def filled(number: int, benchmark: str, column: str, ours: dict[str, float]) -> Table:
    """The paper's table with numbers of ours in one column."""
    printed = PAPER[number]
    rows = [
        Row(row.benchmark, row.label, row.paper, {column: ours[row.label]} if row.label in ours else {})
        for row in printed.rows
        if row.benchmark == benchmark
    ]
    return Table(number, printed.title, printed.columns, tuple(rows))


def test_claims_are_checked_against_our_numbers() -> None:
    rising = filled(6, COCO, "C", {"1": 150.0, "2": 160.0, "3": 155.0, "4": 156.0, "5": 156.0})
    claims = check_claims({6: rising})
    assert [(claim.paper, claim.ours) for claim in claims] == [(True, True), (True, False)]
    assert claims[1].figures == "3: 155.00, 2: 160.00"


def test_tables_without_our_numbers_claim_nothing() -> None:
    assert check_claims(PAPER) == []


def test_a_report_has_all_its_files(tmp_path: Path) -> None:
    tables = {
        4: filled(4, COCO, "C", {"1.0": 1, "1.2": 2, "1.5": 3, "2.0": 2}),
        6: filled(6, FLICKR, "C", {"1": 1, "2": 2, "3": 3, "4": 3, "5": 3}),
        9: filled(9, COCO, "IT (ms)", {"V-Felix": 2.0}),
    }
    page = write_report(Report(tables, ["Made up <here>."]), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"report.md", "report.tex", "index.html", "lambda.png", "rounds.png", "time.png", "table-4.csv"}
    text = page.read_text()
    assert "Made up &lt;here&gt;." in text
    assert text.count("<h2 id=table-") == 3
    assert text.count("<tbody><tr class=paper><th scope=rowgroup rowspan=2>1.5</th>") == 1  # one name for both rows
    assert text.index("lambda.png") < text.index("<h2 id=table-6")  # a plot stands with its table
    assert "does not hold" not in text
    assert "![" in (tmp_path / "report.md").read_text()

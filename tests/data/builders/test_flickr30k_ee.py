"""Flickr30K-EE from a made csv: look-up order, the published bug and its mending, bad rows."""

from pathlib import Path

import pytest

from capedit.data import DataError, open_dataset, write_dataset
from capedit.data.builders import Mode, flickr30k_ee, read_esnli

HEADER = ",pairID,Flickr30kID,hypothesis,gold_label,explanation\n"
# Premise 11.jpg#0r1 has three contradictions under all three old labels, one of which the entailment itself once had.
ROWS = """\
0,11.jpg#0r1n,11.jpg,Two cats sleep.,contradiction,x
1,11.jpg#0r1e,11.jpg,A dog runs.,contradiction,x
2,11.jpg#0r2e,11.jpg,An animal is outside.,entailment,"a, b"
3,11.jpg#0r1x,11.jpg,"A man, in red.",entailment,x
4,11.jpg#0r2c,11.jpg,Nobody is there!,contradiction,x
5,22.jpg#3r1c,22.jpg,A car.,contradiction,x
6,22.jpg#3r1n,22.jpg,It is late.,neutral,x
7,22.jpg#3r1e,22.jpg,Someone's bike,entailment,x
8,33.jpg#3r1e,33.jpg,Alone,entailment,x
9,11.jpg#0r1c,11.jpg,Fish swim.,contradiction,x
"""


def write_csv(folder: Path, rows: str = ROWS, header: str = HEADER) -> Path:
    path = folder / "esnlive.csv"
    path.write_text(header + rows, encoding="utf-8")
    return path


def pairs(path: Path, mode: Mode) -> list[tuple[int | str, object, str, str | None]]:
    return [(one.id, one.image_id, one.reference, one.target) for one in flickr30k_ee(read_esnli(path), mode)]


def test_every_contradiction_of_the_premise_gives_a_record_in_the_order_c_n_e(tmp_path: Path) -> None:
    assert pairs(write_csv(tmp_path), Mode.FIXED) == [
        (1, 11, "nobody is there", "an animal is outside"),
        (2, 11, "fish swim", "a man in red"),
        (3, 11, "two cats sleep", "a man in red"),
        (4, 11, "a dog runs", "a man in red"),
        (5, 22, "a car", "someone 's bike"),
    ]


def test_as_released_overwrites_with_the_last_hit(tmp_path: Path) -> None:
    assert pairs(write_csv(tmp_path), Mode.AS_RELEASED) == [
        (1, 11, "nobody is there", "an animal is outside"),
        (2, 11, "a dog runs", "a man in red"),
        (3, 11, "a dog runs", "a man in red"),
        (4, 11, "a dog runs", "a man in red"),
        (5, 22, "a car", "someone 's bike"),
    ]


def test_written_records_have_the_published_fields(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    write_dataset(flickr30k_ee(read_esnli(write_csv(tmp_path)), Mode.FIXED), out)
    last = list(open_dataset(out))[-1]
    assert last.origin is not None
    assert dict(last.origin.record) == {
        "image_id": 22,
        "Ref-Cap": "a car",
        "Ref-Cap_tokens": ["a", "car"],
        "GT-Cap": "someone 's bike",
        "GT-Cap_tokens": ["someone", "'s", "bike"],
        "sample_id": 5,
    }


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("0,1.jpg#0r1c,1.jpg,A car.,maybe,x\n", r"line 2, column 'gold_label': expected one of .*'maybe'"),
        ("0,1.jpg#0r1c,one.jpg,A car.,neutral,x\n", r"line 2, column 'Flickr30kID': expected a name"),
        ("0,1.jpg#0r1c,1.jpg,  ,neutral,x\n", r"line 2, column 'hypothesis': empty"),
        ("0,1.jpg#0r1c,1.jpg\n", r"line 2, column 'hypothesis': empty or missing"),
        ('0,1.jpg#0r1c,1.jpg,"A car.,neutral,x\n', r"not CSV"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(read_esnli(write_csv(tmp_path, row)))


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column 'gold_label'"):
        list(read_esnli(write_csv(tmp_path, "", "pairID,Flickr30kID,hypothesis\n")))


def test_files_that_are_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        list(read_esnli(tmp_path / "none.csv"))
    broken = tmp_path / "broken.csv"
    broken.write_bytes(HEADER.encode() + b"0,\xff\xfe\n")
    with pytest.raises(DataError, match="not UTF-8"):
        list(read_esnli(broken))

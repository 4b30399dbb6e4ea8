"""Every command through the real `main`, as a user calls it."""

import csv
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from capedit.cli import COMMANDS
from tests.calling import run, run_json

PAIRS = [
    ("a dog lies on a sofa", "a black cat lies on a red sofa"),
    ("two men ride horses", "a woman rides a horse in the snow"),
    ("a plate of food", "a plate of food"),
]


@pytest.fixture
def pairs_file(tmp_path: Path) -> Path:
    records = [
        {
            "image_id": number // 2,
            "Ref-Cap": reference,
            "Ref-Cap_tokens": reference.split(),
            "GT-Cap": target,
            "GT-Cap_tokens": target.split(),
            "sample_id": number,
        }
        for number, (reference, target) in enumerate(PAIRS)
    ]
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps(records))
    return path


def test_every_command_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        assert run(name, "--help") == 0
        assert "Usage" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert "numpy" in run_json(capsys, "version")["packages"]


def test_diff_draws_the_edit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("diff", "A dog sleeps.", "A cat sleeps.") == 0
    assert "a [-dog-] sleeps" in capsys.readouterr().out


def test_diff_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    result = run_json(capsys, "diff", "A dog sleeps.", "A black cat sleeps.", "--order", "balanced")
    assert result["caption"] == "a black cat sleeps"
    assert result["operations"] == [
        {"op": "DELETE", "token": "dog", "round": 0},
        {"op": "ADD", "token": "cat", "round": 1},
        {"op": "ADD", "token": "black", "round": 2},
    ]
    assert (result["rounds"], result["steps"]) == (2, 3)


def test_diff_as_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "edit.svg"
    assert run("diff", "a dog", "a cat", "--as", "svg", "-o", picture) == 0
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")


@pytest.mark.parametrize("caption", ["", "!!!", "👍", "كلب", "word " * 10_000])
def test_diff_takes_any_caption(caption: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_json(capsys, "diff", caption, "a cat")


def test_stats(pairs_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = run_json(capsys, "stats", pairs_file)
    assert (result["instances"], result["images"], result["vocabulary"]) == (3, 2, 21)
    assert result["mean_reference_length"] == pytest.approx(14 / 3)
    assert result["mean_target_length"] == pytest.approx(20 / 3)
    assert result["mean_edit_distance"] == pytest.approx((4 + 12 + 0) / 3)
    assert result["rounds"]["reference"]["left-to-right"][:2] == pytest.approx([100 / 3, 200 / 3])
    assert result["rounds"]["best"]["balanced"][-1] == 100
    assert run("stats", pairs_file) == 0
    assert "mean edit distance" in capsys.readouterr().out


def test_convert_there_and_back(pairs_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there, back = tmp_path / "pairs.parquet", tmp_path / "back.json"
    assert run_json(capsys, "convert", pairs_file, there)["instances"] == 3
    assert run("convert", there, back) == 0
    assert json.loads(back.read_text()) == json.loads(pairs_file.read_text())


def test_a_bad_record_is_named_and_the_rest_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pairs.jsonl"
    lines = [json.dumps({"Ref-Cap": "a dog", "GT-Cap": "a cat", "sample_id": number}) for number in range(3)]
    file.write_text("\n".join([lines[0], '{"Ref-Cap": 7}', *lines[1:]]))
    assert run("stats", file, "--json") == 3
    captured = capsys.readouterr()
    assert json.loads(captured.out)["instances"] == 3
    assert "line 2" in captured.err
    assert run("stats", file, "--strict") == 1
    assert "line 2" in capsys.readouterr().err


def test_a_missing_file_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("stats", tmp_path / "none.json") == 1
    assert "none.json" in capsys.readouterr().err


def test_score_of_reference_captions(pairs_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = run_json(capsys, "score", pairs_file, "--no-spice")
    assert set(result) == {"scores", "signature"}
    assert set(result["scores"]) == {"BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D", "broken"}
    assert "tok:ptb" in result["signature"]


def write_predictions(pairs_file: Path, name: str, predictions: list[str]) -> Path:
    records = json.loads(pairs_file.read_text())
    path = pairs_file.with_name(name)
    path.write_text(json.dumps([r | {"prediction": p} for r, p in zip(records, predictions, strict=True)]))
    return path


def test_score_of_predictions_counts_their_edits(pairs_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_predictions(pairs_file, "gold.json", [target for _, target in PAIRS])
    scores = run_json(capsys, "score", file, "--no-spice")["scores"]
    assert scores["BLEU-4"] == pytest.approx(100)
    assert (scores["D"], scores["A"], scores["ES"]) == (
        pytest.approx(5 / 3),
        pytest.approx(11 / 3),
        pytest.approx(16 / 3),
    )
    before = run_json(capsys, "score", pairs_file, "--no-spice")["scores"]["CIDEr-D"]
    assert scores["GPS"] == pytest.approx((scores["CIDEr-D"] - before) / scores["ES"])
    implicit = run_json(capsys, "score", file, "--no-spice", "--counting", "implicit")["scores"]
    assert implicit["ES"] == pytest.approx(34 / 3)


def test_score_against_another_system(pairs_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write_predictions(pairs_file, "good.json", [target for _, target in PAIRS])
    poor = write_predictions(pairs_file, "poor.json", [reference for reference, _ in PAIRS])
    plot, table = tmp_path / "differ.png", tmp_path / "each.csv"
    options = ["--no-spice", "--against", poor, "--plot", plot, "--per-instance", table, "--intervals"]
    result = run_json(capsys, "score", good, *options)
    assert result["difference"]["CIDEr-D"]["value"] > 0
    low, high = result["intervals"]["CIDEr-D"]
    assert low <= result["scores"]["CIDEr-D"] <= high
    assert plot.read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(table.open()))
    assert [row["id"] for row in rows] == ["0", "1", "2"]
    assert float(rows[0]["BLEU-1"]) == pytest.approx(100, abs=1e-4)


def test_score_with_saved_document_frequencies(
    pairs_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "df.npz"
    whole = run_json(capsys, "score", pairs_file, "--no-spice", "--save-df", table)
    again = run_json(capsys, "score", pairs_file, "--no-spice", "--df", table)
    assert again["scores"] == pytest.approx(whole["scores"])
    assert "df:pairs.json(3)" in again["signature"]


@pytest.mark.parametrize(("option", "mark"), [("--markdown", "| BLEU-1 |"), ("--latex", r"\toprule")])
def test_score_tables_for_papers(option: str, mark: str, pairs_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("score", pairs_file, "--no-spice", option) == 0
    printed = capsys.readouterr().out
    assert mark in printed
    assert "tok:ptb" in printed


def test_score_refuses_a_plot_of_one_system(pairs_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("score", pairs_file, "--no-spice", "--plot", "x.png") == 1
    assert "--against" in capsys.readouterr().err


def test_score_names_a_record_without_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "half.jsonl"
    file.write_text('{"Ref-Cap": "a dog", "GT-Cap": "a cat"}\n{"Ref-Cap": "a dog"}\n')
    assert run("score", file, "--no-spice") == 1
    assert "line 2" in capsys.readouterr().err


def test_score_takes_the_values_of_the_java_spice(
    pairs_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "spice.json"
    values = [0.2, 0.3, 1.0]
    output.write_text(
        json.dumps([{"image_id": n, "scores": {"All": {"f": f, "pr": f, "re": f}}} for n, f in enumerate(values)])
    )
    result = run_json(capsys, "score", pairs_file, "--spice-java", output)
    assert result["scores"]["SPICE"] == pytest.approx(50)
    assert "spice:SPICE (java)" in result["signature"]
    assert run("score", pairs_file, "--spice-java", output, "--against", pairs_file) == 1
    assert "--against" in capsys.readouterr().err


def test_score_without_the_spice_extra_says_what_to_do(
    pairs_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.startswith(("lemminflect", "capedit.metrics.spice"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "lemminflect", None)
    assert run("score", pairs_file) == 1
    message = capsys.readouterr().err
    assert "capedit[spice]" in message
    assert "--no-spice" in message


def test_score_labels_our_spice_as_ours(pairs_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = run_json(capsys, "score", pairs_file)
    assert 0 < result["scores"]["SPICE"] <= 100
    assert "spice:SPICE (capedit)" in result["signature"]
    assert run("score", pairs_file, "--markdown") == 0
    assert "| SPICE (capedit) |" in capsys.readouterr().out

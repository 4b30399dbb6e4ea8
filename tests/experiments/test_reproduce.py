import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from capedit.cli import main
from capedit.errors import CapeditError
from capedit.experiments.reproduce import SCALES, Benchmark, ScaleName, make_benchmarks, reproduce
from capedit.experiments.reproduce.costs import measure_cost
from capedit.experiments.reproduce.paper import PAPER
from capedit.experiments.reproduce.tables import PLANS
from capedit.experiments.reproduce.tigers import MAIN, TigerEditor, Variant, combined
from capedit.experiments.reproduce.workshop import Workshop
from capedit.models.tiger import TagHead, Tiger, TigerConfig
from capedit.models.tiger_files import read_config
from capedit.models.vocabulary import Vocabulary
from capedit.training.systems import vision_of

TINY = SCALES[ScaleName.TINY]


@pytest.fixture(scope="module")
def benchmarks(tmp_path_factory: pytest.TempPathFactory) -> list[Benchmark]:
    return make_benchmarks(tmp_path_factory.mktemp("made"))


def config(vocabulary: Vocabulary, dim: int) -> TigerConfig:
    encoder = {**TINY.encoder, "vocabulary": len(vocabulary), "feature_width": dim}
    return read_config({"encoder": encoder, "shared": False, "matching": False})


def test_every_table_has_a_plan_for_its_benchmarks() -> None:
    assert PLANS.keys() == PAPER.keys()
    for number, plan in PLANS.items():
        assert set(PAPER[number].benchmarks) == set(plan.benchmarks)


def test_tiny_runs_end_to_end(tmp_path: Path) -> None:
    """Through the real command: all nine tables, every row measured, and nothing made twice."""
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "--scale", "tiny", "--out", str(tmp_path), "--json"])
    assert end.value.code in (0, None)
    (kept,) = (tmp_path / "tables").iterdir()
    for number, printed in PAPER.items():
        table = json.loads((kept / f"table-{number}.json").read_text())
        assert len(table["rows"]) == len(printed.rows)
        for row in table["rows"]:
            assert row["ours"], f"table {number}: nothing measured for {row['label']} on {row['benchmark']}"
    text = (tmp_path / "index.html").read_text()
    assert text.count("<figure>") > 4
    assert "the numbers mean nothing" in text

    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    reproduce(TINY, make_benchmarks(tmp_path / "made"), tmp_path, tables=[2, 8])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")} == made


def test_modules_of_two_tigers_can_be_combined(benchmarks: list[Benchmark]) -> None:
    vocabulary = benchmarks[0].vocabulary(1)
    shape = config(vocabulary, benchmarks[0].store.header.dim)
    one, other = Tiger(shape).eval(), Tiger(shape).eval()
    both = combined(one, other).state_dict()
    for name, tensor in both.items():
        source = one if name.startswith(("encoders.delete.", "taggers.delete.")) else other
        assert torch.equal(tensor, source.state_dict()[name])
    with pytest.raises(CapeditError, match="separate modules"):
        combined(Tiger(replace(shape, shared=True)), Tiger(replace(shape, shared=True)))


def test_tiger_leaves_alone_what_it_cannot_read(benchmarks: list[Benchmark]) -> None:
    vocabulary = benchmarks[0].vocabulary(1)
    torch.manual_seed(0)
    editor = TigerEditor(Tiger(config(vocabulary, benchmarks[0].store.header.dim)).eval(), vocabulary, rounds=2)
    vision = vision_of(benchmarks[0].store.batch([question.image for question in benchmarks[0].questions[:2]]))
    short, long = editor.edit(vision, [["a", "dog"], ["a"] * 60])
    assert long.tokens == ["a"] * 60
    assert long.steps.total == 0
    assert short.trace is not None
    assert short.trace.source == ("a", "dog")


def test_costs_grow_with_rounds(benchmarks: list[Benchmark]) -> None:
    """A forward of the encoder costs the same in each module: 1 for deletion, 2 a round (seeing is done once)."""
    vocabulary = benchmarks[0].vocabulary(1)
    torch.manual_seed(0)
    model = Tiger(config(vocabulary, benchmarks[0].store.header.dim)).eval()
    with torch.no_grad():  # it deletes nothing, and wants a word everywhere
        for tagger, bias in (("delete", -9.0), ("add", 9.0)):
            head = model.taggers[tagger]
            assert isinstance(head, TagHead)
            layer = head.layers[-1]
            assert isinstance(layer, torch.nn.Linear)
            layer.weight.zero_()
            layer.bias.copy_(torch.tensor([0.0, bias]))
    costs = [measure_cost(TigerEditor(model, vocabulary, rounds), benchmarks[0], 2) for rounds in (1, 2)]
    assert costs[0]["M parameters"] == costs[1]["M parameters"] > 0
    assert costs[1]["GMACs"] > costs[0]["GMACs"] > 0


def test_a_budget_in_seconds_is_measured_once(benchmarks: list[Benchmark], tmp_path: Path) -> None:
    shop = Workshop(replace(TINY, seconds=0.05), benchmarks[0], tmp_path)
    steps = shop._budget("updn", tmp_path / "updn").steps
    assert steps >= 5
    told = json.loads((tmp_path / "updn" / "budget.json").read_text())
    assert told == {"seconds": 0.05, "steps": steps}
    (tmp_path / "updn" / "budget.json").write_text(json.dumps({**told, "steps": 77}))
    assert shop._budget("updn", tmp_path / "updn").steps == 77


def test_another_scale_or_other_data_have_another_folder(benchmarks: list[Benchmark], tmp_path: Path) -> None:
    shops = [
        Workshop(TINY, benchmarks[0], tmp_path),
        Workshop(TINY, benchmarks[1], tmp_path),
        Workshop(replace(TINY, lstm_rate=0.1), benchmarks[0], tmp_path),
    ]
    assert len({shop.folder for shop in shops}) == 3


def test_variants_have_names() -> None:
    assert MAIN.name == "tiger-1.5"
    assert Variant(2.0, pretrained=True).name == "tiger-2.0-pretrained"


def test_beyond_tiny_data_are_needed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "--scale", "small", "--out", str(tmp_path)])
    assert end.value.code == 1
    assert "--features" in capsys.readouterr().err

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from capedit.errors import CapeditError
from capedit.experiments.reproduce import (
    SCALES,
    Benchmark,
    ScaleName,
    Workshop,
    estimate,
    make_benchmarks,
    reproduce,
    train_only,
)
from capedit.experiments.reproduce.costs import measure_cost
from capedit.experiments.reproduce.paper import PAPER
from capedit.experiments.reproduce.plan import in_order
from capedit.experiments.reproduce.rates import Rates
from capedit.experiments.reproduce.tables import ORDER, PLANS
from capedit.experiments.reproduce.tigers import MAIN, TigerEditor, Variant, combined, pretraining, start_from
from capedit.experiments.reproduce.workshop import EVALUATIONS, name_of
from capedit.models.tiger import TagHead, Tiger, TigerConfig
from capedit.models.tiger_files import read_config
from capedit.models.vocabulary import Vocabulary
from capedit.training.images import vision_of
from tests.calling import run

TINY = SCALES[ScaleName.TINY]
PRETRAINED = Variant(pretrained=True)


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
    assert sorted(ORDER) == sorted(PAPER)
    assert in_order([4, 2, 9]) == [2, 9, 4]  # ablations come last


def test_tiny_runs_end_to_end(tmp_path: Path) -> None:
    """Through the real command: all nine tables, every row measured, and nothing made twice."""
    assert run("reproduce", "--scale", "tiny", "--out", tmp_path, "--json") == 0
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
    assert run("reproduce", "--out", tmp_path, "--table", 2, "--table", 8) == 0
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
    model = Tiger(config(vocabulary, benchmarks[0].store.header.dim)).eval()
    editor = TigerEditor.published(model, vocabulary, rounds=2)
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
    costs = [measure_cost(TigerEditor.published(model, vocabulary, rounds), benchmarks[0], 2) for rounds in (1, 2)]
    assert costs[0]["M parameters"] == costs[1]["M parameters"] > 0
    assert costs[1]["GMACs"] > costs[0]["GMACs"] > 0


def known_rates(shop: Workshop, **steps: float) -> Workshop:
    """A workshop that has measured its models already: so many CPU seconds a step, 1 where not named."""
    for model in {name_of(model): model for plan in PLANS.values() for model in plan.models}:
        folder = shop.folder / model
        folder.mkdir(parents=True)
        rates = {"setup": 5.0, "step": steps.get(model.replace("-", "_"), 1.0), "caption": 0.5}
        (folder / "rates.json").write_text(json.dumps(rates))
    return shop


def test_a_budget_buys_steps(benchmarks: list[Benchmark], tmp_path: Path) -> None:
    shop = known_rates(Workshop(replace(TINY, seconds=60), benchmarks[0], tmp_path), updn=0.5)
    assert shop.training_of("updn").steps == 120
    assert shop.training_of("etn").steps == 60
    assert shop.training_of("updn").evaluate_every == 120 / EVALUATIONS
    assert shop.training_of(Variant(2.0)).steps == shop.training_of(MAIN).steps


def test_rates_are_measured_once_and_shared_by_all_tigers(benchmarks: list[Benchmark], tmp_path: Path) -> None:
    shop = Workshop(replace(TINY, seconds=0.05), benchmarks[0], tmp_path)
    for model in ("v-felix", MAIN):
        assert min(shop.rates(model).step, shop.rates(model).caption, shop.rates(model).setup) > 0
    (shop.folder / MAIN.name / "rates.json").write_text(json.dumps({"setup": 1, "step": 2, "caption": 3}))
    assert shop.rates(Variant(1.0, pretrained=True)) == Rates(1, 2, 3)


def test_the_plan_counts_what_is_left(benchmarks: list[Benchmark], tmp_path: Path) -> None:
    shop = known_rates(Workshop(replace(TINY, seconds=60), benchmarks[0], tmp_path))
    found = {each.table: each for each in estimate([shop], PLANS)}
    assert [len(found[number].trainings) for number in (1, 2, 6, 8, 9, 7, 5, 4)] == [0, 8, 0, 0, 0, 1, 1, 2]
    assert found[3].seconds == 0  # of another benchmark
    asked = len(benchmarks[0].questions)
    (main,) = (each for each in found[2].trainings if each.model == MAIN.name)
    assert (main.steps, main.examples, main.seconds) == (60, 60 * 16, 5 + 60 + EVALUATIONS * asked * 0.5)
    (pretrained,) = found[7].trainings
    assert pretrained.steps == 90  # and pre-training on top
    assert found[6].measuring == pytest.approx(4 * asked * 0.5, rel=0.2)  # four other numbers of rounds

    (shop.folder / MAIN.name / "finished.json").write_text("{}")
    assert len(estimate([shop], [2])[0].trainings) == 7


def test_the_plan_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("reproduce", "--table", 7, "--minutes", 0.001, "--plan", "--out", tmp_path) == 0
    told = capsys.readouterr().out
    assert "tiger-1.5-pretrained" in told
    assert "CPU hours" in told
    assert run("reproduce", "--table", 7, "--minutes", 0.001, "--plan", "--json", "--out", tmp_path) == 0
    assert [table["table"] for table in json.loads(capsys.readouterr().out)["tables"]] == [7]


def test_models_can_be_trained_one_by_one(
    benchmarks: list[Benchmark], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run("reproduce", "--only", "updn", "--out", tmp_path) == 0
    assert len(list(tmp_path.rglob("finished.json"))) == 2  # one a benchmark
    assert run("reproduce", "--only", "gpt", "--out", tmp_path) == 1
    assert "'gpt': not one of" in capsys.readouterr().err


def test_a_training_that_is_broken_off_goes_on(benchmarks: list[Benchmark], tmp_path: Path) -> None:
    """The same weights as without a break, and all that was spent is counted."""

    def stop(name: str, progress: object) -> None:
        raise RuntimeError("broken off")

    scale = replace(TINY, train=replace(TINY.train, steps=4, evaluate_every=2, checkpoint_every=1))
    whole = Workshop(scale, benchmarks[0], tmp_path / "whole")
    broken = Workshop(scale, benchmarks[0], tmp_path / "broken", watch=stop)
    train_only([whole], ["tiger-1.5-pretrained"])
    with pytest.raises(RuntimeError, match="broken off"):  # at the first evaluation, in pre-training
        train_only([broken], ["tiger-1.5-pretrained"])
    assert not broken.is_ready(PRETRAINED)
    spent = json.loads((broken.folder / PRETRAINED.name / "spent.json").read_text())
    broken.watch = lambda name, progress: None
    train_only([broken], ["tiger-1.5-pretrained"])
    files = [shop.folder / PRETRAINED.name / "weights.safetensors" for shop in (whole, broken)]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert broken.notes(PRETRAINED)["seconds"] > spent > 0


def test_pretraining_gives_one_encoder_to_all_modules(benchmarks: list[Benchmark]) -> None:
    vocabulary = benchmarks[0].vocabulary(1)
    shape = config(vocabulary, benchmarks[0].store.header.dim)
    model, pretrained = Tiger(shape), Tiger(replace(shape, shared=True))
    start_from(model, pretrained)
    for encoder in model.encoders.values():
        for name, tensor in pretrained.encoders["all"].state_dict().items():
            assert torch.equal(encoder.state_dict()[name], tensor)
    (stage,) = pretraining(TINY, TINY.train, 4).stages
    assert (stage.train.steps, stage.captions) == (TINY.train.steps // 2, True)


def test_a_guest_is_shown_beside_the_comparison(
    benchmarks: list[Benchmark], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run("reproduce", "--guest", "default", "--out", tmp_path) == 1
    assert "reads visual tokens of" in capsys.readouterr().err


def test_a_table_of_another_benchmark_is_refused(benchmarks: list[Benchmark], tmp_path: Path) -> None:
    with pytest.raises(CapeditError, match="table 3: is about Flickr30K-EE"):
        reproduce([Workshop(TINY, benchmarks[0], tmp_path)], tmp_path, tables=[3])


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
    assert run("reproduce", "--scale", "small", "--out", tmp_path) == 1
    assert "--features" in capsys.readouterr().err

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from capedit.edits import Steps
from capedit.metrics import DocumentFrequencies, EditCosts, JavaSpice, bleu, cider, evaluate, ngrams, rouge_l
from capedit.metrics.ngrams import Pair

PAIRS: list[Pair] = [
    ("a dog on a sofa", ["a cat on a sofa", "a cat asleep"]),
    ("two men in a boat", ["two men fishing in a boat"]),
    ("a red bus with a", ["a red double decker bus"]),
]
CAPTION_SCORES = ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr-D", "broken"]


class Score(NamedTuple):
    f: float


class WordOverlap:
    """A stand-in for SPICE that records how it is called."""

    kind = "overlap"

    def __init__(self) -> None:
        self.calls = 0

    def scores(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[Score]:
        self.calls += 1
        return [
            Score(float(any(set(hypothesis.split()) & set(each.split()) for each in several)))
            for hypothesis, several in zip(hypotheses, references, strict=True)
        ]


def test_scores_are_those_of_the_single_metrics_times_100() -> None:
    evaluation = evaluate(PAIRS)
    assert sorted(evaluation.scores) == sorted(CAPTION_SCORES)
    assert [evaluation.scores[f"BLEU-{n}"] for n in range(1, 5)] == pytest.approx(list(100 * bleu(PAIRS)[0]))
    assert evaluation.scores["ROUGE-L"] == pytest.approx(100 * rouge_l(PAIRS)[0])
    assert evaluation.scores["CIDEr-D"] == pytest.approx(100 * cider(PAIRS)[0])
    assert evaluation.scores["broken"] == pytest.approx(100 / 3)
    assert evaluation.per_instance["broken"].tolist() == [0.0, 0.0, 100.0]
    assert evaluation.per_instance["CIDEr-D"] == pytest.approx(100 * cider(PAIRS)[1])


def test_editing_efficiency() -> None:
    sources = ["a dog on a bed", "two men in a boat", "a bus"]
    steps = [Steps(deletes=1, adds=1), Steps(), Steps(deletes=0, adds=3, moves=1)]
    scores = evaluate(PAIRS, edits=EditCosts(steps, sources)).scores
    gain = 100 * (cider(PAIRS)[0] - cider([(s, r) for s, (_, r) in zip(sources, PAIRS, strict=True)])[0])
    assert (scores["ES"], scores["D"], scores["A"]) == pytest.approx((6 / 3, 1 / 3, 4 / 3))
    assert scores["GPS"] == pytest.approx(gain / 2)
    assert scores["structure"] == pytest.approx(100 * (4 / 5 + 1 + 1) / 3)


def test_a_system_that_edits_nothing_gains_nothing() -> None:
    edits = EditCosts([Steps()] * 3, [hypothesis for hypothesis, _ in PAIRS])
    scores = evaluate(PAIRS, edits=edits).scores
    assert scores["GPS"] == scores["ES"] == 0.0
    assert scores["structure"] == 100.0


def test_every_pair_needs_its_edit() -> None:
    with pytest.raises(ValueError, match="3 pairs, but steps of 1"):
        evaluate(PAIRS, edits=EditCosts([Steps()], ["a"]))


def test_the_signature_names_the_conditions() -> None:
    spice = WordOverlap()
    text = str(evaluate(PAIRS, spice=spice, tokeniser="ptb", duplicates="dropped").signature)
    assert text.startswith("tok:ptb|refs:1-2|n:3|df:references(3)|dup:dropped|spice:overlap|version:capedit-")
    table = DocumentFrequencies.from_pairs(PAIRS[:2], source="two captions")
    text = str(evaluate(PAIRS[1:], frequencies=table).signature)
    assert text.startswith("tok:given|refs:1|n:2|df:two captions(2)|dup:kept|spice:none|")


def test_spice_is_asked_chunk_by_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngrams, "_BATCH", 2)
    spice = WordOverlap()
    evaluation = evaluate([*PAIRS, ("x", ["y"])], spice=spice)
    assert spice.calls == 2
    assert evaluation.per_instance["SPICE"].tolist() == [100.0, 100.0, 100.0, 0.0]
    assert evaluation.scores["SPICE"] == 75.0


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    edits = EditCosts([Steps(1, 2)] * 3, ["a b"] * 3)
    whole = evaluate(PAIRS, edits=edits)
    monkeypatch.setattr(ngrams, "_BATCH", 1)
    parts = evaluate(iter(PAIRS), edits=edits)
    assert parts.scores == pytest.approx(whole.scores)
    assert parts.signature == whole.signature
    for name, values in whole.per_instance.items():
        np.testing.assert_allclose(parts.per_instance[name], values)


def test_intervals_and_comparison() -> None:
    better = evaluate([(references[0], references) for _, references in PAIRS])
    worse = evaluate(PAIRS, spice=WordOverlap())
    intervals = worse.intervals(resamples=50)
    assert all(each.low - 1e-9 <= each.value <= each.high + 1e-9 for each in intervals.values())
    comparison = better.compare(worse, resamples=50)
    assert sorted(comparison) == sorted(CAPTION_SCORES)  # SPICE is missing on one side
    assert comparison["CIDEr-D"].difference == pytest.approx(better.scores["CIDEr-D"] - worse.scores["CIDEr-D"])


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        [("", [])],
        [("", [""])],
        [("a", [])],
        [("", ["a"])],
        [("猫 がいる", ["猫 がいる"])],
        [("\ud800 x", ["\ud800 x"])],
        [("a", ["a"])] * 3,
    ],
)
def test_every_input_has_finite_scores(pairs: list[Pair]) -> None:
    edits = EditCosts([Steps()] * len(pairs), [hypothesis for hypothesis, _ in pairs])
    evaluation = evaluate(pairs, edits=edits)
    assert all(math.isfinite(value) for value in evaluation.scores.values())
    assert all(np.isfinite(values).all() for values in evaluation.per_instance.values())
    assert all(len(values) == len(pairs) for values in evaluation.per_instance.values())
    table = DocumentFrequencies.from_pairs([*PAIRS, *pairs])
    assert all(math.isfinite(value) for value in evaluate(pairs, frequencies=table).scores.values())
    json.dumps(evaluation.to_json(), allow_nan=False)


def java_output(path: Path) -> Path:
    entries = [
        {"image_id": name, "scores": {"All": {"pr": 0.5, "re": 0.25, "f": f}, "Color": {"f": math.nan}}}
        for name, f in (("x", 0.1), ("y", 0.2), ("z", math.nan))
    ]
    path.write_text(json.dumps(entries))
    return path


def test_scores_of_the_java_original_in_file_order(tmp_path: Path) -> None:
    evaluation = evaluate(PAIRS, spice=JavaSpice(java_output(tmp_path / "spice.json")))
    assert evaluation.per_instance["SPICE"] == pytest.approx([10.0, 20.0, 0.0])
    assert evaluation.signature.spice == "SPICE (java)"


def test_scores_of_the_java_original_by_id(tmp_path: Path) -> None:
    spice = JavaSpice(java_output(tmp_path / "spice.json"), ids=["y", "y", "x"])
    assert evaluate(PAIRS, spice=spice).per_instance["SPICE"] == pytest.approx([20.0, 20.0, 10.0])


def test_bad_output_of_the_java_original_names_its_file(tmp_path: Path) -> None:
    path = java_output(tmp_path / "spice.json")
    with pytest.raises(ValueError, match=r"spice\.json.*image_id w"):
        JavaSpice(path, ids=["w"])
    with pytest.raises(ValueError, match=r"spice\.json.*3 instances"):
        evaluate([*PAIRS, *PAIRS], spice=JavaSpice(path))
    path.write_text('[{"image_id": 1, "scores": {}}]')
    with pytest.raises(ValueError, match=r"spice\.json.*entry 0"):
        JavaSpice(path)
    path.write_text("{")
    with pytest.raises(ValueError, match=r"spice\.json"):
        JavaSpice(path)

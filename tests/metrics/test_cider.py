import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capedit.metrics import CiderKind, DocumentFrequencies, cider, ngrams
from capedit.metrics.ngrams import Pair

CAPTIONS = st.lists(st.sampled_from("abcd"), max_size=8)
PAIRS = st.lists(st.tuples(CAPTIONS, st.lists(CAPTIONS, min_size=1, max_size=4)), min_size=1, max_size=6)
TokenPairs = list[tuple[list[str], list[list[str]]]]
CORPUS: list[Pair] = [
    ("a dog on a sofa", ["a cat on a sofa", "a cat asleep"]),
    ("two men in a boat", ["two men fishing in a boat"]),
    ("a red bus", ["a red double decker bus"]),
]


def counted(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def by_definition(pairs: TokenPairs, kind: CiderKind) -> list[float]:
    """CIDEr written straight from its definition, with dictionaries."""
    df: Counter[tuple[str, ...]] = Counter()
    for _, references in pairs:
        df.update({gram for each in references for n in range(1, 5) for gram in counted(each, n)})

    def vector(words: list[str], n: int) -> dict[tuple[str, ...], float]:
        return {g: c * (math.log(len(pairs)) - math.log(max(1, df[g]))) for g, c in counted(words, n).items()}

    scores = []
    for hypothesis, references in pairs:
        total = 0.0
        for reference in references:
            difference = max(len(hypothesis) - 1, 0) - max(len(reference) - 1, 0)
            penalty = math.exp(-(difference**2) / 72) if kind is CiderKind.CIDER_D else 1.0
            for n in range(1, 5):
                one, other = vector(hypothesis, n), vector(reference, n)
                clipped = {g: min(v, other.get(g, 0)) for g, v in one.items()} if kind is CiderKind.CIDER_D else one
                product = sum(v * other.get(g, 0.0) for g, v in clipped.items())
                norms = math.hypot(*one.values()) * math.hypot(*other.values())
                total += penalty * product / norms if norms else 0.0
        scores.append(10 * total / 4 / len(references))
    return scores


@pytest.mark.parametrize("kind", CiderKind)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(pairs=PAIRS)
def test_every_instance_follows_the_definition(kind: CiderKind, pairs: TokenPairs) -> None:
    corpus, each = cider(pairs, kind=kind)
    expected = by_definition(pairs, kind)
    np.testing.assert_allclose(each, expected, rtol=0, atol=1e-10)
    assert corpus == pytest.approx(np.mean(expected), abs=1e-10)


def test_repetition_pays_in_plain_cider_only() -> None:
    repeated: list[Pair] = [("sofa sofa sofa", ["a sofa"]), *CORPUS]
    once: list[Pair] = [("sofa", ["a sofa"]), *CORPUS]
    assert cider(repeated)[1][0] < cider(once)[1][0]
    assert cider(repeated, kind=CiderKind.CIDER)[1][0] == pytest.approx(cider(once, kind=CiderKind.CIDER)[1][0])


def test_a_table_of_the_same_references_gives_the_same_scores() -> None:
    np.testing.assert_allclose(cider(CORPUS, DocumentFrequencies.from_pairs(CORPUS))[1], cider(CORPUS)[1], atol=1e-12)


def test_one_instance_needs_a_table() -> None:
    frequencies = DocumentFrequencies.from_pairs(CORPUS)
    assert cider(CORPUS[:1])[0] == 0.0
    assert cider(CORPUS[:1], frequencies)[0] == pytest.approx(cider(CORPUS)[1][0])
    assert cider([("a red double decker bus", CORPUS[2][1])], frequencies)[0] == pytest.approx(10.0)


def test_many_chunks_give_what_one_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs: list[Pair] = [(f"a w{i % 7} b w{i % 5}", [f"a w{i % 5} b", f"w{i % 7} c"]) for i in range(60)]
    _, whole = cider(pairs)
    monkeypatch.setattr(ngrams, "_BATCH", 7)
    np.testing.assert_allclose(cider(pairs)[1], whole, atol=1e-12)
    np.testing.assert_allclose(cider(iter(pairs))[1], whole, atol=1e-12)


def test_a_stream_is_read_anew_and_never_held(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        begun = 0

        def __iter__(self) -> Iterator[Pair]:
            self.begun += 1
            return ((f"a w{i}", [f"a w{i + 1}"]) for i in range(50))

    monkeypatch.setattr(ngrams, "_BATCH", 8)
    stream = Stream()
    _, each = cider(stream)
    assert len(each) == 50
    assert stream.begun == 3  # is it one chunk? document frequencies; scores


@pytest.mark.parametrize(
    ("hypothesis", "references"), [("", ["a b"]), ("", [""]), ("", []), ("a b", [""]), ("a b", [])]
)
def test_an_empty_side_scores_nothing(hypothesis: str, references: list[str]) -> None:
    assert cider([*CORPUS, (hypothesis, references)])[1][-1] == 0.0


def test_nothing_scores_nothing() -> None:
    corpus, each = cider([])
    assert corpus == 0.0
    assert each.shape == (0,)


def test_a_table_survives_its_file(tmp_path: Path) -> None:
    frequencies = DocumentFrequencies.from_pairs(CORPUS, source="three captions")
    frequencies.save(tmp_path / "df.npz")
    loaded = DocumentFrequencies.load(tmp_path / "df.npz")
    assert (loaded.documents, loaded.source, len(loaded)) == (3, "three captions", len(frequencies))
    np.testing.assert_array_equal(cider(CORPUS, loaded)[1], cider(CORPUS, frequencies)[1])


def test_tables_of_shards_add_up() -> None:
    merged = DocumentFrequencies.from_pairs(CORPUS[:1])
    merged.merge(DocumentFrequencies.from_pairs(CORPUS[1:]))
    whole = DocumentFrequencies.from_pairs(CORPUS)
    assert (merged.documents, len(merged)) == (whole.documents, len(whole))
    np.testing.assert_array_equal(cider(CORPUS, merged)[1], cider(CORPUS, whole)[1])


def test_an_empty_table_makes_every_weight_zero(tmp_path: Path) -> None:
    empty = DocumentFrequencies()
    empty.save(tmp_path / "df.npz")
    assert cider(CORPUS, DocumentFrequencies.load(tmp_path / "df.npz"))[0] == 0.0


@pytest.mark.parametrize("damage", ["text", "truncated", "field", "order", "counts", "format"])
def test_a_damaged_table_names_its_file(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "df.npz"
    frequencies = DocumentFrequencies.from_pairs(CORPUS)
    frequencies.save(path)
    with np.load(path) as file:
        fields = dict(file)
    if damage == "text":
        path.write_text("not a table")
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:100])
    else:
        if damage == "field":
            del fields["counts"]
        elif damage == "order":
            fields["keys"] = fields["keys"][::-1]
        elif damage == "counts":
            fields["counts"] = fields["counts"] + 100
        else:
            fields["format"] = np.array("something else")
        np.savez(path, allow_pickle=False, **fields)
    with pytest.raises(ValueError, match=r"df\.npz"):
        DocumentFrequencies.load(path)


def test_a_table_with_a_pickle_inside_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "df.npz"
    np.savez(path, format=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"df\.npz"):
        DocumentFrequencies.load(path)

"""For any captions and fields at all: what is written is what is read."""

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capedit.data import Instance, open_dataset, restore_instances, rewrite_dataset, write_dataset
from capedit.data.fields import ALIASES, DEFAULT_NAMES
from capedit.data.formats import jsontext
from capedit.data.formats.dialect import Dialect
from capedit.data.formats.jsonvalues import same

any_text = st.text(st.characters(), max_size=30)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)
taken = {alias for aliases in ALIASES.values() for alias in aliases} | set(DEFAULT_NAMES.values())
keys = any_text.filter(
    lambda key: key.strip().lower().replace("-", "_").replace(" ", "_") not in taken and not key.startswith(("$", "."))
)
utf8_keys = keys.filter(lambda key: not any("\ud800" <= char <= "\udfff" for char in key))
instances = st.builds(
    Instance,
    id=st.integers() | any_text.filter(bool),
    reference=any_text,
    target=st.none() | any_text,
    image_id=st.none() | st.integers() | any_text.filter(bool),
    prediction=st.none() | any_text,
    given_reference_tokens=st.none() | st.lists(any_text, max_size=3).map(tuple),
    extra=st.dictionaries(utf8_keys, json_values, max_size=4),
)


def kept(instance: Instance) -> list[Any]:
    extra = dict(sorted(instance.extra.items()))
    fields = (instance.id, instance.image_id, instance.reference, instance.target, instance.prediction)
    return [*fields, instance.given_reference_tokens, extra]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv", "a.parquet"])
@settings(max_examples=40, deadline=None)
@given(many=st.lists(instances, max_size=5))
def test_any_instances_survive(name: str, many: list[Instance]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write_dataset(many, path)
        back = list(open_dataset(path))
        assert len(back) == len(many)
        for one, other in zip(back, many, strict=True):
            assert same(kept(one), kept(other)), (kept(one), kept(other))


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
@settings(max_examples=40, deadline=None)
@given(many=st.lists(instances, min_size=1, max_size=4), text=st.text(max_size=20), data=st.data())
def test_any_edit_can_be_taken_back(name: str, many: list[Instance], text: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write_dataset(many, path)
        before = path.read_bytes()
        dataset = open_dataset(path)
        at = data.draw(st.integers(0, len(many) - 1))
        old = list(dataset)[at]
        rewrite_dataset(dataset, [old.revised(reference=text)])
        new = list(dataset)
        assert new[at].reference == text
        assert [i.reference for i in new if i is not new[at]] == [i.reference for i in many if i is not many[at]]
        restore_instances(dataset, [old])
        assert path.read_bytes() == before


@settings(max_examples=100, deadline=None)
@given(
    value=st.lists(st.dictionaries(any_text, json_values, max_size=3), max_size=4)
    | st.dictionaries(any_text, json_values),
    indent=st.none() | st.integers(0, 3),
    ascii_only=st.booleans(),
    damage=st.none() | st.tuples(st.integers(0, 200), st.binary(max_size=3)),
    chunk=st.integers(1, 40),
)
def test_pieces_of_json_are_the_whole_file(
    value: Any, indent: int | None, ascii_only: bool, damage: tuple[int, bytes] | None, chunk: int
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    if damage is not None:
        text = text[: damage[0]] + damage[1] + text[damage[0] + 1 :]

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(chunk)

    found = list(jsontext.pieces(Slow(text)))
    assert jsontext.encode("".join(piece.text for piece in found)) == text
    if damage is None and isinstance(value, list) and b"\xed" not in text:
        assert [piece.value for piece in found if piece.array == ""] == value
        assert not any(piece.error for piece in found)


@given(
    before=st.dictionaries(any_text, json_values, max_size=4),
    changes=st.dictionaries(any_text, json_values, max_size=3),
    indent=st.none() | st.integers(0, 2),
)
def test_patching_an_object_is_updating_it(before: dict[str, Any], changes: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(before, indent=indent)
    after = {**before, **changes}
    assert same(json.loads(jsontext.patch_object(text, before, after)), after)
    assert jsontext.patch_object(text, before, before) == text


cells = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(
    rows=st.lists(st.lists(cells, min_size=2, max_size=4), min_size=1, max_size=4),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    escape=st.sampled_from([None, "\\"]),
    quote_all=st.booleans(),
)
def test_dialects_read_what_they_write(
    rows: list[list[str]], delimiter: str, escape: str | None, quote_all: bool
) -> None:
    dialect = Dialect(delimiter, escape=escape, quote_all=quote_all)
    lines = [dialect.row(row) for row in rows]
    assert list(dialect.rows(io.StringIO("".join(lines), newline=""))) == rows
    for line, row in zip(lines, rows, strict=True):
        assert [dialect.cell(cell) for cell in row] == dialect.raw_cells(line.removesuffix("\n"))

"""Flickr30K-EE: a caption that contradicts an image, edited into one that the image entails.

e-SNLI-VE has hypotheses about Flickr30k images. A hypothesis' `pairID` ends in the label it had in SNLI, before the
labels were corrected, so a contradiction of the same premise may carry any of the three letters.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from capedit.data.errors import DataError
from capedit.data.instance import Instance
from capedit.edits.tokens import tokenize

SUFFIXES = "cne"
"""The letters a contradiction's pairID may end in, in the order in which they are tried."""
LABELS = frozenset({"entailment", "neutral", "contradiction"})
COLUMNS = ("pairID", "Flickr30kID", "hypothesis", "gold_label")


class Mode(StrEnum):
    """`as-released` repeats the published files' bug: where an entailment has several contradictions, each of its
    records carries the last one's text. `fixed` gives each record its own."""

    AS_RELEASED = "as-released"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class EsnliRow:
    """What the benchmark needs of a row."""

    pair_id: str
    image_id: int
    hypothesis: str
    label: str

    @property
    def premise(self) -> str:
        """The pairID without the label letter: the same for all hypotheses of one premise in one round."""
        return self.pair_id[:-1]


def read_esnli(path: Path) -> Iterator[EsnliRow]:
    """The rows of an e-SNLI-VE file; the first bad one is an error that names its line and column."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            table = csv.DictReader(file, strict=True)
            missing = [column for column in COLUMNS if column not in (table.fieldnames or ())]
            if missing:
                raise DataError(
                    f"{path}: no column {', '.join(map(repr, missing))}; found {table.fieldnames or 'none'}"
                )
            for row in table:
                yield _row(row, f"{path}, line {table.line_num}")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason} at byte {error.start})") from error
    except csv.Error as error:
        raise DataError(f"{path}, line {table.line_num + 1}: not CSV ({error})") from error


def flickr30k_ee(rows: Iterable[EsnliRow], mode: Mode = Mode.FIXED) -> Iterator[Instance]:
    """The instances, numbered from 1, in the order of their entailment rows."""
    rows = list(rows)
    contradictions = {row.pair_id: row for row in rows if row.label == "contradiction"}
    number = 0
    for row in rows:
        if row.label != "entailment":
            continue
        names = (row.premise + suffix for suffix in SUFFIXES)
        references = [contradictions[name].hypothesis for name in names if name in contradictions]
        for reference in references:
            number += 1
            text = references[-1] if mode is Mode.AS_RELEASED else reference
            yield make_instance(number, row.image_id, tokenize(text), tokenize(row.hypothesis))


def make_instance(number: int, image_id: int, reference: Iterable[str], target: Iterable[str]) -> Instance:
    """An instance as the published files have it: the captions are their tokens, joined."""
    reference_tokens, target_tokens = tuple(reference), tuple(target)
    return Instance(
        id=number,
        reference=" ".join(reference_tokens),
        target=" ".join(target_tokens),
        image_id=image_id,
        given_reference_tokens=reference_tokens,
        given_target_tokens=target_tokens,
    )


def _row(row: dict[str, str | None], place: str) -> EsnliRow:
    values: dict[str, str] = {}
    for column in COLUMNS:
        value = row[column]
        if not value or not value.strip():
            raise DataError(f"{place}, column {column!r}: empty or missing")
        values[column] = value
    image, _, ending = values["Flickr30kID"].rpartition(".")
    if not image.isdecimal() or ending != "jpg":
        raise DataError(
            f"{place}, column 'Flickr30kID': expected a name like '4465359505.jpg', got {row['Flickr30kID']!r}"
        )
    if values["gold_label"] not in LABELS:
        raise DataError(f"{place}, column 'gold_label': expected one of {sorted(LABELS)}, got {row['gold_label']!r}")
    return EsnliRow(values["pairID"], int(image), values["hypothesis"], values["gold_label"])

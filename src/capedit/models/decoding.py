"""From the three modules' opinions to an edit.

The published order: Tagger_del once, then rounds of Tagger_add and Inserter. What is ours, and can be switched off: a
bias toward KEEP and a least confidence, captions that fit are left alone, a gap that deletion tore is filled or the
deletion taken back, no content word is inserted twice, a word that is deleted and put back was kept, and a second look
that may delete what was inserted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from capedit.edits import count_trace
from capedit.errors import CapeditError
from capedit.models.draft import Draft, Word
from capedit.models.runtime import Floats, Ints, Modules, Seen, Text
from capedit.models.vocabulary import END, MASK, PAD, SPECIALS, START, Vocabulary

Breaks = Callable[[Sequence[str]], list[int]]
"""Where a caption is broken: i stands for the seam before word i, the number of words for the end."""
REPEATABLE = frozenset(
    "a an the and or of to in on at with by for from into over under near next is are his her its their some up".split()
)
"""Words that may stand more than once in a caption; no other word is inserted twice."""
CERTAIN = np.float32(60)
"""The logit of what is decided already."""


@dataclass(frozen=True)
class Knobs:
    """How an editor behaves. The defaults are those of the paper; a model ships its own."""

    rounds: int = 4
    """Most rounds of insertion after a look."""
    looks: int = 1
    """How often Tagger_del looks at the caption; at the second look it may delete what was inserted."""
    keep_bias: float = 0.0
    """Added to the logit of KEEP in Tagger_del: higher deletes less."""
    stop_bias: float = 0.0
    """Added to the logit of KEEP in Tagger_add: higher adds less."""
    min_confidence: float = 0.0
    """An operation that the model is less sure of is not made."""
    min_word: float = 0.0
    """A word that the Inserter finds less likely than this is not inserted, unless the sentence would be broken."""
    fits_above: float = 1.0
    """A caption that is more likely than this to fit the image is left alone."""
    max_edits: int | None = None
    """A caption that would need more operations is left alone."""
    protected: frozenset[str] = frozenset()
    """Words, in lower case, that are never deleted."""
    embellish: bool = True
    """Whether words are added to a caption of which none was deleted."""
    fluent: bool = True
    """Fill or undo what would leave a broken sentence, insert no word twice, count a word that returns as kept."""

    def __post_init__(self) -> None:
        for name in ("rounds", "looks"):
            if getattr(self, name) < 1:
                raise CapeditError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("min_confidence", "min_word", "fits_above"):
            if not 0 <= getattr(self, name) <= 1:
                raise CapeditError(f"{name} must lie in [0, 1], got {getattr(self, name)}")
        if self.max_edits is not None and self.max_edits < 0:
            raise CapeditError(f"max_edits must not be negative, got {self.max_edits}")


@dataclass(frozen=True)
class Scale:
    """How a logit is read: divided by a temperature, then shifted."""

    temperature: float = 1.0
    shift: float = 0.0

    def __call__(self, logits: Floats) -> Floats:
        return logits / np.float32(self.temperature) + np.float32(self.shift)


@dataclass(frozen=True)
class Calibration:
    """How logits are read so that probabilities mean what they say; fitted on val."""

    delete: Scale = Scale()
    add: Scale = Scale()
    insert: Scale = Scale()
    match: Scale = Scale()


def decode(
    modules: Modules,
    seen: Seen,
    captions: Sequence[Sequence[str]],
    knobs: Knobs,
    *,
    calibration: Calibration | None = None,
    breaks: Breaks | None = None,
    falls: NDArray[np.bool_] | None = None,
) -> list[Draft]:
    """Edit captions, one for each row of `seen`; without `breaks` nothing is repaired.

    With `falls` (captions, words or more) it is decided already which words fall at the first look.
    """
    mends = breaks if knobs.fluent else None
    decoder = _Decoder(modules, seen, knobs, calibration or Calibration(), mends, falls)
    drafts = [modules.vocabulary.draft(caption) for caption in captions]
    if (longest := max((len(draft.words) for draft in drafts), default=0)) > modules.max_words:
        raise CapeditError(f"a caption has {longest} tokens; the model reads at most {modules.max_words}")
    open_rows = list(range(len(drafts)))
    for look in range(knobs.looks):
        open_rows = decoder.delete(drafts, open_rows, first=look == 0)
        growing = open_rows
        for _ in range(knobs.rounds):
            growing = decoder.insert(drafts, growing)
        decoder.repair(drafts, open_rows)
    if knobs.fluent:
        for draft in drafts:
            draft.reclaim()
    return [_within(draft, knobs.max_edits) for draft in drafts]


class _Slot(NamedTuple):
    """A place where a word may come."""

    place: int
    """The framed token that it comes after."""
    sure: float
    """How sure Tagger_add is."""
    torn: bool
    """Whether deletion broke the sentence here: something must come."""


@dataclass(frozen=True)
class _Decoder:
    modules: Modules
    seen: Seen
    knobs: Knobs
    calibration: Calibration
    breaks: Breaks | None
    falls: NDArray[np.bool_] | None

    def delete(self, drafts: Sequence[Draft], rows: Sequence[int], *, first: bool) -> list[int]:
        """One look at each caption; returns the rows that stay open."""
        if not rows:
            return []
        text = frame([drafts[row].tokens for row in rows], self.modules.vocabulary)
        if first and self.falls is not None:
            fallen = np.pad(self.falls[rows], ((0, 0), (1, 1)))[:, : text.ids.shape[1]]  # sentinels stay
            logits, match = np.where(fallen, CERTAIN, -CERTAIN), None
        else:
            logits, match = self.modules.delete(text, self.seen.rows(np.array(rows)))
        fits = None if match is None else sigmoid(self.calibration.match(match))
        likely = sigmoid(self.calibration.delete(logits))
        wanted = logits > self.knobs.keep_bias
        still_open = []
        for at, row in enumerate(rows):
            draft = drafts[row]
            if first:
                draft.match = None if fits is None else float(fits[at])
            draft.rounds += 1
            leave = first and draft.match is not None and draft.match > self.knobs.fits_above
            changed = False
            for place, word in enumerate(draft.standing, start=1):
                p = float(likely[at, place])
                if word.kept is None and word.added is None:
                    word.kept = 1 - p
                if wanted[at, place] and not leave and p >= self.knobs.min_confidence and not self._protects(word):
                    word.died, word.deleted = draft.rounds, p
                    changed = True
            if not leave and (changed or (first and self.knobs.embellish)):
                still_open.append(row)
        return still_open

    def _protects(self, word: Word) -> bool:
        return word.whole.lower() in self.knobs.protected

    def insert(self, drafts: Sequence[Draft], rows: Sequence[int]) -> list[int]:
        """One round of insertion; returns the rows that got a word."""
        if not rows:
            return []
        text = frame([drafts[row].tokens for row in rows], self.modules.vocabulary)
        logits = self.modules.add(text, self.seen.rows(np.array(rows)))
        likely = sigmoid(self.calibration.add(logits))
        wanted = (logits > self.knobs.stop_bias) & (likely >= self.knobs.min_confidence)
        slots: list[list[_Slot]] = []  # for each row
        for at, row in enumerate(rows):
            count = len(drafts[row].tokens)
            torn = self._torn(drafts[row])
            places = sorted(torn.union(np.flatnonzero(wanted[at, : count + 1]).tolist()))
            found = [_Slot(p, 1.0 if p in torn else float(likely[at, p]), p in torn) for p in places]
            surest = sorted(found, key=lambda slot: -slot.sure)[: max(self.modules.max_words - count, 0)]
            slots.append(sorted(surest))
        growing = [at for at, row_slots in enumerate(slots) if row_slots]
        for at in growing:
            drafts[rows[at]].rounds += 1
        if not growing:
            return []
        filled = self._fill(drafts, [rows[at] for at in growing], [slots[at] for at in growing])
        return [rows[at] for at, done in zip(growing, filled, strict=True) if done]

    def _torn(self, draft: Draft) -> set[int]:
        """Seams that deletion broke: something must come there."""
        if self.breaks is None:
            return set()
        return {seam for seam in self.breaks(draft.tokens) if draft.gap_before(seam)}

    def _fill(self, drafts: Sequence[Draft], rows: Sequence[int], slots: Sequence[Sequence[_Slot]]) -> list[bool]:
        """Put the likeliest word into every slot; returns for each row whether any word came."""
        vocabulary = self.modules.vocabulary
        masked, at_rows, at_columns = [], list[int](), list[int]()
        for at, (row, row_slots) in enumerate(zip(rows, slots, strict=True)):
            ids, behind = [START, *vocabulary.encode(drafts[row].tokens), END], {slot.place for slot in row_slots}
            framed = list[int]()
            for place, token in enumerate(ids):
                framed.append(token)
                if place in behind:
                    at_rows.append(at)
                    at_columns.append(len(framed))
                    framed.append(MASK)
            masked.append(framed)
        text = pad_rows(masked)
        logits = self.modules.insert(
            text, self.seen.rows(np.array(rows)), np.array(at_rows, np.int64), np.array(at_columns, np.int64)
        )
        logits[:, : len(SPECIALS)] = -np.inf
        filled, number = [], 0
        for row, row_slots in zip(rows, slots, strict=True):
            draft = drafts[row]
            standing: list[Word | None] = [None, *draft.standing, None]
            came = False
            for place, sure, torn in row_slots:
                before, after = standing[place], standing[place + 1]
                excluded = set[str]()
                if self.knobs.fluent:
                    beside = {word.text for word in (before, after) if word is not None}
                    excluded = beside | (set(draft.tokens) - REPEATABLE)
                whole = before is not None and self._protects(before)
                word, likely = self._choose(logits[number], excluded, apart=whole)
                number += 1
                p = sure * likely
                if p >= self.knobs.min_confidence and (likely >= self.knobs.min_word or torn):
                    draft.insert_after(before, Word(word, born=draft.rounds, added=p))
                    came = True
            filled.append(came)
        return filled

    def _choose(self, logits: Floats, excluded: set[str], *, apart: bool) -> tuple[str, float]:
        """The likeliest word that may come here, and its probability; `apart`: not joined to the word before."""
        vocabulary = self.modules.vocabulary
        scaled = self.calibration.insert(logits)
        weights = np.exp(scaled - scaled.max())
        left = logits.copy()
        while True:
            best = int(left.argmax())
            word = vocabulary.words[best]
            if word not in excluded and not (apart and vocabulary.joins(word)):
                return word, float(weights[best] / weights.sum())
            left[best] = -np.inf

    def repair(self, drafts: Sequence[Draft], rows: Sequence[int]) -> None:
        """Where a sentence is still broken, take back what broke it, or else what was put beside the break."""
        if self.breaks is None:
            return
        for row in rows:
            draft = drafts[row]
            while any(_mend(draft, seam) for seam in self.breaks(draft.tokens)):
                pass  # this ends: there is one decision less to undo each time


def _mend(draft: Draft, seam: int) -> bool:
    """Undo one decision at a seam; False if there is none to undo."""
    fallen = draft.gap_before(seam)
    if fallen:
        weakest = min(fallen, key=lambda word: word.deleted or 0.0)
        weakest.died, weakest.deleted = None, None
        return True
    standing = draft.standing
    beside = [word for word in standing[max(seam - 1, 0) : seam + 1] if word.added is not None]
    if beside:
        draft.withdraw(min(beside, key=lambda word: word.added or 0.0))
        return True
    return False


def _within(draft: Draft, max_edits: int | None) -> Draft:
    """The draft, or the untouched caption if that would take too many operations."""
    too_many = max_edits is not None and count_trace(draft.trace()).total > max_edits
    return draft.untouched() if too_many else draft


def frame(captions: Sequence[Sequence[str]], vocabulary: Vocabulary) -> Text:
    """Word ids between sentinels, padded to the longest."""
    return pad_rows([[START, *vocabulary.encode(caption), END] for caption in captions])


def pad_rows(rows: Sequence[Sequence[int]]) -> Text:
    """Rows of ids side by side, padded to the longest."""
    ids: Ints = np.full((len(rows), max(map(len, rows))), PAD, np.int64)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)] = tokens
    return Text(ids, ids != PAD)


def sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -60, 60))), np.float32)

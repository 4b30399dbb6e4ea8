"""From an edit on tokens back to text that a person would accept.

Kept words keep their spelling, case and the punctuation around them; added words follow the manner of the caption
(sentence, Title or UPPER case). An edit that changes nothing gives the caption back, byte for byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from capedit.edits.operations import EditError, Op
from capedit.edits.ptb import Token
from capedit.edits.script import Script
from capedit.edits.tokens import spans


def realise(caption: str, script: Script) -> str:
    """The caption after an edit of its tokens (those of `capedit.edits.tokens.tokenize`)."""
    words = spans(caption)
    if [word.text for word in words] != script.source:
        raise EditError(f"the script edits {script.source}, but the caption has {[word.text for word in words]}")
    if not script.changes:
        return caption
    between = _between(caption, words)
    manner = Manner.of(caption, words)

    pieces: list[str] = []
    at = 0  # source words passed
    last = -1  # the last source word that was kept
    added = False  # whether a word was added since
    for operation in script:
        if operation.op is Op.DELETE:
            at += 1
            continue
        first = not pieces
        if operation.op is Op.ADD:
            replaces = at > last + 1 and not added
            gap = between[last + 1] if replaces else " "
            pieces.append(_opening(between, at) if first else gap or " ")
            pieces.append(manner.dress(operation.token, first=first))
            added = True
            continue
        if first:
            gap = _opening(between, at)
        elif at == last + 1 or added:
            gap = between[at]
        else:
            gap = _bridge(between[last + 1], between[at])
        changed = added or at > last + 1
        clitic = words[at].text[:1] == "'" or words[at].text == "n't"
        pieces.append(" " if changed and not first and not gap and not clitic else gap)
        pieces.append(manner.recased(caption[words[at].start : words[at].end], was_first=at == 0, first=first))
        last, added = at, False
        at += 1
    return "".join(pieces) + (_closing(between, last) if pieces else "")


@dataclass(frozen=True)
class Manner:
    """How a caption uses capitals."""

    upper: bool
    title: bool
    sentence: bool
    names: frozenset[str]
    """Words that are capitalised inside the caption, too: they are so wherever they stand."""

    @classmethod
    def of(cls, caption: str, words: Sequence[Token]) -> "Manner":
        texts = [caption[word.start : word.end] for word in words]
        cased = [text for text in texts if text.lower() != text.upper()]
        upper = len(cased) > 1 and all(text.isupper() for text in cased)
        title = len(cased) > 2 and all(text[0].isupper() for text in cased) and not upper
        inside = frozenset(text for text in texts[1:] if text[:1].isupper())
        return cls(upper, title, bool(texts) and texts[0] != "I" and texts[0][:1].isupper(), inside)

    def dress(self, word: str, *, first: bool) -> str:
        """An added word, as this caption would write it."""
        if self.upper:
            return word.upper()
        return _capitalised(word) if self.title or (first and self.sentence) else word

    def recased(self, text: str, *, was_first: bool, first: bool) -> str:
        """A kept word that has become the first one, or is so no longer."""
        if first and not was_first and self.sentence:
            return _capitalised(text)
        if was_first and not first and not self.upper and not self.title and text not in self.names:
            return text if text == "I" or text[1:] != text[1:].lower() else text[:1].lower() + text[1:]
        return text


def _capitalised(word: str) -> str:
    return word[:1].upper() + word[1:]


def _between(caption: str, words: Sequence[Token]) -> list[str]:
    """The characters before the first word, between words, and after the last."""
    ends = [0, *(word.end for word in words)]
    starts = [*(word.start for word in words), len(caption)]
    return [caption[end:start] for end, start in zip(ends, starts, strict=True)]


def _bridge(before: str, after: str) -> str:
    """What stands between two kept words whose middle is gone: the punctuation before the second one.

    Unless the deleted words were enclosed, by two commas or brackets: then both go with them.
    """
    return " " if before.strip() and after.strip() else after


def _opening(between: Sequence[str], at: int) -> str:
    """What stands before a new first word: what stood before the old one, unless it enclosed the deleted words."""
    opening = between[0]
    return "" if at and opening.strip() and any(gap.strip() for gap in between[1 : at + 1]) else opening


def _closing(between: Sequence[str], last: int) -> str:
    """What stands after the last word: the end of the caption as it was, without the quotes of words that are gone."""
    closing = between[-1]
    opened = last + 1 < len(between) - 1 and between[last + 1].strip()
    return closing.lstrip("\"'”’»") if opened else closing

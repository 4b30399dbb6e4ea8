"""JSON files taken apart and put together by their text, so that what is not edited keeps its bytes.

A file of any size is read through a window of a few megabytes. Bytes that are not UTF-8 are carried
along (as Python's surrogate escapes), so a broken record can be reported and still be copied unchanged.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import IO, Any

from capedit.data.errors import FieldError
from capedit.data.formats.jsonvalues import dumps, same

CHUNK = 1 << 18
MAX_RECORD = 1 << 26
"""Characters. A longer record is taken for a broken file, which would otherwise fill the memory."""

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_SHAPE = re.compile(r'"(?:[^"\\\n]++|\\.)*+["\n]|[\[\]{}]|"', re.DOTALL)
_SCALAR_END = re.compile(r"[,\]}\n]")
_INVALID = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the file: a record (an element of the array `array`), or what lies between."""

    text: str
    array: str | None = None
    """The top-level key of the array it is an element of, "" if the whole file is one array, None if none."""
    opens: str | None = None
    """The array that begins with this bracket."""
    closes: str | None = None
    """The array that ends with this bracket."""
    value: Any = None
    error: str | None = None
    line: int = 0


class JsonFileError(ValueError):
    """The text cannot be followed any further."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def encode(text: str) -> bytes:
    """The bytes that `pieces` read as `text`."""
    return text.encode("utf-8", "surrogateescape")


def parse(text: str) -> Any:
    """The JSON value of a record's text; `FieldError` says what is wrong with it."""
    if not text.isascii() and (bad := _INVALID.search(text)):
        raise FieldError(None, f"not UTF-8 (byte 0x{ord(bad[0]) - 0xDC00:02x} at character {bad.start() + 1})")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise FieldError(None, f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError) as error:
        raise FieldError(None, f"not JSON that can be read: {error}") from None


def pieces(file: IO[bytes]) -> Iterator[Piece]:
    """Take a JSON file apart: one piece per element of its top-level array, or of each array in its
    top-level object, and pieces without `array` for all the rest. Their texts together are the file.

    Where the file is cut short or is no such thing, a piece with an `error` and no `array` says so, and
    what is left of the file follows as it is.
    """
    window = _Window(file)
    try:
        yield from _whole(window)
    except JsonFileError as error:
        yield Piece("", error=str(error), line=error.line)
        yield from window.rest()


def _whole(window: _Window) -> Iterator[Piece]:
    if window.peek() == "\ufeff":
        yield Piece(window.take(1))
    yield from window.space()
    opening = window.peek()
    if opening == "[":
        yield from _elements(window, "")
    elif opening == "{":
        yield from _members(window)
    else:
        raise JsonFileError("empty file" if not opening else "neither a JSON array nor object", window.line)
    yield from window.space()
    if window.peek():
        raise JsonFileError("more text after the end of the JSON value", window.line)


def _members(window: _Window) -> Iterator[Piece]:
    yield Piece(window.take(1))
    while True:
        yield from window.space()
        if window.peek() == "}":
            yield Piece(window.take(1))
            return
        key = window.value()
        yield Piece(key.text)
        if key.error or not isinstance(key.value, str):
            raise JsonFileError(f"expected a key, found {key.text[:20]!r}", key.line)
        yield from window.space()
        yield window.expect(":")
        yield from window.space()
        if window.peek() == "[":
            yield from _elements(window, key.value)
        else:
            value = window.value()
            yield Piece(value.text)
            if value.error:
                raise JsonFileError(f"key {key.value!r}: {value.error}", value.line)
        yield from window.space()
        if window.peek() != "}":
            yield window.expect(",")


def _elements(window: _Window, array: str) -> Iterator[Piece]:
    yield Piece(window.take(1), opens=array)
    while True:
        yield from window.space()
        if window.peek() == "]":
            yield Piece(window.take(1), closes=array)
            return
        yield replace(window.value(), array=array)
        yield from window.space()
        if window.peek() == ",":
            yield Piece(window.take(1))
        elif window.peek() != "]":
            raise JsonFileError("the file ends here" if window.ended else "expected ',' or ']'", window.line)


def array_spacing(file: IO[bytes], array: str) -> tuple[str, str]:
    """The text before the first element of an array and that between two of them: its indentation."""
    gaps: list[str] = []
    gap = ""
    for piece in pieces(file):
        if piece.opens == array:
            gap = ""
        elif piece.array == array:
            gaps.append(gap)
            gap = ""
        else:
            gap += piece.text if piece.array is None else ""
        if len(gaps) == 2:
            return gaps[0], gaps[1]
        if piece.closes == array:
            break
    return "", ", "


class _Window:
    """The unread part of a file as far as it is in memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._text = ""
        self._at = 0
        self._at_end = False
        self.line = 1

    @property
    def ended(self) -> bool:
        return not self.peek()

    def peek(self) -> str:
        """The next character, or "" at the end of the file."""
        while self._at == len(self._text) and self._fill():
            pass
        return self._text[self._at : self._at + 1]

    def take(self, count: int) -> str:
        text = self._text[self._at : self._at + count]
        self._at += count
        self.line += text.count("\n")
        return text

    def expect(self, mark: str) -> Piece:
        if self.peek() != mark:
            raise JsonFileError("the file ends here" if self.ended else f"expected {mark!r}", self.line)
        return Piece(self.take(1))

    def space(self) -> Iterator[Piece]:
        while self.peek():
            end = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if end > self._at:
                yield Piece(self.take(end - self._at))
            if end < len(self._text):
                return

    def value(self) -> Piece:
        """The next value whole; on broken text, as much as looks like one, with an `error`."""
        line = self.line
        while True:
            value, parsed = None, True
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                whole = end < len(self._text)
            except (ValueError, RecursionError):
                end, parsed = self._shape_end(), False
                whole = end > self._at
            if whole or not self._fill():
                break
        text = self.take((end if whole or parsed else len(self._text)) - self._at)
        if parsed and (text.isascii() or not _INVALID.search(text)):
            return Piece(text, value=value, line=line)
        try:
            return Piece(text, value=parse(text), line=line)
        except FieldError as problem:
            reason = problem.reason if whole else f"the file ends inside this record ({problem.reason})"
            return Piece(text, error=reason, line=line)

    def rest(self) -> Iterator[Piece]:
        while self.peek():
            yield Piece(self.take(len(self._text) - self._at))

    def _shape_end(self) -> int:
        """Where a value that does not parse ends, by its brackets and quotes; -1 if not in the window."""
        if self._text[self._at : self._at + 1] not in ("{", "[", '"'):
            end = _SCALAR_END.search(self._text, self._at + 1)
            return end.start() if end else -1
        depth = 0
        for mark in _SHAPE.finditer(self._text, self._at):
            token = mark[0]
            if token == '"':  # a quote without its partner: in the part not yet read, if anywhere
                return -1
            depth += (token in "{[") - (token in "]}")
            if depth <= 0:
                return mark.end()
        return -1

    def _fill(self) -> bool:
        if self._at_end:
            return False
        if len(self._text) - self._at > MAX_RECORD:
            raise JsonFileError(f"a record of more than {MAX_RECORD} characters; a quote may be missing", self.line)
        # Grow with what is already there: a long record is then parsed few times, not once a chunk.
        data = self._file.read(max(CHUNK, len(self._text) - self._at))
        self._at_end = not data
        self._text = self._text[self._at :] + self._decode(data, not data)
        self._at = 0
        return True


def patch_object(text: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """The text of a JSON object with only the fields that differ written anew; new ones go last.

    Everything else (spacing, escapes, spelling of numbers) stays as it is.
    """
    style = {"ascii_only": text.isascii(), "compact": '": ' not in text}
    if any(key not in after for key in before):
        return dumps(after, **style)
    spans = _member_spans(text)
    edits = [(spans[key], dumps(after[key], **style)) for key in before if not same(after[key], before[key])]
    for (start, end), new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    added = [f"{dumps(key, **style)}{_colon(style)}{dumps(after[key], **style)}" for key in after if key not in before]
    if added:
        body = text.rindex("}")
        head = text[:body].rstrip()
        comma = "," if style["compact"] else ", "
        text = head + (comma if before else "") + comma.join(added) + text[len(head) :]
    return text


def _colon(style: Mapping[str, bool]) -> str:
    return ":" if style["compact"] else ": "


def _member_spans(text: str) -> dict[str, tuple[int, int]]:
    """From where to where each member's value goes; of doubled keys the last, as in the parsed object."""
    spans: dict[str, tuple[int, int]] = {}
    at = _skip(text, text.index("{") + 1)
    while text[at] == '"':
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        spans[key] = (start, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return spans


def _skip(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]

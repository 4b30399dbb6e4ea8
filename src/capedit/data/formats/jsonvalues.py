"""JSON text for every value a dataset may hold, those that JSON has no word for included.

Parquet and Hugging Face datasets hold bytes, times and decimals. In JSON they are written as
`{"$capedit": "bytes", "value": "<base64>"}` and come back as what they were.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
import re
from typing import Any

_TAG = "$capedit"
_SURROGATE = re.compile("[\ud800-\udfff]")


def dumps(value: Any, *, ascii_only: bool = False, compact: bool = False) -> str:
    """JSON on one line; text that UTF-8 cannot hold (lone surrogates) is escaped."""
    separators = (",", ":") if compact else (", ", ": ")
    text = json.dumps(value, ensure_ascii=ascii_only, separators=separators, default=_tagged)
    if not ascii_only and not is_utf8(text):
        return json.dumps(value, ensure_ascii=True, separators=separators, default=_tagged)
    return text


def restore(value: Any) -> Any:
    """A parsed JSON value with its tagged parts turned back into bytes, times and decimals."""
    if isinstance(value, list):
        return [restore(item) for item in value]
    if isinstance(value, dict):
        if len(value) == 2 and isinstance(text := value.get("value"), str) and value.get(_TAG) in _FROM_TEXT:
            return _FROM_TEXT[value[_TAG]](text)
        return {key: restore(item) for key, item in value.items()}
    return value


def restore_from(value: Any, text: str) -> Any:
    """`restore`, at no cost for the many values whose text shows that they have no tagged parts."""
    return restore(value) if _TAG in text else value


def same(one: Any, other: Any) -> bool:
    """Equal in value and in type, all the way down; 1, 1.0 and true are three different things."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can hold a text; a lone surrogate needs the escapes of JSON."""
    return text.isascii() or not _SURROGATE.search(text)


def _tagged(value: Any) -> dict[str, str]:
    if isinstance(value, bytes):
        return {_TAG: "bytes", "value": base64.b64encode(value).decode("ascii")}
    if isinstance(value, datetime.timedelta):
        return {_TAG: "timedelta", "value": f"{value.days}:{value.seconds}:{value.microseconds}"}
    if isinstance(value, decimal.Decimal):
        return {_TAG: "decimal", "value": str(value)}
    for name, kind in (("datetime", datetime.datetime), ("date", datetime.date), ("time", datetime.time)):
        if isinstance(value, kind):
            return {_TAG: name, "value": value.isoformat()}
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


def _timedelta(text: str) -> datetime.timedelta:
    days, seconds, microseconds = map(int, text.split(":"))
    return datetime.timedelta(days, seconds, microseconds)


_FROM_TEXT: dict[str, Any] = {
    "bytes": base64.b64decode,
    "timedelta": _timedelta,
    "decimal": decimal.Decimal,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
}

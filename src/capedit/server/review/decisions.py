"""What people decide about a caption."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from capedit.errors import CapeditError
from capedit.server.review.units import Verdicts

_SIGNS: Mapping[bool | None, str] = {True: "+", False: "-", None: "?"}
_VERDICTS = {sign: verdict for verdict, sign in _SIGNS.items()}


class Standing(StrEnum):
    """How far a caption has come."""

    OPEN = "open"
    PARTIAL = "partial"
    """Some operations are decided, others are not."""
    SKIPPED = "skipped"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    MIXED = "mixed"
    """Some operations accepted, others rejected."""
    RETYPED = "retyped"

    @property
    def is_decided(self) -> bool:
        return self in (Standing.ACCEPTED, Standing.REJECTED, Standing.MIXED, Standing.RETYPED)


@dataclass(frozen=True, slots=True)
class Decision:
    """All that was decided about one caption: whole, so that later ones simply take its place."""

    verdicts: Verdicts = ()
    text: str | None = None
    """A caption typed by hand; it stands above all verdicts."""
    settled: bool = False
    """The caption has been looked at and is fine: the only verdict where there is nothing to accept or reject."""
    skipped: bool = False
    flagged: bool = False
    note: str = ""

    @property
    def standing(self) -> Standing:
        if self.text is not None:
            return Standing.RETYPED
        made = [verdict for verdict in self.verdicts if verdict is not None]
        if len(made) == len(self.verdicts) and (made or self.settled):
            return Standing.ACCEPTED if all(made) else Standing.MIXED if any(made) else Standing.REJECTED
        if made:
            return Standing.PARTIAL
        return Standing.SKIPPED if self.skipped else Standing.OPEN

    def to_json(self) -> dict[str, Any]:
        """Without what is as usual: a bulk decision writes thousands."""
        told: dict[str, Any] = {"units": "".join(_SIGNS[verdict] for verdict in self.verdicts)}
        for name in ("text", "settled", "skipped", "flagged", "note"):
            if (value := getattr(self, name)) not in (None, False, ""):
                told[name] = value
        # An empty caption is a decision, too.
        return told | ({"text": ""} if self.text == "" else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Decision":
        try:
            verdicts = tuple(_VERDICTS[sign] for sign in data["units"])
            text, note = data.get("text"), data.get("note", "")
            flags = {name: data.get(name, False) for name in ("settled", "skipped", "flagged")}
        except (KeyError, TypeError, AttributeError) as error:
            raise CapeditError(f"not a decision: {data!r} ({error!r})") from error
        if not (text is None or isinstance(text, str)) or not isinstance(note, str):
            raise CapeditError(f"not a decision: {data!r} (text and note are strings)")
        if not all(isinstance(flag, bool) for flag in flags.values()):
            raise CapeditError(f"not a decision: {data!r} (settled, skipped and flagged are true or false)")
        return cls(verdicts, text, note=note, **flags)


@dataclass(frozen=True, slots=True)
class Author:
    """Who decided: undo goes by `id` (one browser), people go by `name`."""

    id: str
    name: str

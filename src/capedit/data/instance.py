"""One caption of one image, with all that its file says about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from capedit.data.images import Image
from capedit.edits.tokens import tokenize


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside a tar shard: its headers begin at `start`, its `size` bytes of data at `data`."""

    suffix: str
    """What follows the sample's key, such as ".jpg"."""
    start: int
    data: int
    size: int

    @property
    def end(self) -> int:
        """Where the next member may begin: tar pads to blocks of 512."""
        return self.data + -(-self.size // 512) * 512


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an instance was read, so that it can be written back without disturbing anything else."""

    format: str
    file: Path
    index: int
    """The record's position in `file`, bad records counted too; what `rewrite_dataset` goes by."""
    place: str
    """The position in words for messages: "line 12", "record 3", "key 000017"."""
    record: Mapping[str, Any]
    """The record as found: every field, in order, under its own name."""
    names: Mapping[str, str]
    """Which role (`reference`, `image_id`, …) is played by which field of `record`."""
    raw: bytes | None = None
    """The record's bytes where the format has such a thing (JSON object, line, row)."""
    split: str | None = None
    """The split of a Hugging Face dataset dict."""
    members: tuple[Member, ...] = ()
    """The files that make up a sample of a tar shard."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One caption (pair) of one image. Text is kept as written; tokens stand beside it, never instead.

    An instance is never changed; `revised` makes the edited one.
    """

    id: str | int
    """The sample id as found; "FILE:N" (N counted from 1) where a file gives none."""
    reference: str
    """The caption to be edited (Ref-Cap), as written."""
    target: str | None = None
    """The ground-truth caption (GT-Cap)."""
    image_id: str | int | None = None
    image: Image | None = None
    prediction: str | None = None
    """A caption some editor produced from `reference`."""
    given_reference_tokens: tuple[str, ...] | None = None
    """The file's own tokens; None where it has none (`reference_tokens` then computes them)."""
    given_target_tokens: tuple[str, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields without a role, in order and with their types."""
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def reference_tokens(self) -> tuple[str, ...]:
        if self.given_reference_tokens is not None:
            return self.given_reference_tokens
        return tuple(tokenize(self.reference))

    @property
    def target_tokens(self) -> tuple[str, ...] | None:
        if self.given_target_tokens is not None or self.target is None:
            return self.given_target_tokens
        return tuple(tokenize(self.target))

    def revised(
        self, *, reference: str | None = None, target: str | None = None, prediction: str | None = None
    ) -> Instance:
        """A copy with new text; tokens of a text that changed are dropped, since they no longer fit."""
        new = self
        if reference is not None and reference != self.reference:
            new = replace(new, reference=reference, given_reference_tokens=None)
        if target is not None and target != self.target:
            new = replace(new, target=target, given_target_tokens=None)
        if prediction is not None:
            new = replace(new, prediction=prediction)
        return new

    @property
    def has_given_id(self) -> bool:
        """Whether the id came from the file (or the caller) and was not made up by the reader."""
        origin = self.origin
        if origin is None or self.id != made_up_id(origin):
            return True
        return "id" in origin.names and origin.record[origin.names["id"]] is not None


def made_up_id(origin: Origin) -> str:
    """The id of a record that has none: the same whether its shard is opened alone or with others."""
    return f"{origin.file.name}:{origin.index + 1}"

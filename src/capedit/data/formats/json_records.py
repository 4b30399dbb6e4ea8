"""Records that are JSON objects: shared by JSONL, the published EE files and COCO."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from capedit.data.formats.base import TextFormat, found_image
from capedit.data.formats.jsontext import encode, patch_object
from capedit.data.formats.jsonvalues import dumps, same
from capedit.data.instance import Instance


class JsonRecordFormat(TextFormat):
    """An unchanged record is written as the text it was; a changed one with only its changed fields new."""

    def renderer(self, file: Path) -> Callable[[Instance], bytes]:
        return lambda instance: self.render(instance, found_image(instance))

    def render(self, instance: Instance, image: Any) -> bytes:
        """The text of an instance's record, with `image` in its image field."""
        record = self.record(instance, image)
        origin = instance.origin
        if origin is None or origin.raw is None or origin.format != self.name:
            return encode(dumps(record))
        if same(record, dict(origin.record)):
            return origin.raw
        return encode(patch_object(origin.raw.decode("utf-8"), origin.record, record))

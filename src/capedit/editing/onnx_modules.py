"""TIger's modules computed by ONNX Runtime: all that the core install has."""

from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from capedit.editing.bundle import Bundle
from capedit.errors import CapeditError
from capedit.models.runtime import Floats, Images, Ints, Seen, Text
from capedit.models.vocabulary import Vocabulary


class Role(IntEnum):
    """The number by which a shared encoder knows its task."""

    DELETE = 0
    ADD = 1
    INSERT = 2


_NOWHERE = np.zeros(0, np.int64)


class OnnxModules:
    """The networks of a model folder."""

    def __init__(self, bundle: Bundle, *, threads: int = 0) -> None:
        self._vocabulary = bundle.vocabulary
        self._see = _session(bundle.folder / "see.onnx", threads)
        shared = bundle.folder / "read-all.onnx"
        if shared.exists():
            session = _session(shared, threads)
            self._read = dict.fromkeys(Role, session)
        else:
            self._read = {role: _session(bundle.folder / f"read-{role.name.lower()}.onnx", threads) for role in Role}
        self._inputs = {role: {entry.name for entry in self._read[role].get_inputs()} for role in Role}
        self._max_words = bundle.positions - 2
        self._matching = bundle.matching

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def max_words(self) -> int:
        return self._max_words

    def see(self, images: Images) -> Seen:
        there = np.arange(images.features.shape[1]) < images.counts[:, None]
        feeds = {"features": images.features, "boxes": images.boxes, "there": there}
        return Seen(*self._see.run(["views", "mask", "concepts", "cells"], feeds))

    def delete(self, text: Text, seen: Seen) -> tuple[Floats, Floats | None]:
        tags, match = self._run(Role.DELETE, ["delete", "match"], text, seen)
        return tags, match if self._matching else None

    def add(self, text: Text, seen: Seen) -> Floats:
        return self._run(Role.ADD, ["add"], text, seen)[0]

    def insert(self, text: Text, seen: Seen, rows: Ints, columns: Ints) -> Floats:
        return self._run(Role.INSERT, ["words"], text, seen, rows, columns)[0]

    def support(self, text: Text, seen: Seen) -> Floats | None:
        return self._run(Role.DELETE, ["support"], text, seen)[0] if seen.cells.shape[-1] else None

    def _run(
        self, role: Role, outputs: list[str], text: Text, seen: Seen, rows: Ints = _NOWHERE, columns: Ints = _NOWHERE
    ) -> list[Floats]:
        feeds: dict[str, Any] = {
            "ids": text.ids,
            "there": text.mask,
            "views": seen.views,
            "mask": seen.mask,
            "concepts": seen.concepts,
            "cells": seen.cells,
            "role": np.array(role, np.int64),
            "rows": rows,
            "columns": columns,
        }
        # What a network does not use (a role, where encoders are not shared) is no input of its file.
        wanted = {name: value for name, value in feeds.items() if name in self._inputs[role]}
        found: list[Floats] = self._read[role].run(outputs, wanted)
        return found


def _session(path: Path, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises types of its own that share no base
        raise CapeditError(f"{path}: cannot be loaded by ONNX Runtime ({error})") from error

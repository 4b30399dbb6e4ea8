"""Items of stretches of a dataset's files."""

from __future__ import annotations

from collections.abc import Iterator

from capedit.data import DataError, Dataset, Instance
from capedit.data.errors import Problems
from capedit.pipeline.items import Item
from capedit.pipeline.selection import Selection
from capedit.pipeline.settings import base_folder


class FileReader:
    """Reads stretches of files. Formats can only be read from the start, so the reader stays where it is: a stretch
    behind the last one costs nothing but the way there, and a worker crosses a file once, not once a stretch."""

    def __init__(self, dataset: Dataset, selection: Selection) -> None:
        self._dataset, self._selection = dataset, selection
        self._base = base_folder(dataset)
        self._file = -1
        self._stream: Iterator[Instance] = iter(())
        self._next: Instance | None = None
        self.problems = Problems()
        """Bad records since this was last cleared."""

    def items(self, file: int, start: int, stop: int | None) -> Iterator[Item]:
        """The items of records `start` to `stop` of the file with this number; each item's row is its record."""
        position = -1 if self._next is None else _index(self._next)
        if file != self._file or position > start or self._next is None:
            self._file = file
            self._stream = self._dataset.format.read(
                self._dataset.files[file], self._dataset.reading(self.problems.add)
            )
            self._advance()
        while self._next is not None and (stop is None or _index(self._next) < stop):
            instance = self._next
            if _index(instance) >= start:
                yield Item.of(instance, _index(instance), self._base, selected=self._selection.takes(instance))
            self._advance()

    def _advance(self) -> None:
        try:
            self._next = next(self._stream, None)
        except OSError as error:
            raise DataError(f"{self._dataset.files[self._file]}: cannot be read ({error.strerror or error})") from error


def _index(instance: Instance) -> int:
    return instance.origin.index if instance.origin is not None else -1

"""Who is looking at what, so that two people do not go through the same captions side by side."""

import time
from dataclasses import dataclass
from threading import Lock

from capedit.server.review.decisions import Author

_SECONDS = 15.0
_MOST = 200


@dataclass(frozen=True)
class Present:
    """One browser, as it was last heard of."""

    author: Author
    row: int | None
    seen: float


class Presence:
    """The browsers that have been heard of lately; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._present: dict[str, Present] = {}

    def note(self, author: Author, row: int | None) -> None:
        with self._lock:
            self._present.pop(author.id, None)
            self._present[author.id] = Present(author, row, time.monotonic())  # last, as it was heard of last
            while len(self._present) > _MOST:
                del self._present[next(iter(self._present))]

    def others(self, author_id: str) -> list[Present]:
        since = time.monotonic() - _SECONDS
        with self._lock:
            return [one for one in self._present.values() if one.seen >= since and one.author.id != author_id]

"""Fill a feature store from many images, on several cores, with an account of every image."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from PIL.Image import Image

from capedit.errors import CapeditError
from capedit.vision.encoder import Encoder
from capedit.vision.image import IMAGE_SUFFIXES, ImageError, load_image
from capedit.vision.store import Failure
from capedit.vision.store_writer import StoreWriter
from capedit.vision.tokens import VisualTokens

_CHUNK = 8
_CHUNK_PIXELS = 32_000_000  # decoded pictures a worker holds before it encodes them


@dataclass
class Account:
    """What became of the images of a run; at its end the last three add up to `seen`."""

    seen: int = 0
    stored: int = 0
    already: int = 0
    failed: int = 0

    @property
    def done(self) -> int:
        """How many images nothing is left to do for."""
        return self.stored + self.already + self.failed


@dataclass(frozen=True)
class ImageEntry:
    """An image to encode, and the id to keep its tokens under."""

    image_id: str
    path: Path


def find_images(sources: Sequence[Path]) -> list[ImageEntry]:
    """Images in folders (at any depth), single files, and `.txt` lists of paths, in a fixed order.

    The id is the path within the folder, or the name of the file, without its suffix.
    """
    return [entry for source in sources for entry in _entries(source)]


def _entries(source: Path) -> Iterator[ImageEntry]:
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file():
                yield ImageEntry(path.relative_to(source).with_suffix("").as_posix(), path)
    elif source.suffix.lower() == ".txt":
        for line in source.read_text(encoding="utf-8").splitlines():
            if line.strip():
                path = source.parent / line.strip()
                yield ImageEntry(path.stem, path)
    elif source.is_file():
        yield ImageEntry(source.stem, source)
    else:
        raise CapeditError(f"{source}: no such file or folder")


def extract(
    entries: Iterable[ImageEntry],
    encoder: Encoder,
    writer: StoreWriter,
    *,
    workers: int = 1,
    report: Callable[[Account], None] = lambda account: None,
) -> Account:
    """Encode what the store lacks, in the order given. `report` is called as the account grows.

    Threads suffice: decoding and the network both run outside Python's lock. Give the encoder one thread then.
    """
    account = Account()
    seen: dict[str, Path] = {}

    def missing() -> Iterator[ImageEntry]:
        for entry in entries:
            account.seen += 1
            if entry.image_id in seen:
                account.failed += 1
                writer.fail(Failure(entry.image_id, str(entry.path), f"has the same id as {seen[entry.image_id]}"))
                continue
            seen[entry.image_id] = entry.path
            if entry.image_id in writer:
                account.already += 1
            else:
                yield entry

    waiting: deque[Future[list[tuple[ImageEntry, VisualTokens | ImageError]]]] = deque()

    def collect() -> None:
        for entry, result in waiting.popleft().result():
            if isinstance(result, ImageError):
                account.failed += 1
                writer.fail(Failure(entry.image_id, str(entry.path), result.reason))
            else:
                writer.add(entry.image_id, result)
                account.stored += 1
        report(account)

    pool = ThreadPoolExecutor(workers)
    try:
        for chunk in _chunks(missing(), _CHUNK):
            waiting.append(pool.submit(_encode_chunk, encoder, chunk))
            if len(waiting) > 2 * workers:
                collect()
        while waiting:
            collect()
    finally:
        pool.shutdown(cancel_futures=True)
    report(account)
    return account


def _encode_chunk(encoder: Encoder, chunk: Sequence[ImageEntry]) -> list[tuple[ImageEntry, VisualTokens | ImageError]]:
    results: list[tuple[ImageEntry, VisualTokens | ImageError]] = []
    ready: list[tuple[ImageEntry, Image]] = []

    def encode_ready() -> None:
        tokens = encoder.encode([image for _, image in ready])
        results.extend(zip((entry for entry, _ in ready), tokens, strict=True))
        ready.clear()

    for entry in chunk:
        try:
            ready.append((entry, load_image(entry.path)))
        except ImageError as error:
            results.append((entry, error))
        if sum(image.width * image.height for _, image in ready) > _CHUNK_PIXELS:
            encode_ready()
    encode_ready()
    return results


def _chunks(entries: Iterator[ImageEntry], size: int) -> Iterator[list[ImageEntry]]:
    while chunk := list(itertools.islice(entries, size)):
        yield chunk

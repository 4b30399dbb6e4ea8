"""The editing service under load, on loopback: requests a second, how long each takes, refusals, and memory.

Clients are threads of this process with connections that stay open, on the same cores as the service.
"""

import http.client
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from pathlib import Path

import numpy as np

from capedit.data.images import IMAGE_SUFFIXES, Image, ImageFile
from capedit.errors import CapeditError
from capedit.server.child import Child

CAPTIONS = ["a dog lies on a sofa", "two people are riding horses on the beach", "a plate of food on a wooden table"]
NO_ANSWER = 0
"""Stands for a status where the connection broke or timed out."""
MOMENTS = 10
"""At which memory is looked at while it is soaked."""
_WARMING = 8
_SOAKERS = 8
_GLANCE = 0.2  # seconds between two reports


class Kind(StrEnum):
    """What clients ask for."""

    REMEMBERED = "remembered image"
    """Another caption for an image that the service knows: edit alone."""
    NEW = "new image"
    """Upload, decode, encode, edit."""
    MIXED = "mixed"
    """A new image in every fourth request."""


@dataclass(frozen=True)
class Plan:
    """How much to ask."""

    clients: tuple[int, ...] = (1, 8, 32)
    """At once; each in turn."""
    requests: int = 300
    """Of each kind, by each number of clients."""
    max_waiting: int = 64
    """Places of the service. Thrice as many clients are sent to see what becomes of those who find none."""
    soak: int = 0
    """Mixed requests over which memory is watched."""

    def __post_init__(self) -> None:
        if max(self.clients) > self.max_waiting:
            raise CapeditError(f"{max(self.clients)} clients: more than the service has places ({self.max_waiting})")
        if 0 < self.soak < MOMENTS:
            raise CapeditError(f"a soak of {self.soak} requests: must be at least {MOMENTS}")

    @property
    def crowd(self) -> int:
        """Clients above the limit."""
        return 3 * self.max_waiting

    @property
    def crowd_requests(self) -> int:
        return 4 * self.crowd

    @property
    def total(self) -> int:
        """Requests, all in all."""
        return _WARMING + 2 * len(self.clients) * self.requests + self.crowd_requests + self.soak


@dataclass(frozen=True)
class Load:
    """What came of a number of requests."""

    kind: Kind
    clients: int
    answers: dict[int, int]
    """How many of each status."""
    seconds: float
    edits_per_second: float
    p50: float | None
    """Milliseconds from a request to its edit; None where there was none."""
    p95: float | None
    p99: float | None

    @classmethod
    def of(cls, kind: Kind, clients: int, answers: Sequence[tuple[int, float]], seconds: float) -> "Load":
        waits = [1000 * waited for status, waited in answers if status == 200]
        marks = [float(mark) for mark in np.percentile(waits, (50, 95, 99))] if waits else (None, None, None)
        statuses = dict(sorted(Counter(status for status, _ in answers).items()))
        return cls(kind, clients, statuses, seconds, len(waits) / seconds, *marks)

    def failures(self, *, above_limit: bool = False) -> int:
        """Answers that should not have come; above the limit a 429 is as it should be."""
        fine = {200, 429} if above_limit else {200}
        return sum(number for status, number in self.answers.items() if status not in fine)


@dataclass(frozen=True)
class Findings:
    """What came of a plan."""

    model: str
    loads: list[Load]
    """Below the limit."""
    crowd: Load
    """Above it."""
    memory: list[tuple[int, int]] = field(default_factory=list)
    """Bytes that it held after so many requests of the soak."""
    soaked: list[Load] = field(default_factory=list)
    """The parts of the soak between those moments."""

    @property
    def failures(self) -> int:
        below = sum(load.failures() for load in [*self.loads, *self.soaked])
        return below + self.crowd.failures(above_limit=True)


Report = Callable[[str, int], None]
"""Gets what is being done, and how many requests of the whole plan are."""


def measure(
    child: Child,
    images: Sequence[Image],
    plan: Plan,
    *,
    report: Report = lambda doing, done: None,
    tell: Callable[[Load], None] = lambda load: None,
) -> Findings:
    """Carry out a plan on a service; `tell` gets each load below the limit when it is over."""
    asking = _Asking(child, images)
    asked = 0

    def ask(kind: Kind, clients: int, requests: int, doing: str) -> Load:
        nonlocal asked
        child.check()
        asking.remind()
        before = asked
        load = drive(
            child.connect,
            lambda number: asking.body(kind, number),
            kind,
            clients,
            requests,
            report=lambda done: report(doing, before + done),
        )
        asked += requests
        return load

    ask(Kind.NEW, 1, _WARMING, "warming up")
    loads = []
    for kind in (Kind.REMEMBERED, Kind.NEW):
        for clients in plan.clients:
            loads.append(ask(kind, clients, plan.requests, f"{kind}, {clients} clients"))
            tell(loads[-1])
    crowd = ask(Kind.REMEMBERED, plan.crowd, plan.crowd_requests, f"{plan.crowd} clients, {plan.max_waiting} places")
    child.check()
    if not plan.soak:
        return Findings(child.model, loads, crowd)
    memory, soaked = [(0, child.memory())], []
    for part in range(1, MOMENTS + 1):
        until = plan.soak * part // MOMENTS
        clients = min(_SOAKERS, plan.max_waiting)
        soaked.append(ask(Kind.MIXED, clients, until - memory[-1][0], "watching memory"))
        memory.append((until, child.memory()))
    return Findings(child.model, loads, crowd, memory, soaked)


def drive(
    connect: Callable[[], http.client.HTTPConnection],
    body: Callable[[int], bytes],
    kind: Kind,
    clients: int,
    requests: int,
    *,
    report: Callable[[int], None] = lambda done: None,
) -> Load:
    """So many requests by so many clients, each waiting for its answer before it asks again."""
    numbers = deque(range(requests))
    answers: list[tuple[int, float]] = []

    def client() -> None:
        connection = connect()
        while True:
            try:
                number = numbers.popleft()
            except IndexError:
                break
            data = body(number)
            begun = time.perf_counter()
            status = _status(connection, data)
            answers.append((status, time.perf_counter() - begun))
        connection.close()

    started_at = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        under_way = {pool.submit(client) for _ in range(clients)}
        try:
            while under_way:
                done, under_way = wait(under_way, _GLANCE)
                report(len(answers))
                for one in done:
                    one.result()
        finally:
            numbers.clear()  # who is interrupted waits for the requests under way only
    return Load.of(kind, clients, answers, time.perf_counter() - started_at)


def images_in(folder: Path) -> list[Image]:
    """The images of a folder, by name."""
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES)
    if not paths:
        raise CapeditError(f"{folder}: has no images in it")
    return [ImageFile(path, path.name) for path in paths]


def _status(connection: http.client.HTTPConnection, data: bytes) -> int:
    try:
        connection.request("POST", "/api/v1/edit", data, {"Content-Type": "multipart/form-data; boundary=b"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        connection.close()  # the next request opens it again
        return NO_ANSWER


class _Asking:
    """What clients send. Every new image has a tail of its own, so that no two files are the same."""

    def __init__(self, child: Child, images: Sequence[Image]) -> None:
        self.child, self.images = child, images
        self.sent = count()
        self.known = ""

    def remind(self) -> None:
        """Have the service remember the known image, which many others may have driven out."""
        connection = self.child.connect()
        data = self.images[0].read()
        connection.request("POST", "/api/v1/images", data, {"Content-Type": "application/octet-stream"})
        answer = connection.getresponse()
        told = answer.read().decode()
        connection.close()
        if answer.status != 200:
            raise CapeditError(f"{self.images[0].name}: the service refuses this image ({told})")
        self.known = json.loads(told)["image_id"]

    def body(self, kind: Kind, number: int) -> bytes:
        caption = CAPTIONS[number % len(CAPTIONS)]
        if kind is Kind.REMEMBERED or (kind is Kind.MIXED and number % 4):
            return _form(caption=caption.encode(), image_id=self.known.encode())
        unique = next(self.sent)
        return _form(caption=caption.encode(), image=self.images[unique % len(self.images)].read() + b"%d" % unique)


def _form(**fields: bytes) -> bytes:
    parts = []
    for name, value in fields.items():
        file = '; filename="image"' if name == "image" else ""
        parts.append(f'--b\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + value)
    return b"\r\n".join(parts) + b"\r\n--b--\r\n"

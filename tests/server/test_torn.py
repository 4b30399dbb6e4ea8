"""Requests that break off on the wire: the server goes on, and keeps no place for those who have left."""

import json
import socket
import time
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from capedit.editing import Editor
from capedit.server.app import service_app
from capedit.server.settings import Limits
from tests.server.browsing import running
from tests.server.conftest import picture


@pytest.fixture(scope="module")
def address(editor: Editor) -> Iterator[str]:
    with running(service_app(editor, examples=[], limits=Limits(upload_seconds=2))) as address:
        yield address


def exchange(address: str, request: bytes, *, hang_up: bool) -> bytes:
    """Send these bytes; then hang up, or say no more and read what comes."""
    split = urlsplit(address)
    with socket.create_connection((split.hostname or "", split.port or 0), timeout=60) as wire:
        wire.sendall(request)
        if hang_up:
            return b""
        return wire.recv(65536)


def head(address: str, path: str, kind: str, length: int) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def waiting(address: str) -> int:
    with urllib.request.urlopen(f"{address}/api/v1/health", timeout=60) as answer:
        count: int = json.load(answer)["waiting"]
        return count


def torn_requests(address: str) -> Iterator[bytes]:
    image = picture(size=(200, 200))
    yield head(address, "/api/v1/images", "application/octet-stream", len(image)) + image[:1000]
    form = b'--b\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n' + image
    yield head(address, "/api/v1/edit", "multipart/form-data; boundary=b", 2 * len(form)) + form
    yield head(address, "/api/v1/edit", "application/json", 1000) + b'{"caption": "a d'
    yield head(address, "/api/v1/edits", "application/json", 1000) + b'{"items": ['
    yield b"POST /api/v1/images HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nabc"
    yield b"POST /api/v1/edit HT"
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # TLS to a server that has none


def test_those_who_hang_up_leave_nothing_behind(address: str) -> None:
    for request in torn_requests(address):
        exchange(address, request, hang_up=True)
    deadline = time.monotonic() + 60
    while waiting(address):
        assert time.monotonic() < deadline, "a place is kept for someone who has left"
        time.sleep(0.05)


@pytest.mark.parametrize("number", range(4))
def test_those_who_say_no_more_are_told_so(address: str, number: int) -> None:
    request = list(torn_requests(address))[number]
    assert exchange(address, request, hang_up=False).startswith(b"HTTP/1.1 408 ")
    assert waiting(address) == 0


@pytest.mark.parametrize(
    "request_line",
    [
        "GET /assets/../../app.py HTTP/1.1",
        "GET /../../../../etc/passwd HTTP/1.1",
        "GET /assets/..%2f..%2fapp.py HTTP/1.1",
        "GET /assets/%2e%2e/%2e%2e/app.py HTTP/1.1",
        "GET /api/v1/examples/../../../etc/passwd HTTP/1.1",
        "GET file:///etc/passwd HTTP/1.1",
        "GET http://127.0.0.1:22/ HTTP/1.1",
    ],
)
def test_paths_as_no_client_library_would_send_them(address: str, request_line: str) -> None:
    request = f"{request_line}\r\nHost: {urlsplit(address).netloc}\r\nConnection: close\r\n\r\n".encode()
    answer = exchange(address, request, hang_up=False)
    assert answer.split(b" ", 2)[1] in (b"400", b"404", b"405", b"421", b"422")
    assert b"root:" not in answer
    assert b"import " not in answer

"""What is too much, too slow or broken gets a 4xx, at once."""

import asyncio
import gzip
import io
import struct
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from capedit.editing import Editor
from capedit.server.app import service_app
from capedit.server.batching import Batcher, Gate
from capedit.server.refusal import Refusal
from capedit.server.settings import Limits
from tests.server.conftest import BASE, picture


class SlowEditor(Editor):
    """Edits only when it is allowed to."""

    def __init__(self, editor: Editor) -> None:
        super().__init__(editor.bundle, editor.modules, editor.encoder)
        self.may_go = threading.Event()

    def edit_seen(self, seen: Any, captions: Any, **knobs: Any) -> Any:
        self.may_go.wait(120)
        return super().edit_seen(seen, captions, **knobs)


def test_beyond_the_places_comes_429(editor: Editor) -> None:
    slow = SlowEditor(editor)
    app = service_app(slow, examples=[], limits=Limits(waiting=5, seconds=120))
    with TestClient(app, base_url=BASE) as client, ThreadPoolExecutor(5) as pool:
        key = client.post("/api/v1/images", content=picture()).json()["image_id"]

        def ask(number: int) -> int:
            return client.post("/api/v1/edit", json={"image_id": key, "caption": f"a dog {number}"}).status_code

        waiting = [pool.submit(ask, number) for number in range(5)]
        while client.get("/api/v1/health").json()["waiting"] < 5:  # answers while others wait
            time.sleep(0.01)
        refused = client.post("/api/v1/edit", json={"image_id": key, "caption": "a cat"})
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert "5 of 5" in refused.json()["detail"]
        slow.may_go.set()
        assert [one.result() for one in waiting] == [200] * 5
        assert client.post("/api/v1/edit", json={"image_id": key, "caption": "a cat"}).status_code == 200


def test_who_waits_together_is_served_together() -> None:
    begun, may_go = threading.Event(), threading.Event()
    batches: list[list[int]] = []

    def work(jobs: Any) -> list[int | Exception]:
        begun.set()
        may_go.wait(120)
        batches.append(list(jobs))
        return list(jobs)

    async def check() -> None:
        with ThreadPoolExecutor(1) as pool:
            batcher: Batcher[int, int] = Batcher(work, most=4, executor=pool)
            asked = [asyncio.ensure_future(batcher.submit(0))]
            await asyncio.to_thread(begun.wait, 120)
            asked += [asyncio.ensure_future(batcher.submit(job)) for job in range(1, 7)]
            await asyncio.sleep(0)  # all have come
            may_go.set()
            assert await asyncio.gather(*asked) == list(range(7))

    asyncio.run(check())
    assert batches == [[0], [1, 2, 3, 4], [5, 6]]


def test_a_batch_takes_a_place_for_each_caption(editor: Editor) -> None:
    with TestClient(service_app(editor, examples=[], limits=Limits(waiting=5)), base_url=BASE) as client:
        key = client.post("/api/v1/images", content=picture()).json()["image_id"]
        items = [{"image_id": key, "caption": "a dog"}] * 6
        assert client.post("/api/v1/edits", json={"items": items[:5]}).status_code == 200
        assert client.post("/api/v1/edits", json={"items": items}).status_code == 429
        assert client.post("/api/v1/edits", json={"items": items * 20}).status_code == 422


def test_an_answer_that_takes_too_long_is_given_up(editor: Editor) -> None:
    slow = SlowEditor(editor)
    with TestClient(service_app(slow, examples=[], limits=Limits(seconds=0.3)), base_url=BASE) as client:
        # Whatever is slow on this machine, the image or the edit: there is no answer in time.
        answer = client.post("/api/v1/edit", files={"image": picture()}, data={"caption": "a dog"})
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        slow.may_go.set()
        assert client.get("/api/v1/health").json()["waiting"] == 0


def test_large_bodies_are_cut_off(editor: Editor) -> None:
    with TestClient(service_app(editor, examples=[], limits=Limits(body_bytes=50_000)), base_url=BASE) as client:
        assert client.post("/api/v1/images", content=b"x" * 60_000).status_code == 413

        def endless() -> Any:  # chunked: no length is told beforehand
            for _ in range(100):
                yield b"x" * 1000

        assert client.post("/api/v1/images", content=endless()).status_code == 413
        big = {"image": ("x.png", b"x" * 60_000)}
        assert client.post("/api/v1/edit", files=big, data={"caption": "a dog"}).status_code == 413


def png(width: int, height: int, *more: tuple[bytes, bytes]) -> bytes:
    """A PNG that says it is this large, with more chunks after its header; its pixels are enough for 60 x 40."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), *more, (b"IDAT", zlib.compress(bytes(40 * (1 + 3 * 60)))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in chunks)


BOMB = zlib.compress(bytes(100_000_000), 9)
"""A hundred megabytes in a hundred kilobytes."""


def jpeg(size: tuple[int, int]) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.zeros((*size, 3), np.uint8)).save(out, "JPEG", progressive=True)
    return out.getvalue()


def test_a_plain_png_is_taken(client: TestClient) -> None:
    """So that those below are refused for what is wrong with them."""
    assert client.post("/api/v1/images", content=png(60, 40)).status_code == 200


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 100,
        b"GIF89a",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%!PS-Adobe-3.0 EPSF-3.0",
        picture(size=(200, 200), format="JPEG")[:-500],
        picture(size=(200, 200))[:300],
        png(50_000, 50_000),
        png(2**31 - 1, 2**31 - 1),
        png(60, 40, (b"zTXt", b"Comment\0\0" + BOMB)),
        png(60, 40, (b"iTXt", b"Comment\0\1\0\0\0" + BOMB)),
        png(60, 40, (b"iCCP", b"colours\0\0" + BOMB)),
        b"PK\x03\x04" + b"\0" * 200,
        gzip.compress(picture()),
    ],
    ids="empty zeros gif svg eps cut-jpeg cut-png pixels overflow text-bomb itxt-bomb colour-bomb zip gzip".split(),
)
def test_broken_images_are_refused(client: TestClient, data: bytes) -> None:
    answer = client.post("/api/v1/edit", files={"image": ("x.png", data)}, data={"caption": "a dog"})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("image")
    assert client.get("/api/v1/health").json()["waiting"] == 0


def test_pixels_are_limited(editor: Editor) -> None:
    with TestClient(service_app(editor, examples=[], limits=Limits(pixels=10_000)), base_url=BASE) as client:
        assert client.post("/api/v1/images", content=jpeg((90, 100))).status_code == 200
        answer = client.post("/api/v1/images", content=jpeg((200, 100)))
        assert answer.status_code == 422
        assert "limit 10,000" in answer.json()["detail"]


@pytest.mark.parametrize("caption", ["", " ", "...", "word " * 300, "x" * 3000, "\x00", "a" * 1999])
def test_hopeless_captions_are_refused(client: TestClient, caption: str) -> None:
    answer = client.post("/api/v1/edit", files={"image": picture()}, data={"caption": caption})
    assert answer.status_code in (200, 422)
    if answer.status_code == 422:
        assert "caption" in answer.json()["detail"]


@pytest.mark.parametrize(
    "caption", ["a dog 🐶 on a sofa", "一只猫", "<script>alert(1)</script>", "a\u202edog", "'; DROP TABLE"]
)
def test_odd_captions_are_edited(client: TestClient, caption: str) -> None:
    answer = client.post("/api/v1/edit", files={"image": picture()}, data={"caption": caption})
    assert answer.status_code == 200
    assert answer.json()["source"] == caption


def test_torn_and_odd_forms_are_refused(client: TestClient) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    for body in (b"", b"--b\r\n", b"--b\r\nContent-Disposition: form-data; name=image; filename=a\r\n\r\nxx", b"zzzz"):
        assert client.post("/api/v1/edit", content=body, headers=kind).status_code in (400, 422)
    no_boundary = {"Content-Type": "multipart/form-data"}
    assert client.post("/api/v1/edit", content=b"x", headers=no_boundary).status_code == 400
    twice = [("image", ("a.png", picture())), ("image", ("b.png", picture()))]
    assert client.post("/api/v1/edit", files=twice, data={"caption": "a dog"}).status_code == 400
    other = {"photo": ("a.png", picture())}
    assert client.post("/api/v1/edit", files=other, data={"caption": "a dog"}).status_code == 422
    assert client.post("/api/v1/edit", content=b"x", headers={"Content-Type": "text/csv"}).status_code == 415
    assert client.post("/api/v1/edit", content=b"[" * 100_000).status_code == 400
    assert client.post("/api/v1/edit", content=b'"\xff"').status_code == 400


def test_the_gate_counts() -> None:
    async def check() -> None:
        gate = Gate(3)
        async with gate.admit(2):
            with pytest.raises(Refusal, match="2 of 3"):
                async with gate.admit(2):
                    raise AssertionError
            async with gate.admit(1):
                assert gate.taken == 3
        assert gate.taken == 0

    asyncio.run(check())


def test_a_batcher_gives_each_caller_its_own() -> None:
    def work(jobs: Any) -> list[int | Exception]:
        if 13 in jobs:
            raise RuntimeError("a bug")
        return [ValueError(f"bad {job}") if job < 0 else job * 2 for job in jobs]

    async def check() -> None:
        with ThreadPoolExecutor(1) as pool:
            batcher: Batcher[int, int] = Batcher(work, most=4, executor=pool)
            answers = await asyncio.gather(*map(batcher.submit, [1, -2, 3, 4, 5]), return_exceptions=True)
            assert [str(answer) for answer in answers] == ["2", "bad -2", "6", "8", "10"]
            with pytest.raises(RuntimeError, match="a bug"):
                await batcher.submit(13)
            gone = asyncio.ensure_future(batcher.submit(7))
            await asyncio.sleep(0)
            gone.cancel()
            assert await batcher.submit(8) == 16
            await batcher.drain()

    asyncio.run(check())

"""`capedit serve` and `capedit review` as users start them."""

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from capedit.server.examples import drawn_examples
from tests.server.runs import write_run

PATIENCE = 300.0


@contextmanager
def started(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running command, and the line that it says when it is ready."""
    command = [sys.executable, "-m", "capedit", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait(PATIENCE)
        process.stdout.close()


def get(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        found: bytes = answer.read()
        return found


def test_serve_with_the_bundled_model() -> None:
    with started("serve", "--port", 0, "--threads", 1) as (process, line):
        name, _, address = line.partition(" at ")
        assert json.loads(get(f"{address}api/v1/model"))["model"] == name
        assert b"<title>capedit playground</title>" in get(address)
        offered = json.loads(get(f"{address}api/v1/examples"))
        assert [one["caption"] for one in offered] == [example.caption for example in drawn_examples()]
        picture = get(address.rstrip("/") + offered[0]["url"])
        request = urllib.request.Request(f"{address}api/v1/images", picture, {"Content-Type": "image/jpeg"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            assert json.load(answer)["width"] == 800
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) in (0, -signal.SIGTERM)


def test_every_example_is_a_picture() -> None:
    for example in drawn_examples():
        data, media_type = example.read()
        assert media_type == "image/jpeg"
        assert len(data) < 150_000


def test_review_of_a_run(tmp_path: Path) -> None:
    out = write_run(tmp_path)
    with started("review", out, "--port", 0, "--no-open", "--reviewer", "Ann") as (process, line):
        assert line.startswith("6 captions to review at http://127.0.0.1:")
        address = line.split()[-1]
        told = json.loads(get(f"{address}api/v1/review"))
        assert (told["proposals"], told["reviewer"]) == (5, "Ann")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) in (0, -signal.SIGINT, 130)

"""A server that is told to stop finishes what it has begun."""

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.server.conftest import picture

SERVER = """
import sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from capedit.server.app import service_app
from capedit.server.run import serve
from capedit.server.settings import Limits
from tests.editing.tiny import tiny_editor

folder = Path({folder!r})
editor = tiny_editor(folder)
edit_seen = editor.edit_seen

def slowly(*arguments, **knobs):
    while not (folder / "go").exists():
        time.sleep(0.02)
    return edit_seen(*arguments, **knobs)

editor.edit_seen = slowly
limits = Limits(shutdown_seconds=120, seconds=120)
app = service_app(editor, examples=[], limits=limits)
serve(app, "127.0.0.1", 0, limits, lambda address: print(address, flush=True))
print("stopped", flush=True)
"""
PATIENCE = 300.0


def test_an_answer_under_way_is_given_and_the_port_is_let_go(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    code = SERVER.format(root=root, folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    until(lambda: answers(f"{address}api/v1/health"))
    with _post(f"{address}api/v1/images", picture(), "application/octet-stream") as answer:
        image = json.load(answer)["image_id"]
    statuses: list[int] = []

    def ask() -> None:
        body = json.dumps({"image_id": image, "caption": "a dog"}).encode()
        with _post(f"{address}api/v1/edit", body, "application/json") as answer:
            statuses.append(answer.status)

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: b'"waiting":1' in answers(f"{address}api/v1/health"))
    process.send_signal(signal.SIGINT)
    until(lambda: not answers(f"{address}api/v1/health"))  # nobody else is let in
    (tmp_path / "go").touch()
    asking.join(PATIENCE)
    assert statuses == [200]
    assert process.wait(PATIENCE) == 0
    assert "stopped" in process.stdout.read()
    process.stdout.close()


def _post(address: str, body: bytes, kind: str):  # type: ignore[no-untyped-def]
    return urllib.request.urlopen(urllib.request.Request(address, body, {"Content-Type": kind}), timeout=PATIENCE)


def answers(address: str) -> bytes:
    """What comes from there; nothing if nobody is there."""
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            found: bytes = answer.read()
            return found
    except OSError:
        return b""


def until(come_true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not come_true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)

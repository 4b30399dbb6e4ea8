"""A server that is told to stop finishes what it has begun."""

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

from tests.server.conftest import picture

SERVER = """
import sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from capedit.server.app import service_app
from capedit.server.run import access_for, serve
from capedit.server.settings import Limits
from tests.editing.tiny import tiny_editor

editor = tiny_editor(Path({folder!r}))
edit_seen = editor.edit_seen
editor.edit_seen = lambda *a, **k: (time.sleep(1.5), edit_seen(*a, **k))[1]
app = service_app(editor, examples=[])
serve(app, "127.0.0.1", 0, Limits(), lambda address: print(address, flush=True))
print("stopped", flush=True)
"""


def test_an_answer_under_way_is_given_and_the_port_is_let_go(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    code = SERVER.format(root=root, folder=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    _wait_for(f"{address}api/v1/health")
    image = json.load(_post(f"{address}api/v1/images", picture(), "application/octet-stream"))
    answers: list[int] = []

    def ask() -> None:
        body = json.dumps({"image_id": image["image_id"], "caption": "a dog"}).encode()
        answers.append(_post(f"{address}api/v1/edit", body, "application/json").status)

    asking = threading.Thread(target=ask)
    asking.start()
    while json.load(urllib.request.urlopen(f"{address}api/v1/health"))["waiting"] == 0:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    asking.join(30)
    assert answers == [200]
    assert process.wait(30) == 0
    assert "stopped" in process.stdout.read()
    process.stdout.close()


def _post(address: str, body: bytes, kind: str):  # type: ignore[no-untyped-def]
    return urllib.request.urlopen(urllib.request.Request(address, body, {"Content-Type": kind}), timeout=30)


def _wait_for(address: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(address, timeout=5)
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"{address} never answered")

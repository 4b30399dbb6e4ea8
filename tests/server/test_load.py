"""`capedit bench --service`, and the clients that it sends."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest

from capedit.server.load import NO_ANSWER, Kind, Load, drive
from tests.calling import run, run_json
from tests.server.conftest import picture


def test_the_real_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CAPEDIT_TOKEN", "of another service")
    photos = tmp_path / "photos"
    photos.mkdir()
    for seed, suffix in enumerate(("png", "jpeg")):
        (photos / f"{seed}.{suffix}").write_bytes(picture(seed, format=suffix))
    (photos / "notes.txt").write_text("no picture")
    options = ["--clients", "1,2", "--requests", 3, "--max-waiting", 2, "--soak", 10, "--threads", 1]
    files = ["--images", photos, "--out", tmp_path / "load.json", "--plot", tmp_path / "load.png"]
    figures = run_json(capsys, "bench", "--service", *options, *files)
    assert figures["failures"] == 0
    assert figures["model"].startswith("tiger-small@")
    assert [(load["kind"], load["clients"]) for load in figures["loads"]] == [
        ("remembered image", 1),
        ("remembered image", 2),
        ("new image", 1),
        ("new image", 2),
    ]
    for load in figures["loads"]:
        assert load["answers"] == {"200": 3}
        assert 0 < load["p50"] <= load["p95"] <= load["p99"] <= 1000 * load["seconds"]
        assert load["edits_per_second"] == pytest.approx(3 / load["seconds"])
    crowd = figures["crowd"]["answers"]
    assert set(crowd) == {"200", "429"}  # six clients, two places
    assert sum(crowd.values()) == 24
    assert [requests for requests, _ in figures["memory"]] == list(range(11))
    assert all(30e6 < held < 4e9 for _, held in figures["memory"])
    assert json.loads((tmp_path / "load.json").read_text()) == figures
    assert (tmp_path / "load.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--service", "--clients", "one"], "--clients one: write whole numbers"),
        (["--service", "--clients", "0"], "must be at least 1"),
        (["--service", "--clients", "8", "--max-waiting", "4"], "8 clients: more than the service has places (4)"),
        (["--service", "--soak", "3"], "must be at least 10"),
        (["--service", "--images", "nowhere"], "nowhere"),
        (["--service", "--images", "."], "has no images in it"),
        (["--service", "--model", "nowhere"], "the service did not start: nowhere/model.json: not a model folder"),
        (["--service", "--sizes", "10"], "--sizes goes without --service"),
        (["--service", "captions.jsonl"], "DATASET goes without --service"),
        (["--soak", "100"], "--soak needs --service"),
        (["--service", "--plot", "load.txt"], "--plot load.txt: must end in"),
        (["--out", "nowhere/load.json"], "there is no folder nowhere"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("bench", *arguments) == 1
    said = capsys.readouterr().err
    assert told in said
    assert said.splitlines()[-1].startswith("error:")
    assert "Traceback" not in said


@contextmanager
def faulty(fault: str) -> Iterator[str]:
    """A server of which every third answer is wrong; gives host and port."""
    numbers = count()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            wrong = next(numbers) % 3 == 0
            if wrong and fault == "hangs up":
                self.close_connection = True
                return
            self.send_response(500 if wrong else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("fault", "status"), [("fails", 500), ("hangs up", NO_ANSWER)])
def test_what_goes_wrong_is_counted(fault: str, status: int) -> None:
    done: list[int] = []
    with faulty(fault) as address:
        load = drive(lambda: HTTPConnection(address), lambda number: b"x", Kind.NEW, 4, 30, report=done.append)
    assert load.answers == {200: 20, status: 10}
    assert load.failures() == load.failures(above_limit=True) == 10
    assert done[-1] == 30


def test_refusals_are_failures_below_the_limit_only() -> None:
    load = Load.of(Kind.NEW, 2, [(429, 0.1), (429, 0.1)], 1.0)
    assert (load.failures(), load.failures(above_limit=True)) == (2, 0)
    assert load.p50 is None

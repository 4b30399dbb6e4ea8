"""`capedit serve` in a process of its own, on a free port of this machine, as users start it."""

import http.client
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from capedit.errors import CapeditError

_PATIENCE = 30.0
"""Seconds for it to stop."""


@dataclass(frozen=True)
class Child:
    """A service that is up."""

    process: subprocess.Popen[str]
    model: str
    netloc: str
    """Host and port."""
    log: Path
    """What it says on standard error."""

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.netloc, timeout=120)

    def memory(self) -> int:
        """Bytes that it holds now, not the most that it ever held."""
        self.check()
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            return int(status.split("VmRSS:")[1].split()[0]) * 1024
        except FileNotFoundError:  # a system without /proc
            command = ["ps", "-o", "rss=", "-p", str(self.process.pid)]
            return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * 1024

    def check(self) -> None:
        """Raise if it is gone."""
        if self.process.poll() is not None:
            raise CapeditError(f"the service ended by itself: {_last_words(self.log)}")


@contextmanager
def started(model: str = "default", *, max_waiting: int, threads: int = 0) -> Iterator[Child]:
    """Start it, wait until it is up, and stop it in the end."""
    command = [sys.executable, "-P", "-m", "capedit", "serve", "--port", "0", "--model", model]
    command += ["--max-waiting", str(max_waiting), "--threads", str(threads)]
    # The user's own token would have it refuse us.
    surroundings = {name: value for name, value in os.environ.items() if name != "CAPEDIT_TOKEN"}
    with tempfile.TemporaryDirectory(prefix="capedit-serve-") as folder:
        log = Path(folder, "log")
        with log.open("w") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=surroundings)
        try:
            assert process.stdout is not None
            with process.stdout as said:
                label, _, address = said.readline().strip().rpartition(" at ")
                if not address.startswith("http"):
                    process.wait(_PATIENCE)
                    raise CapeditError(f"the service did not start: {_last_words(log)}")
                yield Child(process, label, urlsplit(address).netloc, log)
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_words(log: Path) -> str:
    return (log.read_text(encoding="utf-8").strip().splitlines() or ["no message"])[-1].removeprefix("error: ")

"""The editing service under load, on loopback: requests/s and latency at 1, 8 and 32 clients, 429s, and memory.

    python benchmarks/service.py --images PHOTOS [--model FOLDER] [--requests 500] [--soak 10000]

Starts `capedit serve` by itself. Two kinds of requests: a new image with each (upload, decode, encode, edit), and
another caption for an image that is remembered (edit alone). Clients are threads of this process with keep-alive
connections, on the same cores as the service. `--soak` mixes both kinds, a new image in every fourth request. `--tiny`
serves the random-weight editor of the tests instead of a model: then the figures are the service's, not the networks'.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

CAPTIONS = ["a dog lies on a sofa", "two people are riding horses on the beach", "a plate of food on a wooden table"]
WAITING = 64
TINY = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from capedit.server.app import service_app
from capedit.server.run import access_for, serve
from capedit.server.settings import Limits
from tests.editing.tiny import tiny_editor
limits = Limits(waiting={waiting})
app = service_app(tiny_editor(Path({folder!r})), examples=[], limits=limits)
serve(app, "127.0.0.1", 0, limits, lambda address: print("tiny at", address, flush=True))
"""


@dataclass(frozen=True)
class Load:
    """What came of a number of requests."""

    statuses: Counter[int]
    latencies: list[float]
    seconds: float

    def row(self, name: str) -> str:
        done = self.statuses[200]
        p50, p95, p99 = (1000 * np.percentile(self.latencies, q) for q in (50, 95, 99))
        others = ", ".join(f"{count} x {status}" for status, count in sorted(self.statuses.items()) if status != 200)
        return f"| {name} | {done / self.seconds:.1f} | {p50:.0f} | {p95:.0f} | {p99:.0f} | {others or 'none'} |"


class Service:
    """A running `capedit serve`."""

    def __init__(self, process: subprocess.Popen[str], model: str, address: str) -> None:
        self.process = process
        self.model = model
        self.netloc = urlsplit(address).netloc

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.netloc, timeout=120)

    def memory(self) -> float:
        """Resident megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def metric(self, name: str) -> float:
        connection = self.connect()
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


@contextmanager
def started(arguments: argparse.Namespace, folder: str) -> Iterator[Service]:
    if arguments.tiny:
        root = str(Path(__file__).parents[1])
        command = [sys.executable, "-c", TINY.format(root=root, folder=folder, waiting=WAITING)]
    else:
        command = [sys.executable, "-m", "capedit", "serve", "--port", "0", "--model", arguments.model]
        command += ["--max-waiting", str(WAITING), "--threads", str(arguments.threads)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    model, _, address = process.stdout.readline().strip().partition(" at ")
    if not address.startswith("http"):
        raise SystemExit("the service did not start")
    try:
        yield Service(process, model, address)
    finally:
        process.terminate()
        process.wait(30)


def drive(service: Service, clients: int, requests: int, body: Callable[[int], bytes]) -> Load:
    """So many requests by so many clients, each waiting for its answer before it asks again."""
    statuses: Counter[int] = Counter()
    latencies: list[float] = []
    lock = threading.Lock()
    numbers = iter(range(requests))

    def client() -> None:
        connection = service.connect()
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            data = body(number)
            begun = time.perf_counter()
            connection.request("POST", "/api/v1/edit", data, {"Content-Type": "multipart/form-data; boundary=b"})
            answer = connection.getresponse()
            answer.read()
            with lock:
                statuses[answer.status] += 1
                if answer.status == 200:
                    latencies.append(time.perf_counter() - begun)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    started_at = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Load(statuses, latencies, time.perf_counter() - started_at)


def form(caption: str, *, image: bytes | None = None, image_id: str | None = None) -> bytes:
    parts = [b'--b\r\nContent-Disposition: form-data; name="caption"\r\n\r\n' + caption.encode()]
    if image is not None:
        parts.append(b'--b\r\nContent-Disposition: form-data; name="image"; filename="a.jpg"\r\n\r\n' + image)
    if image_id is not None:
        parts.append(b'--b\r\nContent-Disposition: form-data; name="image_id"\r\n\r\n' + image_id.encode())
    return b"\r\n".join(parts) + b"\r\n--b--\r\n"


class Requests:
    """What clients ask for. Every new image has a tail of its own, so that no two files are the same."""

    def __init__(self, service: Service, images: list[bytes]) -> None:
        self.service, self.images = service, images
        self.sent = count()
        self.remind()

    def remind(self) -> None:
        """Have the service remember the known image, which many others may have driven out."""
        connection = self.service.connect()
        connection.request("POST", "/api/v1/images", self.images[0], {"Content-Type": "application/octet-stream"})
        self.known_id = json.loads(connection.getresponse().read())["image_id"]

    def another_caption(self, number: int) -> bytes:
        return form(CAPTIONS[number % len(CAPTIONS)], image_id=self.known_id)

    def new_image(self, number: int) -> bytes:
        unique = next(self.sent)
        image = self.images[unique % len(self.images)] + str(unique).encode()
        return form(CAPTIONS[number % len(CAPTIONS)], image=image)

    def mixed(self, number: int) -> bytes:
        return self.another_caption(number) if number % 4 else self.new_image(number)


def photographs(folder: Path | None, most: int = 512) -> list[bytes]:
    """Files of a folder, or noise of the size of a photograph."""
    if folder is not None:
        return [path.read_bytes() for path in islice(sorted(folder.glob("*.jpg")), most)]
    found = []
    for seed in range(most // 8):
        small = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
        out = BytesIO()
        Image.fromarray(small).resize((640, 480), Image.Resampling.BICUBIC).save(out, "JPEG", quality=90)
        found.append(out.getvalue())
    return found


def measure_load(service: Service, requests: Requests, each: int) -> None:
    print("| requests | requests/s | p50 ms | p95 ms | p99 ms | other answers |\n|---|---|---|---|---|---|")
    for name, body in (("another caption", requests.another_caption), ("new image", requests.new_image)):
        for clients in (1, 8, 32):
            requests.remind()
            print(drive(service, clients, each, body).row(f"{name}, {clients} clients"), flush=True)
    requests.remind()
    over = drive(service, 3 * WAITING, 12 * WAITING, requests.another_caption)
    print(over.row(f"{3 * WAITING} clients, {WAITING} places"), flush=True)
    if set(over.statuses) - {200, 429}:
        print(f"unexpected: {over.statuses}")
    jobs, batches = (service.metric(f'capedit_batch_size_{what}{{stage="edit"') for what in ("sum", "count"))
    print(f"\nmean batch of captions: {jobs / batches:.1f}")


def measure_memory(service: Service, requests: Requests, total: int) -> None:
    requests.remind()
    print(f"\nmemory after n requests, MB: 0: {service.memory():.0f}", end="", flush=True)
    for part in range(1, 11):
        soaked = drive(service, 8, total // 10, requests.mixed)
        print(f", {part * (total // 10)}: {service.memory():.0f}", end="", flush=True)
        if set(soaked.statuses) != {200}:
            print(f" ({dict(soaked.statuses)})", end="")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default")
    parser.add_argument("--images", type=Path, help="a folder of JPEG files; without it, noise")
    parser.add_argument("--requests", type=int, default=300, help="of each kind and number of clients")
    parser.add_argument("--soak", type=int, default=0, help="requests over which memory is watched")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--tiny", action="store_true")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    with TemporaryDirectory() as folder, started(arguments, folder) as service:
        print(f"{service.model}; {os.cpu_count()} cores, load {load:.1f} before\n")
        requests = Requests(service, photographs(arguments.images))
        drive(service, 4, 16, requests.new_image)  # warm
        measure_load(service, requests, arguments.requests)
        if arguments.soak:
            measure_memory(service, requests, arguments.soak)


if __name__ == "__main__":
    main()

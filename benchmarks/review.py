"""The review app on a long log: how long a reviewer waits, over HTTP and in a real browser.

    python benchmarks/review.py [--rows 100000] [--no-browser]

The log is made up (no pictures, no model); the server and Chromium run on this machine.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from fastapi.testclient import TestClient  # noqa: E402
from playwright.sync_api import expect, sync_playwright  # noqa: E402
from tests.server.browsing import launch, running  # noqa: E402
from tests.server.runs import EDITS, write_run  # noqa: E402

from capedit.server.app import review_app  # noqa: E402
from capedit.server.review.review import Review  # noqa: E402

ANN = {"id": "ann-browser", "name": "Ann"}
KEYS = 40


def timed(name: str, run: Callable[[], Any]) -> Any:
    started = time.perf_counter()
    found = run()
    print(f"| {name} | {1000 * (time.perf_counter() - started):,.0f} ms |", flush=True)
    return found


def ask(client: TestClient, path: str, **body: Any) -> Any:
    answer = client.post(f"/api/v1/review{path}", json=body)
    answer.raise_for_status()
    return answer.json()


def over_http(review: Review) -> None:
    with TestClient(review_app(review), base_url="http://127.0.0.1") as client:
        rows = timed("the list, least sure first", lambda: ask(client, "/query"))["rows"]
        timed("the list, searched for `dog -> cat` and `snow`", lambda: ask(client, "/query", search="dog -> cat snow"))
        timed("a hundred lines of it", lambda: ask(client, "/rows", rows=rows[5000:5100]))
        timed("a caption", lambda: client.get(f"/api/v1/review/items/{rows[-1]}").raise_for_status())
        state = {"author": ANN, "row": rows[0], "base": 0, "decision": {"units": "?" * 6, "skipped": True}}
        timed("a decision, on the disk", lambda: ask(client, "/decide", **state))
        every = {"author": ANN, "any_edit": True, "verdict": "accept"}
        timed("preview of accepting every edit", lambda: ask(client, "/bulk", **every))
        timed("accepting every edit", lambda: ask(client, "/bulk", **every, preview=False))
        timed("undoing that", lambda: ask(client, "/undo", author=ANN))


def in_a_browser(out: Path) -> None:
    with sync_playwright() as playwright, running(review_app(Review(out), reviewer="Ann")) as address:
        browser = launch(playwright)
        page = browser.new_page()
        page.set_default_timeout(120_000)
        expect.set_options(timeout=120_000)

        def opened() -> None:
            page.goto(address)
            page.wait_for_selector(".chip")

        timed("browser: from the address to the first caption", opened)
        chosen = page.locator(".entry.chosen")

        def jump(key: str, place: int) -> None:
            page.keyboard.press(key)
            expect(chosen).to_have_attribute("aria-posinset", str(place))

        last = int(chosen.get_attribute("aria-setsize") or 0)
        timed("browser: to the last caption", lambda: jump("End", last))
        timed("browser: to the first caption", lambda: jump("Home", 1))
        waits = []
        for number in range(KEYS):
            started = time.perf_counter()
            page.keyboard.press("a")
            page.wait_for_selector(f".entry.chosen[aria-posinset='{number + 2}']")
            waits.append(time.perf_counter() - started)
        print(f"| browser: accept, save, next caption (median of {KEYS}) | {1000 * median(waits):,.0f} ms |")
        heap = page.evaluate("() => performance.memory.usedJSHeapSize") / 2**20
        print(f"| browser: lines in the page, memory | {page.locator('.entry').count()}, {heap:.0f} MB |")
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--no-browser", action="store_true")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        out = write_run(Path(folder), [EDITS[at % len(EDITS)] for at in range(arguments.rows)], pictures=False)
        print(f"{arguments.rows:,} captions\n\n| | |\n|---|---|")
        review = timed("start", lambda: Review(out))
        over_http(review)
        if not arguments.no_browser:
            in_a_browser(out)


if __name__ == "__main__":
    main()

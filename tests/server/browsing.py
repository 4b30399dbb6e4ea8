"""A real browser on a real server: what the tests of the pages share."""

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Playwright, expect
from playwright.sync_api import Error as PlaywrightError

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 120_000
"""Milliseconds until a test gives up on a page: two cores may be busy with other things."""
expect.set_options(timeout=PATIENCE)

SHIFT_WATCH = """
window.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""
REACH = """
window.cutOff = [];
window.heldBack = { address: null, answers: [] };
const reach = window.fetch.bind(window);
window.fetch = async (address, ...rest) => {
  const is = (ending) => String(address).endsWith(ending);
  const check = () => { if (window.cutOff.some(is)) throw new TypeError("cut off"); };
  check();
  const answer = await reach(address, ...rest);
  const { heldBack } = window;
  if (heldBack.address && is(heldBack.address)) await new Promise((go) => heldBack.answers.push(go));
  check();
  return answer;
};
"""


def launch(playwright: Playwright) -> Browser:
    """The system's Chromium, or the one that Playwright has."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    try:
        return playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
    except PlaywrightError as error:
        pytest.skip(f"no Chromium to test the pages in: {str(error).splitlines()[0]}")


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """Serve an app on a free port of this machine; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(20)


class Visitor:
    """One person's browser. Anything that a page must never do is noted in `sins`."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context, self.address = context, address
        self.sins: list[str] = []
        self.page = self.open()

    def open(self) -> Page:
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE)
        page.add_init_script(SHIFT_WATCH + REACH)
        page.on("pageerror", lambda error: self.sins.append(f"error: {error}"))
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("request", lambda request: self._follow(request.url))
        page.goto(self.address)
        return page

    def _note(self, kind: str, text: str) -> None:
        # A refusal is no sin; breaking the page's own security policy is.
        if kind == "error" and "Failed to load resource" not in text:
            self.sins.append(text)

    def _follow(self, url: str) -> None:
        if not url.startswith((self.address.split("#")[0].rstrip("/"), "blob:", "data:")):
            self.sins.append(f"went to {url}")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def until(self, expression: str, argument: Any = None) -> None:
        """Wait until JavaScript says yes. Read by the debugger: the page itself may evaluate nothing."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not self.page.evaluate(expression, argument):
            assert time.monotonic() < deadline, f"never came true: {expression} {argument}"
            self.page.wait_for_timeout(50)

    def cut_off(self, *addresses: str) -> None:
        """Have the page reach these addresses no more, all others again; what is on its way from them is lost, too."""
        self.page.evaluate("(addresses) => void (window.cutOff = addresses)", list(addresses))

    def hold_back(self, address: str) -> None:
        """Have answers from this address wait before the page gets them."""
        self.page.evaluate("(address) => void (window.heldBack.address = address)", address)

    def held_back(self) -> None:
        """Wait until an answer waits."""
        self.until("() => window.heldBack.answers.length")

    def let_go(self) -> None:
        """Let the page have what was held back, and all that comes."""
        self.page.evaluate("""() => {
          const { answers } = window.heldBack;
          window.heldBack = { address: null, answers: [] };
          for (const go of answers) go();
        }""")

    def find(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def sees(self, selector: str, text: str) -> None:
        expect(self.find(selector)).to_have_text(text, use_inner_text=True)

    def counts(self, selector: str, count: int) -> None:
        expect(self.find(selector)).to_have_count(count)


def violations(page: Page, within: str | None = None) -> list[str]:
    """What axe-core finds serious or worse, on the whole page or in a part of it."""
    found = Axe().run(page, context=within, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{one['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def sign_in(stranger: Visitor, token: str) -> None:
    """With a wrong token first, which is told, and can be put right."""
    stranger.page.fill("#token", "wrong")
    stranger.press("Enter")
    stranger.sees("dialog .error", "That is not the token.")
    assert violations(stranger.page) == []
    stranger.page.fill("#token", token)
    stranger.press("Enter")


def download_path(page: Page, selector: str, folder: Path) -> Path:
    """Click a link that downloads, and save what comes."""
    with page.expect_download() as coming:
        page.click(selector)
    path = folder / coming.value.suggested_filename
    coming.value.save_as(path)
    return path

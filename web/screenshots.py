"""Take the screenshots of the docs: both pages with the bundled model and our own example pictures.

python web/screenshots.py          # from the root of the checkout; writes docs/images/*.png
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

from capedit.data import open_dataset  # noqa: E402
from capedit.editing import Editor  # noqa: E402
from capedit.pipeline import Treatment, fix  # noqa: E402
from capedit.server.app import review_app, service_app  # noqa: E402
from capedit.server.examples import DRAWN  # noqa: E402
from capedit.server.review.review import Review  # noqa: E402
from tests.server.browsing import launch, running  # noqa: E402

OUT = ROOT / "docs/images"
DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}
CAPTIONS = {
    "coffee": ["A glass of wine on a wooden table.", "a bowl of soup on a wooden table", "A cup of coffee on a table."],
    "clock": ["a white refrigerator next to a brick wall", "A large mirror on the side of a brick building."],
    "fruit": ["A bowl of carrots and green peppers on a table.", "a glass of wine on a table", "a bowl of oranges"],
    "flowers": ["a glass of beer on a table", "A vase filled with yellow bananas on a table."],
    "donuts": ["two dogs sitting on a wooden table", "a plate with three donuts on it"],
    "sign": ["a red stop sign in front of some trees", "a green traffic light in front of some trees"],
    "bear": ["a brown dog sitting on a bed", "A woman sitting on a white bed.", "a teddy bear sitting on a bed"],
}


def show(browser: Browser, address: str, size: dict[str, int], *, dark: bool = False) -> Page:
    context = browser.new_context(
        viewport={"width": size["width"], "height": size["height"]},
        device_scale_factor=1.5 if size is PHONE else 1,
        color_scheme="dark" if dark else "light",
    )
    page = context.new_page()
    page.goto(address)
    return page


def playground(browser: Browser, address: str) -> None:
    for name, size, dark in (
        ("playground", DESK, False),
        ("playground-dark", DESK, True),
        ("playground-phone", PHONE, False),
    ):
        page = show(browser, address, size, dark=dark)
        page.wait_for_selector(".example")
        if size is DESK:
            page.set_viewport_size({"width": 1280, "height": 1060})
        page.locator(".example", has_text="wine").click()
        page.wait_for_selector("#rounds li")
        page.wait_for_timeout(3500)
        page.locator("#refined button", has_text="coffee").hover()
        page.wait_for_timeout(800)
        page.screenshot(path=OUT / f"{name}.png")
        page.context.close()


def review(browser: Browser, address: str) -> None:
    page = show(browser, address, DESK)
    page.wait_for_selector(".chip")
    page.locator("#search").fill("table")
    page.wait_for_timeout(800)
    page.locator("#search").blur()
    for key in ("a", "1", "2", "2"):
        page.keyboard.press(key)
        page.wait_for_timeout(600)
    page.screenshot(path=OUT / "review.png")
    page.keyboard.press("b")
    page.wait_for_timeout(300)
    page.select_option("#bulk-kind", "any")
    page.fill("#bulk-least", "50")
    page.wait_for_timeout(800)
    page.screenshot(path=OUT / "review-bulk.png")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_timeout(400)
    page.screenshot(path=OUT / "review-keys.png")
    page.context.close()
    for name, dark in (("review-phone", False), ("review-phone-dark", True)):
        page = show(browser, address, PHONE, dark=dark)
        page.wait_for_selector(".chip")
        page.keyboard.press("1")
        page.wait_for_timeout(800)
        page.screenshot(path=OUT / f"{name}.png")
        page.context.close()


def main() -> None:
    with sync_playwright() as playwright, TemporaryDirectory() as folder:
        browser = launch(playwright)
        with running(service_app(Editor.load())) as address:
            playground(browser, address)
        raw = Path(folder) / "captions.jsonl"
        records = [
            {"id": f"{name}-{number}", "image": str(DRAWN / f"{name}.jpg"), "caption": caption}
            for number in range(3)
            for name, captions in CAPTIONS.items()
            if (DRAWN / f"{name}.jpg").exists()
            for caption in captions[number : number + 1]
        ]
        raw.write_text("".join(json.dumps(record) + "\n" for record in records))
        out = Path(folder) / "fixed.jsonl"
        fix(open_dataset(raw), out, treatment=Treatment(review_below=0.5))
        with running(review_app(Review(out), reviewer="Ann")) as address:
            review(browser, address)
        browser.close()


if __name__ == "__main__":
    main()

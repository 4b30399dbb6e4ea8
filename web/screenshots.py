"""Take the screenshots of the docs: both pages with the bundled model and our own example pictures.

python web/screenshots.py          # from the root of the checkout; writes docs/images/*.webp
"""

import json
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.server.browsing import launch, running  # noqa: E402

from capedit.data import open_dataset  # noqa: E402
from capedit.editing import Editor  # noqa: E402
from capedit.pipeline import Treatment, fix  # noqa: E402
from capedit.server.app import review_app, service_app  # noqa: E402
from capedit.server.examples import DRAWN  # noqa: E402
from capedit.server.review.review import Review  # noqa: E402

OUT = ROOT / "docs/images"
DESK = (1280, 860)
PHONE = (390, 844)
CAPTIONS = {
    "coffee": ["A glass of wine on a wooden table.", "a laptop on a wooden table", "A cup of coffee on a table."],
    "clock": ["a white refrigerator next to a brick wall", "A large mirror on the side of a brick building."],
    "fruit": ["A bowl of carrots and green peppers on a table.", "a glass of wine on a table", "a bowl of broccoli"],
    "flowers": ["a glass of beer on a table", "A vase filled with yellow bananas on a table."],
    "donuts": ["two dogs sitting on a wooden table", "three donuts on a white plate"],
}


def show(browser: Browser, address: str, size: tuple[int, int], *, dark: bool = False) -> Page:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        device_scale_factor=1.5 if size == PHONE else 1,
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    return page


def save(page: Page, name: str) -> None:
    """As WebP: with photographs in them, PNGs are several times as large."""
    path = OUT / f"{name}.webp"
    Image.open(BytesIO(page.screenshot())).convert("RGB").save(path, quality=88, method=6)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB")


def playground(browser: Browser, address: str) -> None:
    for name, size, dark in (
        ("playground", (1280, 1070), False),
        ("playground-dark", (1280, 1070), True),
        ("playground-phone", (390, 1180), False),
    ):
        page = show(browser, address, size, dark=dark)
        page.locator(".example", has_text="wine").click()
        expect(page.locator("#rounds .label").last).to_have_text("refined")
        # A word that was added, and that the picture shows.
        page.locator("#refined button.add").last.hover()
        expect(page.locator(".gaze-note")).to_contain_text("“")
        save(page, name)
        page.context.close()


def review(browser: Browser, address: str) -> None:
    page = show(browser, address, DESK)
    page.wait_for_selector(".chip")
    for key in ("a", "r", "a", "1"):
        page.keyboard.press(key)
    expect(page.locator(".tally")).to_contain_text("3 of")
    expect(page.locator(".chip.yes").first).to_be_visible()
    expect(page.locator(".toast")).to_have_count(0)
    save(page, "review")
    page.keyboard.press("b")
    page.select_option("#bulk-kind", "any")
    page.fill("#bulk-least", "45")
    expect(page.locator("dialog button[type=submit]")).to_be_enabled()
    save(page, "review-bulk")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("dialog[open]")).to_be_visible()
    save(page, "review-keys")
    page.context.close()
    for name, dark in (("review-phone", False), ("review-phone-dark", True)):
        page = show(browser, address, PHONE, dark=dark)
        page.wait_for_selector(".chip")
        if dark:
            page.keyboard.press("2")
            expect(page.locator(".chip.yes").first).to_be_visible()
        save(page, name)
        page.context.close()


def write_captions(folder: Path) -> Path:
    """A small dataset of our own pictures, one caption of each after another."""
    records = [
        {"id": f"{name}-{number}", "image": str(DRAWN / f"{name}.jpg"), "caption": caption}
        for number in range(3)
        for name, captions in CAPTIONS.items()
        for caption in captions[number : number + 1]
    ]
    raw = folder / "captions.jsonl"
    raw.write_text("".join(json.dumps(record) + "\n" for record in records))
    return raw


def main() -> None:
    OUT.mkdir(exist_ok=True)
    expect.set_options(timeout=120_000)
    with sync_playwright() as playwright, TemporaryDirectory() as folder:
        out = Path(folder) / "fixed.jsonl"
        fix(open_dataset(write_captions(Path(folder))), out, treatment=Treatment(review_below=0.5))
        browser = launch(playwright)
        with running(service_app(Editor.load())) as address:
            playground(browser, address)
        with running(review_app(Review(out), reviewer="Ann")) as address:
            review(browser, address)
        browser.close()


if __name__ == "__main__":
    main()

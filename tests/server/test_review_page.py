"""The review app in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from capedit.data import open_dataset
from capedit.server.app import review_app
from capedit.server.review.review import Review
from tests.server.browsing import Visitor, download_path, running, violations
from tests.server.runs import EDITS, write_run


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return write_run(tmp_path)


@pytest.fixture
def address(out: Path) -> Iterator[str]:
    with running(review_app(Review(out), reviewer="Ann")) as address:
        yield address


@pytest.fixture
def visitor(browser: Browser, address: str) -> Iterator[Visitor]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    one = Visitor(context, address)
    one.page.wait_for_selector(".chip")
    yield one
    context.close()
    assert one.sins == []


def at(visitor: Visitor, row: int) -> None:
    """Wait until this caption is on the desk."""
    visitor.until("(row) => document.querySelector('.facts')?.innerText.includes(`#${row} `)", row)


def standing(visitor: Visitor, words: str) -> None:
    visitor.sees(".facts .badge", words)


def test_decide_by_keyboard_undo_reload_export(visitor: Visitor, out: Path, tmp_path: Path) -> None:
    at(visitor, 1)  # the least sure comes first
    visitor.press("a")
    at(visitor, 4)
    visitor.press("r")
    at(visitor, 5)
    visitor.press("e")
    visitor.page.fill("#retype", "a man with a tall hat")
    visitor.press("Enter")
    at(visitor, 3)
    visitor.press("f")
    visitor.until("() => document.querySelector('.badge.flagged')")
    visitor.press("s")
    at(visitor, 0)
    visitor.press("r")
    visitor.until("() => document.querySelector('.tally').innerText.startsWith('4 of 5')")

    visitor.press("u")
    at(visitor, 0)
    standing(visitor, "open")
    visitor.press("Control+z")
    at(visitor, 3)
    visitor.press("Shift+U")
    visitor.press("Control+y")
    at(visitor, 0)
    standing(visitor, "rejected")

    visitor.page.reload()
    visitor.page.wait_for_selector(".chip")
    at(visitor, 0)  # the address remembers the place
    standing(visitor, "rejected")
    visitor.press("u")
    standing(visitor, "open")
    visitor.press("Shift+U")
    standing(visitor, "rejected")

    visitor.press("x")
    visitor.page.select_option("#export-format", "jsonl")
    visitor.page.click("dialog button[type=submit]")
    visitor.page.wait_for_selector("dialog a[download]")
    path = download_path(visitor.page, "dialog a[download]", tmp_path)
    assert [instance.reference for instance in open_dataset(path)] == [
        EDITS[0][0],
        "A woman rides a brown horse.",
        EDITS[2][0],
        "A cat runs in the snow.",
        EDITS[4][0],
        "a man with a tall hat",
    ]


def test_operation_by_operation(visitor: Visitor) -> None:
    at(visitor, 1)
    visitor.press("1", "2", "2", "3", "4", "4", "5", "5", "6", "6")
    standing(visitor, "mixed")
    visitor.sees("#result", "A men rides horses.")
    chips = visitor.page.locator(".chip")
    assert "rejected" in (chips.nth(1).get_attribute("aria-label") or "")
    visitor.press("ArrowRight", "ArrowRight", "ArrowLeft")
    focused = visitor.page.evaluate("() => document.activeElement.getAttribute('aria-label')")
    visitor.press("Space")
    place = int(focused.split(":")[0]) - 1
    visitor.until("(place) => document.querySelectorAll('.chip')[place].classList.contains('no')", place)
    visitor.press("Backspace")
    standing(visitor, "open")
    chips.nth(0).click()
    standing(visitor, "partial")
    visitor.press("u", "u")
    visitor.until("() => document.querySelectorAll('.chip.yes').length > 1")


def test_many_at_once_with_preview_and_undo(visitor: Visitor) -> None:
    visitor.press("/")
    visitor.page.keyboard.type("dog -> cat")
    visitor.sees(".found", "3 captions")
    visitor.page.evaluate("() => document.activeElement.blur()")
    visitor.press("b")
    visitor.page.wait_for_selector("dialog[open]")
    visitor.sees(".bulk-words", "Accepts 2 edits in 2 captions.")
    assert "A cat lies on a sofa." in visitor.text(".samples")
    visitor.page.fill("#bulk-least", "50")
    visitor.sees(".bulk-words", "Accepts 3 edits in 3 captions.")
    visitor.page.fill("#bulk-least", "90")
    visitor.sees(".bulk-words", "Accepts 2 edits in 2 captions.")
    visitor.page.click("dialog button[type=submit]")
    visitor.until("() => document.querySelector('.tally').innerText.startsWith('2 of 5')")
    visitor.until("() => document.querySelectorAll('.entry.accepted').length === 2")
    visitor.press("u")
    visitor.until("() => document.querySelector('.tally').innerText.startsWith('0 of 5')")
    visitor.until("() => document.querySelectorAll('.entry.accepted').length === 0")


def test_two_people_at_once(browser: Browser, address: str) -> None:
    people = []
    for name in ("Ann", "Ben"):
        context = browser.new_context()
        context.add_init_script(f"localStorage.setItem('capedit-reviewer', '{name}')")
        people.append(Visitor(context, address))
    ann, ben = people
    for one in people:
        one.page.wait_for_selector(".chip")
    one_row = "#row=1"
    for one in people:  # both at the same caption
        one.page.goto(f"{address}/{one_row}")
        one.page.reload()
        at(one, 1)
    ann.until("() => document.querySelector('.person')")  # she sees that he is there
    ann.press("1")
    standing(ann, "partial")
    ben.until("() => document.querySelector('.chip.yes') !== null")  # he sees what she did
    ben.page.route("**/news", lambda route: route.abort())  # his page hears nothing for a while
    ann.press("2")
    ann.until("() => document.querySelectorAll('.chip.yes').length === 2")
    ben.press("3")
    ben.until("() => document.querySelector('.toast.bad')?.innerText.startsWith('Ann has decided')")
    ben.until("() => document.querySelectorAll('.chip.yes').length === 2")  # hers, not lost
    ben.press("3")
    ben.until("() => document.querySelectorAll('.chip.yes').length === 3")
    ben.page.unroute("**/news")
    ann.until("() => document.querySelectorAll('.chip.yes').length === 3")
    ann.press("u")  # only her own second one can go, and his stands above it
    ann.page.wait_for_timeout(300)
    assert ann.page.locator(".chip.yes").count() == 3
    assert "Ben" in ann.text(".facts")
    for one in people:
        assert [sin for sin in one.sins if "ERR_FAILED" not in sin] == []
        one.context.close()


def test_a_long_list_is_short_on_the_page(browser: Browser, tmp_path: Path) -> None:
    out = write_run(tmp_path, [EDITS[number % 6] for number in range(6_000)], pictures=False)
    with running(review_app(Review(out), reviewer="Ann")) as address:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        visitor = Visitor(context, address)
        visitor.page.wait_for_selector(".chip")
        visitor.sees(".found", "5,000 captions")
        assert visitor.page.locator(".entry").count() < 60
        visitor.press("End")
        visitor.until("() => document.querySelector('.entry.chosen')?.getAttribute('aria-posinset') === '5000'")
        assert visitor.page.locator(".entry").count() < 60
        visitor.press("Home", "j", "j")
        visitor.until("() => document.querySelector('.entry.chosen')?.getAttribute('aria-posinset') === '3'")
        chosen = visitor.page.evaluate(
            "() => document.getElementById(document.querySelector('#list').getAttribute('aria-activedescendant'))"
            "?.className"
        )
        assert "chosen" in chosen
        assert visitor.sins == []
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_everyone_can_use_it(browser: Browser, address: str, scheme: str, width: int) -> None:
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light", viewport={"width": width, "height": 800}
    )
    visitor = Visitor(context, address)
    visitor.page.wait_for_selector(".chip")
    visitor.page.wait_for_timeout(300)
    assert violations(visitor.page) == []
    visitor.press("1", "2", "2", "f")
    visitor.until("() => document.querySelector('.badge.flagged') && document.querySelector('.chip.no')")
    assert violations(visitor.page) == []
    assert visitor.page.evaluate("() => window.shift") < 0.05
    for key, title in (("b", "Decide on many at once"), ("x", "Export"), ("?", "Keyboard")):
        visitor.press(key)
        visitor.sees("dialog[open] h2", title)
        visitor.page.wait_for_timeout(200)
        assert violations(visitor.page) == []
        visitor.press("Escape")
    if width < 500:
        visitor.page.click("text=List")
        visitor.page.wait_for_selector(".entry")
        assert violations(visitor.page) == []
        visitor.page.locator(".entry").nth(1).click()
        visitor.until("() => !document.body.classList.contains('listing')")
    assert visitor.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert visitor.sins == []
    context.close()

"""The review app in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

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
    expect(visitor.find(".facts")).to_contain_text(f"#{row} ")


def standing(visitor: Visitor, words: str) -> None:
    visitor.sees(".facts .badge >> nth=0", words)


def tally(visitor: Visitor, done: str) -> None:
    expect(visitor.find(".tally")).to_contain_text(f"{done} decided")


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
    visitor.counts(".badge.flagged", 1)
    visitor.press("s")
    at(visitor, 0)
    visitor.press("r")
    tally(visitor, "4 of 5")

    visitor.press("u")
    tally(visitor, "3 of 5")
    at(visitor, 0)
    standing(visitor, "open")
    visitor.press("Control+z")
    at(visitor, 3)
    visitor.press("Shift+U", "Control+y")
    tally(visitor, "4 of 5")
    at(visitor, 0)
    standing(visitor, "rejected")

    visitor.page.reload()
    at(visitor, 0)  # the address remembers the place
    standing(visitor, "rejected")
    visitor.press("u")
    standing(visitor, "open")
    visitor.press("Shift+U")
    standing(visitor, "rejected")

    visitor.press("x")
    visitor.page.select_option("#export-format", "jsonl")
    visitor.page.click("dialog button[type=submit]")
    path = download_path(visitor.page, "dialog a[download]", tmp_path)
    assert [instance.reference for instance in open_dataset(path)] == [
        EDITS[0][0],
        "A woman rides a brown horse.",
        EDITS[2][0],
        "A cat runs in the snow.",
        EDITS[4][0],
        "a man with a tall hat",
    ]


def test_nobody_types_too_fast(visitor: Visitor, out: Path) -> None:
    """Keys that come while the page is still busy act on what it shows when their turn comes, and none is lost."""
    at(visitor, 1)
    visitor.press("a", "r", "s", "a", "r")
    tally(visitor, "4 of 5")
    again = Review(out, read_only=True)
    decided = [again.book.current(row)[1].standing.value for row in (1, 4, 5, 3, 0)]
    assert decided == ["accepted", "rejected", "skipped", "accepted", "rejected"]
    visitor.press("u", "u", "u", "1")
    at(visitor, 5)
    standing(visitor, "accepted")
    tally(visitor, "3 of 5")


def test_operation_by_operation(visitor: Visitor) -> None:
    at(visitor, 1)
    visitor.press("1", "2", "2", "3", "4", "4", "5", "5", "6", "6")
    standing(visitor, "mixed")
    visitor.sees("#result", "A men rides horses.")
    chips = visitor.find(".chip")
    expect(chips.nth(1)).to_have_attribute("aria-label", re.compile("rejected"))
    visitor.press("ArrowRight", "ArrowRight", "ArrowLeft")  # from 6 to 1, 2, and back
    expect(chips.nth(0)).to_be_focused()
    visitor.press("Space")
    expect(chips.nth(0)).to_have_class("chip no")
    visitor.press("Backspace")
    standing(visitor, "open")
    chips.nth(0).click()
    standing(visitor, "partial")
    visitor.counts(".chip.yes", 1)
    visitor.press("u", "u")  # the click, then Backspace
    standing(visitor, "mixed")
    expect(chips.nth(0)).to_have_class("chip no")
    expect(chips.nth(2)).to_have_class("chip yes")


def test_the_list_tells_what_was_decided(visitor: Visitor) -> None:
    at(visitor, 1)
    first = visitor.find(".entry").nth(0)
    expect(first).to_contain_text("A woman rides a brown horse.")
    visitor.press("r")
    expect(first).to_contain_text("Two men ride horses.")
    visitor.press("k", "e")
    visitor.page.fill("#retype", "Two women on horses.")
    visitor.press("Enter")
    expect(first).to_contain_text("Two women on horses.")
    visitor.press("u", "u")
    expect(first).to_contain_text("A woman rides a brown horse.")


def test_notes_by_keyboard(visitor: Visitor) -> None:
    at(visitor, 1)
    visitor.press("m")
    visitor.page.keyboard.type("which woman?")
    visitor.press("Enter")
    visitor.until("() => document.querySelector('.tools [title^=Undo]').disabled === false")
    visitor.page.reload()
    at(visitor, 1)
    expect(visitor.find(".note input")).to_have_value("which woman?")


def test_many_at_once_with_preview_and_undo(visitor: Visitor) -> None:
    visitor.press("/")
    visitor.page.keyboard.type("dog -> cat")
    visitor.press("Enter")
    visitor.sees(".found", "3 captions")
    visitor.press("b")
    visitor.sees(".bulk-words", "Accepts 2 edits in 2 captions.")
    expect(visitor.find(".samples")).to_contain_text("A cat lies on a sofa.")
    visitor.page.fill("#bulk-least", "50")
    visitor.sees(".bulk-words", "Accepts 3 edits in 3 captions.")
    visitor.page.fill("#bulk-least", "90")
    visitor.sees(".bulk-words", "Accepts 2 edits in 2 captions.")
    visitor.page.click("dialog button[type=submit]")
    tally(visitor, "2 of 5")
    visitor.counts(".entry.accepted", 2)
    visitor.press("u")
    tally(visitor, "0 of 5")
    visitor.counts(".entry.accepted", 0)
    visitor.press("Shift+U")
    visitor.counts(".entry.accepted", 2)


def test_two_people_at_once(browser: Browser, address: str) -> None:
    people = []
    for name in ("Ann", "Ben"):
        context = browser.new_context()
        context.add_init_script(f"localStorage.setItem('capedit-reviewer', '{name}')")
        people.append(Visitor(context, f"{address}/#row=1"))  # both at the same caption
    ann, ben = people
    for one in people:
        at(one, 1)
    ann.counts(".person", 1)  # she sees that he is there
    ann.press("1")
    standing(ann, "partial")
    ben.counts(".chip.yes", 1)  # he sees what she did
    ben.cut_off("/news")  # his page hears nothing for a while
    ann.press("2")
    ann.counts(".chip.yes", 2)
    expect(ann.find(".tools [title^=Undo]")).to_be_enabled()
    ann.until("async () => (await (await fetch('/api/v1/review/items/1')).json()).state.decision.units === '++????'")
    ben.press("3")
    expect(ben.find(".toast.bad")).to_contain_text("Ann has decided")
    ben.counts(".chip.yes", 2)  # hers, not lost
    ben.press("3")
    ben.counts(".chip.yes", 3)
    ben.cut_off(None)
    ann.counts(".chip.yes", 3)
    expect(ann.find(".facts")).to_contain_text("Ben")
    ann.press("u")  # only her own second one can go, and his stands above it
    expect(ann.find(".toast")).to_contain_text("Undone")
    ann.counts(".chip.yes", 3)
    for one in people:
        assert one.sins == []
        one.context.close()


def test_going_on_leaves_alone_what_another_looks_at(browser: Browser, address: str) -> None:
    ann, ben = (Visitor(browser.new_context(), f"{address}/#row={row}") for row in (1, 4))
    at(ann, 1)
    at(ben, 4)
    ann.until("() => document.querySelector('.person')?.title.includes('#4')")
    ann.press("a")
    at(ann, 5)
    for one in (ann, ben):
        assert one.sins == []
        one.context.close()


def test_a_server_that_is_gone_loses_nothing_unsaid(visitor: Visitor) -> None:
    at(visitor, 1)
    visitor.cut_off("/decide")
    visitor.press("a")
    expect(visitor.find(".toast.bad")).to_contain_text("cannot be reached")
    standing(visitor, "open")  # not shown as decided when it is not
    at(visitor, 1)
    visitor.cut_off(None)
    visitor.press("a")
    at(visitor, 4)
    tally(visitor, "1 of 5")


def test_a_long_list_is_short_on_the_page(browser: Browser, tmp_path: Path) -> None:
    out = write_run(tmp_path, [EDITS[number % 6] for number in range(6_000)], pictures=False)
    with running(review_app(Review(out), reviewer="Ann")) as address:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        visitor = Visitor(context, address)
        visitor.page.wait_for_selector(".chip")
        visitor.sees(".found", "5,000 captions")
        chosen = visitor.find(".entry.chosen")
        expect(chosen).to_have_attribute("aria-posinset", "1")
        assert visitor.find(".entry").count() < 60
        visitor.press("End")
        expect(chosen).to_have_attribute("aria-posinset", "5000")
        assert visitor.find(".entry").count() < 60
        visitor.press("Home", "j", "j")
        expect(chosen).to_have_attribute("aria-posinset", "3")
        expect(visitor.find("#list")).to_have_attribute("aria-activedescendant", chosen.get_attribute("id") or "")
        assert visitor.sins == []
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_everyone_can_use_it(browser: Browser, address: str, scheme: str, width: int) -> None:
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 800},
        reduced_motion="reduce",
    )
    visitor = Visitor(context, address)
    at(visitor, 1)
    expect(visitor.find(".picture img")).to_be_visible()
    assert violations(visitor.page) == []
    visitor.press("1", "2", "2", "f")
    visitor.counts(".badge.flagged", 1)
    visitor.counts(".chip.no", 1)
    assert violations(visitor.page) == []
    assert visitor.page.evaluate("() => window.shift") < 0.05
    visitor.press("e")
    expect(visitor.find("#retype")).to_be_focused()
    assert violations(visitor.page) == []
    visitor.press("Escape")
    for key, title in (("b", "Decide on many at once"), ("x", "Export"), ("?", "Keyboard")):
        visitor.press(key)
        visitor.sees("dialog[open] h2", title)
        if key == "b":
            expect(visitor.find(".bulk-words")).not_to_be_empty()
        assert violations(visitor.page) == []
        visitor.press("Escape")
        visitor.counts("dialog", 0)
    if width < 500:
        visitor.page.click("text=List")
        expect(visitor.find(".entry").nth(1)).to_be_visible()
    visitor.page.click("text=More filters")
    expect(visitor.find(".kind").first).to_be_visible()
    assert violations(visitor.page) == []
    if width < 500:
        visitor.page.click("text=More filters")
        visitor.find(".entry").nth(1).click()
        expect(visitor.find("body")).not_to_have_class(re.compile("listing"))
    assert visitor.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert visitor.sins == []
    context.close()

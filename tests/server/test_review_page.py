"""The review app in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from capedit.data import open_dataset
from capedit.server.app import review_app
from capedit.server.review.review import Review
from capedit.server.run import access_for
from tests.server.browsing import Visitor, download_path, running, sign_in, violations
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


@pytest.fixture
def people(browser: Browser, address: str) -> Iterator[tuple[Visitor, Visitor]]:
    """Ann and Ben, both at the same caption."""
    found = []
    for name in ("Ann", "Ben"):
        context = browser.new_context()
        context.add_init_script(f"localStorage.setItem('capedit-reviewer', '{name}')")
        found.append(Visitor(context, f"{address}/#row=1"))
    ann, ben = found
    for one in found:
        at(one, 1)
    yield ann, ben
    for one in found:
        one.context.close()
        assert one.sins == []


def stored(visitor: Visitor, units: str) -> dict[str, Any]:
    """Wait until the server has this of caption 1; gives all that it has."""
    ask = "(await (await fetch('/api/v1/review/items/1')).json()).state"
    visitor.until(f"async (units) => {ask}.decision.units === units", units)
    found: dict[str, Any] = visitor.page.evaluate(f"async () => {ask}")
    return found


def shows(visitor: Visitor, units: str) -> None:
    """Wait until the chips on the desk are these."""
    names = {"+": "chip yes", "-": "chip no", "?": "chip unsure"}
    expect(visitor.find(".chip")).to_have_class([names[sign] for sign in units])


def test_two_people_at_once(people: tuple[Visitor, Visitor]) -> None:
    ann, ben = people
    ann.counts(".person", 1)  # she sees that he is there
    ann.press("1")
    standing(ann, "partial")
    shows(ben, "+?????")  # he sees what she did
    ben.cut_off("/news")  # his page hears nothing for a while
    ann.press("2")
    stored(ann, "++????")
    ben.press("3")
    expect(ben.find(".toast.bad")).to_contain_text("Ann has decided")
    shows(ben, "++????")  # hers, not lost
    ben.press("3")
    shows(ben, "+++???")
    ben.cut_off()
    shows(ann, "+++???")
    expect(ann.find(".facts")).to_contain_text("Ben")
    ann.press("u")  # only her own second one can go, and his stands above it
    expect(ann.find(".toast")).to_contain_text("Undone")
    shows(ann, "+++???")


def test_what_was_decided_without_seeing_anothers_decision_is_void(people: tuple[Visitor, Visitor]) -> None:
    """He decides on while his page fetches what she has decided: none of it may count."""
    ann, ben = people
    ben.cut_off("/news")
    ann.press("1", "2")
    hers = stored(ann, "++????")
    ben.hold_back("/items/1")
    ben.press("3")
    ben.held_back()  # refused, and the caption is on its way
    ben.press("4", "a")
    shows(ben, "++++++")
    ben.counts(".toast.bad", 0)  # nothing is said before it is shown
    ben.let_go()
    expect(ben.find(".toast.bad")).to_contain_text("Theirs is shown")
    shows(ben, "++????")
    ben.sees("#result", hers["caption"])
    expect(ben.find(".facts")).to_contain_text("decided by Ann")
    at(ben, 1)  # `a` has not gone on
    ben.press("6")
    shows(ben, "++???+")
    last = stored(ann, "++???+")
    assert (last["by"], last["change"]) == ("Ben", hers["change"] + 1)  # so none of the others was ever saved


def test_where_anothers_decision_cannot_be_fetched_nobody_overrules_it(people: tuple[Visitor, Visitor]) -> None:
    ann, ben = people
    ben.cut_off("/news")
    ben.hold_back("/decide")
    ben.press("1", "2")  # the first is saved, the second waits for the answer
    ben.held_back()
    his = stored(ann, "+?????")
    shows(ann, "+?????")
    ann.press("3")
    stored(ann, "+?+???")
    ben.cut_off("/news", "/items/1")
    ben.let_go()
    expect(ben.find(".toast.bad")).to_contain_text("Ann has decided on this caption meanwhile. It cannot be shown now")
    shows(ben, "+?????")  # as the server last told him
    ben.sees("#result", his["caption"])
    ben.cut_off("/news")
    ben.press("2")
    expect(ben.find(".toast.bad")).to_contain_text("Theirs is shown")
    shows(ben, "+?+???")
    ben.press("2")
    shows(ben, "+++???")
    assert stored(ann, "+++???")["by"] == "Ben"


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
    visitor.cut_off()
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
        if key == "x":
            visitor.page.click("dialog button[type=submit]")
            expect(visitor.find("dialog a[download]")).to_be_visible()
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_signing_in_and_saying_who(browser: Browser, out: Path, scheme: str) -> None:
    with running(review_app(Review(out), access=access_for("0.0.0.0", "sesame"))) as address:
        context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
        stranger = Visitor(context, address)
        stranger.sees("dialog[open] h2", "Sign in")
        assert violations(stranger.page) == []
        sign_in(stranger, "sesame")
        stranger.sees("dialog[open] h2", "Who reviews?")
        expect(stranger.find("#reviewer")).to_be_focused()
        assert violations(stranger.page) == []
        stranger.page.keyboard.type("Cleo")
        stranger.press("Enter")
        at(stranger, 1)
        stranger.press("1")
        expect(stranger.find(".facts")).to_contain_text("decided by Cleo")
        assert stranger.sins == []
        context.close()

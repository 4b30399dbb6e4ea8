"""The playground in a real browser."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from capedit.editing import Editor
from capedit.server.app import service_app
from capedit.server.examples import Example
from capedit.server.run import access_for
from tests.server.browsing import Visitor, running, sign_in, violations
from tests.server.conftest import picture

DROP = """([data, name, type]) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, { type }));
  for (const event of ["dragenter", "dragover", "drop"]) {
    document.body.dispatchEvent(new DragEvent(event, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }
}"""
CAPTION = "A dog is on the sofa."


@pytest.fixture(scope="module")
def address(editor: Editor, examples: list[Example]) -> Iterator[str]:
    with running(service_app(editor, examples=examples)) as address:
        yield address


@pytest.fixture
def visitor(browser: Browser, address: str) -> Iterator[Visitor]:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"], reduced_motion="reduce")
    one = Visitor(context, address)
    one.page.wait_for_selector(".example")
    yield one
    context.close()
    assert one.sins == []


def drop(visitor: Visitor, data: bytes, name: str = "photo.png", type: str = "image/png") -> None:
    visitor.page.evaluate(DROP, [b64encode(data).decode(), name, type])


def test_drop_a_picture_type_and_watch(visitor: Visitor, editor: Editor) -> None:
    drop(visitor, picture(1))
    visitor.page.fill("#caption", CAPTION)
    own = editor.edit(picture(1), CAPTION)
    visitor.sees("#clean", own.caption)
    visitor.counts("#refined button.delete", sum(operation.op == "DELETE" for operation in own.operations))
    labels = visitor.find("#rounds .label")
    expect(labels).to_have_count(len(own.trace.rounds) + 2)
    expect(labels.first).to_have_text("original")
    expect(labels.last).to_have_text("refined")
    struck = [operation.token for operation in own.trace.rounds[0] if operation.op == "DELETE"]
    expect(visitor.find("#rounds li:nth-child(2) del")).to_have_text(struck)
    expect(visitor.find("#refined")).to_contain_text("%")
    expect(visitor.find(".facts")).to_contain_text("sure")


def test_sliders_act_at_once(visitor: Visitor, editor: Editor) -> None:
    visitor.press("1")  # an example, by key
    caption = "a dog is on the sofa"
    visitor.sees("#clean", editor.edit(picture(7), caption).caption)
    visitor.page.focus("#knob-rounds")
    visitor.press("Home")
    visitor.sees("#clean", editor.edit(picture(7), caption, rounds=1).caption)
    visitor.page.focus("#knob-min_confidence")
    visitor.press("End")
    visitor.sees("#clean", editor.edit(picture(7), caption, rounds=1, min_confidence=1.0).caption)
    visitor.page.focus("#knob-keep_bias")
    visitor.press("ArrowRight")
    expect(visitor.find("#knob-keep_bias")).to_have_attribute("aria-valuetext", "+0.1")
    visitor.press("0")
    visitor.sees("#clean", editor.edit(picture(7), caption).caption)


def test_words_show_where_the_model_looks(visitor: Visitor, editor: Editor) -> None:
    visitor.press("1")
    own = editor.edit(picture(7), "a dog is on the sofa")
    visitor.sees("#clean", own.caption)
    visitor.press("w")
    lit = set()
    for operation in own.operations:
        note = visitor.find(".gaze-note")
        expect(note).to_have_text(re.compile(f"(looks for|speaks for) “{re.escape(operation.token)}”"))
        bright = "Where the model looks" in note.inner_text()
        visitor.counts(".heat.lit", int(bright))
        lit.add(bright)
        visitor.press("ArrowRight")
    assert lit == {True, False}  # some words can be seen, some cannot
    visitor.press("Tab")
    visitor.counts(".heat.lit", 0)


def test_take_it_away(visitor: Visitor, editor: Editor) -> None:
    visitor.press("1")
    own = editor.edit(picture(7), "a dog is on the sofa")
    visitor.sees("#clean", own.caption)
    read = "() => navigator.clipboard.readText()"
    visitor.press("y")
    visitor.sees(".toast", "Caption copied.")
    assert visitor.page.evaluate(read) == own.caption
    visitor.press("j")
    visitor.sees(".toast", "JSON copied.")
    assert json.loads(visitor.page.evaluate(read))["caption"] == own.caption
    visitor.page.click("text=curl")
    visitor.sees(".toast", "Command copied.")
    assert visitor.page.evaluate(read).startswith("curl -F image=@")
    visitor.press("p")
    visitor.sees(".toast", "Picture copied.")
    kinds = visitor.page.evaluate("async () => (await navigator.clipboard.read()).flatMap((item) => item.types)")
    assert kinds == ["image/png"]
    with visitor.page.expect_download() as coming:
        visitor.page.click("text=SVG")
    assert coming.value.suggested_filename == "edit.svg"


def test_what_is_no_picture_is_said_to_be_none(visitor: Visitor) -> None:
    drop(visitor, b"hello", "notes.txt", "text/plain")
    visitor.sees(".toast.bad", "notes.txt is not a picture.")
    drop(visitor, b"hello", "broken.png")
    visitor.page.fill("#caption", CAPTION)
    expect(visitor.find(".toast.bad")).to_contain_text("not an image")
    expect(visitor.find("#clean")).to_contain_text("not an image")
    drop(visitor, picture(2))
    expect(visitor.find("#rounds .label").first).to_have_text("original")


def test_the_edit_is_always_of_the_picture_on_the_page(visitor: Visitor, editor: Editor) -> None:
    """However fast pictures come one after another."""
    visitor.page.fill("#caption", CAPTION)
    for seed in (2, 3, 4):
        drop(visitor, picture(seed), f"{seed}.png")
    visitor.sees("#clean", editor.edit(picture(4), CAPTION).caption)
    expect(visitor.find(".state")).to_be_empty()
    visitor.sees("#clean", editor.edit(picture(4), CAPTION).caption)


def test_a_picture_that_did_not_arrive_is_sent_again(visitor: Visitor, editor: Editor) -> None:
    visitor.cut_off("/images")
    drop(visitor, picture(5))
    visitor.page.fill("#caption", CAPTION)
    expect(visitor.find(".toast.bad")).to_contain_text("cannot be reached")
    visitor.cut_off()
    visitor.page.focus("#caption")
    visitor.press("Enter")
    visitor.sees("#clean", editor.edit(picture(5), CAPTION).caption)


def test_help_and_focus(visitor: Visitor) -> None:
    visitor.press("?")
    visitor.sees("dialog[open] h2", "Keyboard")
    visitor.press("c")  # keys do nothing behind a dialog
    visitor.press("Escape")
    visitor.counts("dialog", 0)
    visitor.press("c")
    expect(visitor.find("#caption")).to_be_focused()
    visitor.page.keyboard.type("?1")
    expect(visitor.find("#caption")).to_have_value("?1")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_everyone_can_use_it(browser: Browser, address: str, editor: Editor, scheme: str, width: int) -> None:
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 844},
        reduced_motion="reduce",
    )
    visitor = Visitor(context, address)
    visitor.page.wait_for_selector(".example")
    assert violations(visitor.page) == []
    visitor.press("1")
    expect(visitor.find("#rounds .label").last).to_have_text("refined")
    assert violations(visitor.page) == []
    for kind in {operation.op.lower() for operation in editor.edit(picture(7), "a dog is on the sofa").operations}:
        visitor.find(f"#refined button.{kind}").first.hover()
        assert violations(visitor.page, "#refined") == []
    expect(visitor.find(".gaze-note")).to_contain_text("“")
    assert visitor.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    visitor.press("?")
    visitor.sees("dialog[open] h2", "Keyboard")
    assert violations(visitor.page) == []
    assert visitor.page.evaluate("() => window.shift") < 0.05
    assert visitor.sins == []
    context.close()


def test_colours_can_be_chosen(visitor: Visitor) -> None:
    def page_colour() -> str:
        colour: str = visitor.page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
        return colour

    light = page_colour()
    visitor.page.click("[aria-label='Colours: auto']")
    visitor.page.click("[aria-label='Colours: light']")
    assert page_colour() != light
    visitor.page.reload()
    visitor.page.wait_for_selector("[aria-label='Colours: dark']")
    assert page_colour() != light


def test_signing_in(browser: Browser, editor: Editor, examples: list[Example]) -> None:
    app = service_app(editor, examples=examples, access=access_for("0.0.0.0", "sesame"))
    with running(app) as address:
        context = browser.new_context()
        stranger = Visitor(context, address)
        sign_in(stranger, "sesame")
        stranger.page.wait_for_selector(".example")
        stranger.page.reload()
        stranger.page.wait_for_selector(".example")
        context.close()
        context = browser.new_context()
        invited = Visitor(context, f"{address}/#token=sesame")
        invited.page.wait_for_selector(".example")
        assert "sesame" not in invited.page.url
        assert stranger.sins == invited.sins == []
        context.close()

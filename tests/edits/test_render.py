import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capedit.edits import (
    Order,
    Script,
    Trace,
    add,
    delete,
    expand,
    gold_script,
    keep,
    render_html,
    render_plain,
    render_svg,
    render_terminal,
)

EDIT = Script([keep("a"), delete("dog", 0.93), add("cat", 0.81), keep("sleeps")])
NASTY = {
    "emoji": "👩‍👩‍👧 🐈‍⬛ on 🛋️",
    "right-to-left": "كلب على الأريكة",
    "hebrew": "כלב על הספה",
    "cjk": "一 只 猫 在 沙发 上",
    "markup": "<script>alert('x')</script> & \"quoted\" ]]>",
    "terminal": "\x1b[31mred\x1b[0m \x07 bell",
    "punctuation": ". , ! ? -- ' \" ( )",
    "surrogate": "\ud800 lone",
    "empty": "",
    "long": "word " * 10_000,
}


def traces(text: str) -> list[Trace]:
    tokens = text.split(" ") if text else []
    return [expand(gold_script(tokens, ["a", "cat"]), order) for order in Order]


def test_plain_text_is_a_word_diff() -> None:
    assert render_plain(EDIT) == "a [-dog- 93%] {+cat+ 81%} sleeps"
    assert render_plain(gold_script(["a", "dog"], ["a", "cat"])) == "a [-dog-] {+cat+}"


def test_plain_trace_shows_every_round() -> None:
    lines = render_plain(expand(gold_script(["a", "big", "dog"], ["a", "cat", "on", "it"]))).splitlines()
    assert [re.split(r"\s{2,}", line, maxsplit=1) for line in lines] == [
        ["original", "a big dog"],
        ["delete", "a [-big-] [-dog-]"],
        ["round 1: add", "a {+cat+}"],
        ["round 2: add", "a cat {+on+}"],
        ["round 3: add", "a cat on {+it+}"],
        ["refined", "a cat on it"],
    ]


def test_terminal_strikes_deletions_and_lights_additions() -> None:
    drawn = render_terminal(EDIT)
    assert "\x1b[9mdog" in drawn
    assert "\x1b[1mcat" in drawn
    assert re.sub(r"\x1b\[\d+m", "", drawn) == "a dog 93% cat 81% sleeps"


def test_html_marks_changes_for_readers_and_machines() -> None:
    html = render_html(EDIT)
    assert '<del title="93%">dog</del>' in html
    assert '<ins title="81%">cat</ins>' in html


def test_svg_is_a_picture_of_the_whole_path() -> None:
    root = ElementTree.fromstring(render_svg(expand(EDIT)))
    space = "{http://www.w3.org/2000/svg}"
    labels = [text.text for text in root.iter(f"{space}text") if text.get("class") == "label"]
    assert labels == ["original", "delete", "round 1: add", "refined"]
    struck = [span.text for span in root.iter(f"{space}tspan") if span.get("class") == "del"]
    assert struck == ["dog"]
    assert root.findtext(f"{space}title") == "a dog sleeps → a cat sleeps"


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_every_renderer_survives_nasty_text(text: str) -> None:
    for trace in traces(text):
        svg = ElementTree.fromstring(render_svg(trace).encode())
        assert float(svg.get("height", "0")) > 0
        assert "<script" not in render_html(trace)
        HTMLParser().feed(render_html(trace))
        render_html(trace).encode()
        assert "\x1b" not in render_plain(trace)
        assert "\x1b[31mred" not in render_terminal(trace)
        assert len(render_plain(trace).splitlines()) == len(trace.rounds) + 2


@given(st.lists(st.text(st.characters(codec=None), max_size=5), max_size=5))
def test_any_text_gives_a_well_formed_picture(tokens: list[str]) -> None:
    trace = expand(gold_script(tokens, ["a"]))
    ElementTree.fromstring(render_svg(trace).encode())
    assert len(render_plain(trace).splitlines()) == len(trace.rounds) + 2

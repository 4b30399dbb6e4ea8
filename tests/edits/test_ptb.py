"""Every expected value was printed by the Java original (CoreNLP 3.4.1, -preserveLines -lowerCase)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capedit.edits import ptb

CASES = {
    "plain words": ("A man rides a horse", "a man rides a horse"),
    "punctuation": ("Yes, it is; a dog: red! Blue?", "yes , it is ; a dog : red ! blue ?"),
    "runs of marks": ("What?! !! ***", "what ?! !! ***"),
    # clitics and contractions
    "possessive": ("the man's boys' dog", "the man 's boys ' dog"),
    "clitics": ("I'm we'll they're he'd you've", "i 'm we 'll they 're he 'd you 've"),
    "negation": ("don't CAN'T shouldn't've", "do n't ca n't should n't 've"),
    "curly apostrophe": ("it’s don’t", "it 's do n't"),
    "one word, two tokens": ("cannot gonna Gotta lemme 'tis 'twas", "can not gon na got ta lem me 't is 't was"),
    "not parted inside a word": ("cannots cannot-do", "cannots cannot-do"),
    "apostrophe inside": ("o'clock O'Brien ma'am c'mon li'l y'all", "o'clock o'brien ma'am c'mon li'l y' all"),
    "lost beginning": ("'em '90s '90 rock 'n' roll", "'em '90s '90 rock 'n' roll"),
    "quoted word is no clitic": ("a 'stop' sign", "a ` stop ' sign"),
    # abbreviations
    "titles": ("Dr. Smith and Mr. Jones of St. Louis", "dr. smith and mr. jones of st. louis"),
    "no abbreviation": ("a dog on a mat.", "a dog on a mat ."),
    "closing abbreviation": ("cups, etc. He left", "cups , etc. . he left"),
    "closing abbreviation goes on": ("cups, etc. and so", "cups , etc. and so"),
    "lower case is a word": ("We miss. Miss. is a state", "we miss . miss. is a state"),
    "before a number": ("the no. 5 bus says no.", "the no. 5 bus says no ."),
    "before a comma": ("a man., a dog", "a man. , a dog"),
    "initials": ("J. K. Rowling", "j. k. rowling"),
    "letter ends a sentence": ("plan b. The dog", "plan b . the dog"),
    "acronyms": ("the U.S. flag at 5 p.m. on t.v.", "the u.s. flag at 5 p.m. on t.v."),
    "acronym ends a sentence": ("in D.C. The dog", "in d.c. . the dog"),
    "hyphenated acronym": ("a u.s.-based man", "a u.s.-based man"),
    # numbers and money
    "numbers": ("1,000 3.5 .5 -5 10:30 1st 1980s", "1,000 3.5 .5 -5 10:30 1st 1980s"),
    "fractions": ("1/2 ½ ⅓", "1/2 1/2 1/3"),
    "mixed fraction is one token": ("1 1/2 cups", "1\xa01/2 cups"),
    "dates": ("12/25/2004 12-25-04", "12/25/2004 12-25-04"),
    "telephone": ("(415) 555-1212", "-lrb-415-rrb-\xa0555-1212"),
    "money": ("$1 US$5 £5 €7 50¢", "$ 1 us$ 5 # 5 $ 7 50 cents"),
    "percent and degrees": ("5% 5°", "5 % 5 °"),
    # dashes, hyphens, slashes, ellipses
    "dashes": ("a--b a - b a — b a – b -----", "a -- b a - b a -- b a -- b -----"),
    "hyphens": ("3-year-old x-ray's wi‑fi", "3-year-old x-ray 's wi‑fi"),
    "slashes": ("and/or w/ w/o 24/7 / ", "and/or w / w/o 24/7 /"),
    "ellipses": ("wait... so…. . . . end", "wait ... so ... ... end"),
    "underscore": ("foo_bar __ a_", "foo_bar __ a _"),
    # quotes and brackets
    "double quotes": ('a "stop" sign', "a `` stop '' sign"),
    "curly quotes": ("“a” ‘b’ «c»", "`` a '' ` b ' `` c ''"),
    "brackets": ("(a) [b] {c}", "-lrb- a -rrb- -lsb- b -rsb- -lcb- c -rcb-"),
    # names, addresses, markup
    "ampersand": ("AT&T R&amp;B q&a rock&roll", "at&t r&b q & a rock & roll"),
    "languages": ("C++ c# a+b", "c++ c# a + b"),
    "addresses": ("http://foo.com/x?y=1, www.foo.com. me@foo.com", "http://foo.com/x?y=1 , www.foo.com . me@foo.com"),
    "file names": ("3.jpg 3.b", "3.jpg 3 . b"),
    "hash and at": ("#tag #1 @user_1 @ a", "#tag # 1 @user_1 @ a"),
    "tags": ('<b>bold</b> <a href="x y"> < a >', '<b> bold </b> <a\xa0href="x\xa0y"> < a >'),
    "entities": ("&lt;b&gt; &quot;hi&quot; &nbsp;&mdash;", "< b > `` hi '' --"),
    "emoticons": (":) :-( ;D ^_^ (^_^) <3", ":-rrb- :--lrb- ;d ^_^ -lrb-^_^-rrb- < 3"),
    # unicode
    "letters of any script": ("naïve Привет 日本語 テスト", "naïve привет 日本語 テスト"),
    "combining marks": ("cafe\u0301 5\u0301", "cafe\u0301 5 \u0301"),
    "emoji are dropped": ("a 😀dog👍🏽s", "a dog s"),
    "symbols stand alone": ("a™b①", "a ™ b ①"),
    "soft hyphen": ("co\xadop", "coop"),
    "words run on": ("standing.The man hi!there", "standing.the man hi!there"),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_tokens_are_those_of_the_original(text: str, expected: str) -> None:
    assert " ".join(token.text for token in ptb.tokenize(text)) == expected


def test_spans_point_at_the_source() -> None:
    text = "Dr. Smith's “big” dog, etc. He can't"
    assert [(token.text, text[token.start : token.end]) for token in ptb.tokenize(text)] == [
        ("dr.", "Dr."),
        ("smith", "Smith"),
        ("'s", "'s"),
        ("``", "“"),
        ("big", "big"),
        ("''", "”"),
        ("dog", "dog"),
        (",", ","),
        ("etc.", "etc."),
        (".", ""),
        ("he", "He"),
        ("ca", "ca"),
        ("n't", "n't"),
    ]


def test_the_next_line_decides_whether_an_abbreviation_ends_its_sentence() -> None:
    assert [token.text for token in ptb.tokenize("cups, etc.\nA dog")] == ["cups", ",", "etc.", ".", "a", "dog"]
    assert [token.text for token in ptb.tokenize("cups, etc.\na dog")] == ["cups", ",", "etc.", "a", "dog"]


def test_no_text_gives_no_tokens() -> None:
    assert ptb.tokenize("") == ptb.tokenize(" \n\t\u3000 ") == []


PIECES = st.sampled_from(
    [
        "etc.",
        "U.S.",
        "c.",
        " ",
        "  ",
        "The",
        "a",
        "'s",
        "n't",
        "1",
        "1/2",
        "-",
        ".",
        '"',
        "(",
        "<b>",
        "é",
        "😀",
        "&amp;",
    ]
)
CAPTIONS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=12).map("".join))


@given(CAPTIONS)
@example("\ud800 lone surrogate")
@example("<" * 50 + "a" * 50)
def test_spans_are_in_order_and_inside_the_text(text: str) -> None:
    position = 0
    for token in ptb.tokenize(text):
        assert token.text
        assert position <= token.start <= token.end <= len(text)
        position = token.end


@given(st.lists(st.from_regex(r"[A-Za-z]{2,}(?:[-'][A-Za-z]{2,})?[,.]?", fullmatch=True), max_size=8))
def test_plain_stretches_read_as_the_whole_grammar_reads_them(stretches: list[str]) -> None:
    text = " ".join(stretches)
    assert ptb.tokenize(text) == ptb.tokenize(text + "\n&")[:-1]

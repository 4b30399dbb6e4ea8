import pytest
from hypothesis import given
from hypothesis import strategies as st

from capedit.edits import EditError, Script, gold_script, keep
from capedit.edits.realise import realise
from capedit.edits.tokens import tokenize


def edited(caption: str, target: str) -> str:
    return realise(caption, gold_script(tokenize(caption), tokenize(target)))


@pytest.mark.parametrize(
    ("caption", "target", "expected"),
    [
        ("A dog lies on a sofa.", "a black cat lies on a sofa", "A black cat lies on a sofa."),
        ("A dog lies on a sofa.", "two dogs lie on a sofa", "Two dogs lie on a sofa."),
        ("A dog  lies, quietly, on a SOFA!", "a dog lies on a SOFA", "A dog  lies on a SOFA!"),
        ("The dog (a poodle) sleeps.", "the dog sleeps", "The dog sleeps."),
        ("Dogs run.", "two dogs run", "Two dogs run."),
        ("Paris in spring, Paris in May", "old Paris in spring Paris in May", "Old Paris in spring, Paris in May"),
        ("I see a dog", "now I see a dog", "now I see a dog"),
        ("A MAN RIDES A HORSE", "a man rides a brown horse", "A MAN RIDES A BROWN HORSE"),
        ("A Dog On The Sofa", "a black dog on the sofa", "A Black Dog On The Sofa"),
        ("the dog's bone", "the cat's bone", "the cat's bone"),
        ("He doesn't run.", "he doesn't walk", "He doesn't walk."),
        ("a dog, a cat and a bird", "a wolf a cat and a bird", "a wolf, a cat and a bird"),
        ("  a dog \n", "a cat", "  a cat \n"),
        ('a man says "hi there".', "a man says", "a man says."),
        ("a dog", "", ""),
        ("", "a cat", "a cat"),
        ("a man , standing", "a man sitting", "a man , sitting"),
        ("Ein Hündchen schläft.", "ein großes hündchen schläft", "Ein großes Hündchen schläft."),
    ],
)
def test_text_that_a_person_would_accept(caption: str, target: str, expected: str) -> None:
    assert edited(caption, target) == expected


@given(st.text(max_size=60))
def test_an_edit_that_changes_nothing_gives_the_caption_back(caption: str) -> None:
    assert realise(caption, Script(keep(token) for token in tokenize(caption))) == caption


words = st.sampled_from(
    ["a", "an", "the", "man", "woman", "dog", "cat", "on", "with", "red", "two", "sofa", "riding", "in", "of"]
)
marks = st.sampled_from([" ", " ", " ", " ", ", ", "; ", " (", ") ", "  "])


@given(st.lists(st.tuples(words, marks), min_size=1, max_size=10), st.lists(words, max_size=10), st.booleans())
def test_the_text_reads_back_as_the_target(parts: list[tuple[str, str]], target: list[str], stop: bool) -> None:
    caption = "".join(word + mark for word, mark in parts[:-1]) + parts[-1][0] + ("!" if stop else "")
    caption = caption[0].upper() + caption[1:]
    without_brackets = [token for token in tokenize(caption) if token not in ("-lrb-", "-rrb-")]
    if without_brackets != tokenize(caption):
        return
    assert tokenize(edited(caption, " ".join(target))) == target


def test_a_script_for_another_caption_is_refused() -> None:
    with pytest.raises(EditError, match="the caption has"):
        realise("a dog", Script([keep("a"), keep("cat")]))

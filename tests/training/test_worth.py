import numpy as np
import pytest

from capedit.models.decoding import Knobs, decode
from capedit.models.draft import FROM_SOURCE, Draft, Word
from capedit.models.vocabulary import END, MASK, START, Vocabulary
from capedit.training import worth
from capedit.training.pairs import Lesson, Pair
from capedit.training.states import IGNORE, Sampler, Sentinels, path_taken
from capedit.training.worth import Opening, Rewards, doubtful
from tests.models.test_decoding import SEEN, Opinions

WORDS = ["a", "dog", "cat", "on", "grass", "sofa", "red"]
VOCABULARY = Vocabulary(WORDS)


def told(caption: str) -> list[int]:
    return VOCABULARY.encode(caption.split())


PAIRS = [
    Pair("0", told(source), told(target))
    for source, target in [
        ("a dog on grass", "a cat on grass"),
        ("a dog on grass", "a red sofa"),
        ("a cat", "a dog"),
    ]
]
LESSON = Lesson(PAIRS, {"0": [told("a cat on grass"), told("a red cat"), told("a dog")]})


def test_the_right_caption_is_rewarded_most() -> None:
    captions = [told(text) for text in ("a cat on grass", "a dog on grass", "red red red")]
    right, near, far = Rewards(LESSON, VOCABULARY).of(captions, [PAIRS[0]] * 3)
    assert right == pytest.approx(10)
    assert right > near > far
    with_overlap = Rewards(LESSON, VOCABULARY, overlap=8.0).of(captions, [PAIRS[0]] * 3)
    assert with_overlap == pytest.approx([right + 8, near + 8 * 0.75, far])  # three of four words in common


def test_words_are_compared_in_their_place() -> None:
    openings = [Opening(told("a dog on grass"), 1, PAIRS[0]), Opening(told("a cat"), 1, PAIRS[2])]
    cat, dog, red = told("cat dog red")
    rewards = Rewards(LESSON, VOCABULARY).of_words(openings, np.array([[cat, red], [dog, red]]))
    assert rewards[:, 0] == pytest.approx([10, 5])  # two words have no three in a row
    assert (rewards[:, 1] < rewards[:, 0]).all()
    assert openings[0].caption == told("a dog on grass")


def test_other_right_captions_of_the_image_are_witnesses() -> None:
    alone, together = Rewards(LESSON, VOCABULARY), Rewards(LESSON, VOCABULARY, witnesses=0.5)
    caption, pair = told("a red cat"), PAIRS[0]
    by_target, by_cat, by_dog = (
        alone.of([caption], [pair._replace(target=told(text))])[0] for text in ("a cat on grass", "a red cat", "a dog")
    )
    assert by_cat > by_target > 0
    assert together.of([caption], [pair])[0] == pytest.approx(0.5 * by_target + 0.25 * by_cat + 0.25 * by_dog)
    unknown = pair._replace(image="another")
    assert together.of([caption], [unknown])[0] == pytest.approx(by_target)  # nobody else to ask


def test_doubtful_decisions_are_tried_and_certain_ones_never() -> None:
    logits = np.array([9.0, 0.2, -1.0, -8.0, 2.5], np.float32)
    tried = [doubtful(logits, 2, np.random.default_rng(seed)).tolist() for seed in range(300)]
    assert {at for each in tried for at in each} == {1, 2, 4}
    assert all(len(each) == 2 and each == sorted(each) for each in tried)
    assert sum(1 in each for each in tried) > sum(4 in each for each in tried)
    assert doubtful(np.array([9.0, -9.0], np.float32), 2, np.random.default_rng(0)).tolist() == []


def test_what_falls_can_be_decided_before() -> None:
    modules = Opinions({"dog": 5.0}, {"a": 50.0}, {"a": ["cat", "red"]}, vocabulary=VOCABULARY)
    falls = np.zeros((2, 6), bool)
    falls[1, 3] = True
    seen = SEEN.rows(np.zeros(2, np.int64))
    stays, fell = decode(modules, seen, [["a", "dog", "on", "grass"]] * 2, Knobs(rounds=1), falls=falls)
    assert [word.text for word in stays.words if word.born == FROM_SOURCE and not word.stands] == []
    assert [word.text for word in fell.words if word.born == FROM_SOURCE and not word.stands] == ["grass"]
    assert stays.tokens[:3] == ["a", "cat", "dog"]  # insertion is left to the model


def made_edit() -> Draft:
    """a (red) (cat) on grass (sofa), from "a dog on grass"; cat came a round after the others."""
    draft = Draft([Word(text, died=1 if text == "dog" else None) for text in "a dog on grass".split()])
    red = Word("red", born=2)
    draft.insert_after(draft.words[0], red)
    draft.insert_after(red, Word("cat", born=3))
    draft.insert_after(draft.words[-1], Word("sofa", born=2))
    return draft


def test_the_path_that_an_edit_took_can_be_taken_again() -> None:
    sampler, path = Sampler(Sentinels(START, END, MASK)), path_taken(made_edit(), VOCABULARY)
    a, red, cat, on, grass, sofa = told("a red cat on grass sofa")
    second = sampler.insertion(path, 2)
    assert second.tokens == [START, a, red, MASK, on, grass, sofa, END]
    assert second.labels == [IGNORE, IGNORE, IGNORE, cat, IGNORE, IGNORE, IGNORE, IGNORE]
    assert sampler.addition(path, 1).labels == [0, 0, 1, 0, 0, 0, IGNORE]
    assert sampler.deletion(path).labels == [IGNORE, 0, 1, 0, 0, IGNORE]


def test_a_path_knows_where_its_words_end_up() -> None:
    path = path_taken(made_edit(), VOCABULARY)
    assert path.target == told("a red cat on grass sofa")
    assert (path.inserted(1), path.inserted(2)) == ([1, 5], [2])
    assert path.missing(0) == [[1, 2], [5]]  # one place, one decision to add: all that came of it
    assert path.missing(1) == [[2]]
    assert path.missing(2) == []


def test_as_many_targets_are_counted_as_a_benchmark_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the targets tell the same as a lesson of half of the pairs."""
    lesson, caption = Lesson([*PAIRS, *PAIRS[::-1]], {}), told("a dog on grass")
    monkeypatch.setattr(worth, "DOCUMENTS", 3)
    counted = Rewards(lesson, VOCABULARY).of([caption], [PAIRS[0]])
    assert counted == Rewards(Lesson(lesson.pairs[::2], {}), VOCABULARY).of([caption], [PAIRS[0]])
    monkeypatch.undo()
    assert counted != Rewards(lesson, VOCABULARY).of([caption], [PAIRS[0]])

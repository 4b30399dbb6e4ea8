import numpy as np
import pytest

from capedit.models.decoding import Knobs, decode
from capedit.models.draft import Draft, Word
from capedit.models.vocabulary import END, MASK, START, Vocabulary
from capedit.training.pairs import Pair
from capedit.training.states import IGNORE, Sampler, Sentinels, path_taken
from capedit.training.worth import Rewards, deletions, extremes, nudges, worth
from tests.models.test_decoding import SEEN, Opinions

WORDS = ["a", "dog", "cat", "on", "grass", "sofa", "red"]
VOCABULARY = Vocabulary(WORDS)


def pair(source: str, target: str) -> Pair:
    return Pair("0", VOCABULARY.encode(source.split()), VOCABULARY.encode(target.split()))


def without(caption: str, *fallen: int) -> Draft:
    draft = Draft([Word(text, died=1 if at in fallen else None) for at, text in enumerate(caption.split())])
    draft.rounds = 1
    return draft


def test_a_word_whose_deletion_goes_with_the_reward_is_worth_deleting() -> None:
    drawn = [without("a dog on grass", 1), without("a dog on grass"), without("a dog on grass", 3)]
    found = worth(drawn, np.array([9.0, 3.0, 0.0], np.float32))
    assert found == pytest.approx([0, (9 - 4) / 2, 0, (0 - 4) / 2])
    assert worth(drawn, np.full(3, 5.0, np.float32)) == pytest.approx([0, 0, 0, 0])


def test_what_was_inserted_is_no_deletion() -> None:
    draft = without("a dog on grass", 1)
    draft.insert_after(draft.words[1], Word("cat", born=2))
    assert deletions(draft).tolist() == [False, True, False, False]


def test_the_right_caption_is_rewarded_most() -> None:
    pairs = [pair("a dog on grass", "a cat on grass"), pair("a dog on grass", "a red sofa"), pair("a cat", "a dog")]
    rewards = Rewards(pairs, VOCABULARY)
    drafts = [Draft.of(text.split()) for text in ("a cat on grass", "a dog on grass", "red red red")]
    right, near, far = rewards.of(drafts, [pairs[0]] * 3)
    assert right == pytest.approx(10)
    assert right > near > far
    with_overlap = Rewards(pairs, VOCABULARY, overlap=8.0).of(drafts, [pairs[0]] * 3)
    assert with_overlap == pytest.approx([right + 8, near + 8 * 0.75, far])  # three of four words in common


@pytest.mark.parametrize("logit", [-1.5, 0.0, 2.0])
def test_a_nudged_decision_is_drawn_as_its_probability_says(logit: float) -> None:
    times = 2000
    modules = Opinions({"dog": logit}, vocabulary=VOCABULARY)
    noise = nudges(times, 5, np.random.default_rng(0))
    seen = SEEN.rows(np.zeros(times, np.int64))
    drafts = decode(modules, seen, [["a", "dog"]] * times, Knobs(rounds=1), nudges=noise)
    share = np.mean([deletions(draft)[1] for draft in drafts])
    assert share == pytest.approx(1 / (1 + np.exp(-logit)), abs=0.04)


def test_a_drawn_word_comes_as_often_as_it_is_likely() -> None:
    times = 2000
    modules = Opinions({}, {"a": 50.0}, {"a": ["cat", "red"]}, vocabulary=VOCABULARY)  # logits 20 and 18
    chance = np.random.default_rng(0)
    seen = SEEN.rows(np.zeros(times, np.int64))
    drafts = decode(modules, seen, [["a", "dog"]] * times, Knobs(rounds=1), chances=[chance] * times)
    words = [draft.tokens[1] for draft in drafts]
    assert words.count("cat") / times == pytest.approx(1 / (1 + np.exp(-2)), abs=0.03)
    decided = decode(modules, seen, [["a", "dog"]] * times, Knobs(rounds=1), chances=[None] * times)
    assert {draft.tokens[1] for draft in decided} == {"cat"}


def test_the_best_and_the_worst_are_told_apart() -> None:
    drawn = [without("a dog", 0), without("a dog", 1), without("a dog")]
    (best, gain), (worst, loss) = extremes(drawn, np.array([3.0, 9.0, 0.0], np.float32))
    assert (best, worst) == (drawn[1], drawn[2])
    assert (gain, loss) == (5.0, -4.0)
    assert extremes(drawn, np.ones(3, np.float32)) == []


def test_the_path_that_an_edit_took_can_be_taken_again() -> None:
    draft = without("a dog on grass", 1)
    red = Word("red", born=2)
    draft.insert_after(draft.words[0], red)
    draft.insert_after(red, Word("cat", born=3))
    sampler, path = Sampler(Sentinels(START, END, MASK)), path_taken(draft, VOCABULARY)
    a, red_id, cat, on, grass = VOCABULARY.encode("a red cat on grass".split())
    second = sampler.insertion(path, 2)
    assert second.tokens == [START, a, red_id, MASK, on, grass, END]
    assert second.labels == [IGNORE, IGNORE, IGNORE, cat, IGNORE, IGNORE, IGNORE]
    assert sampler.addition(path, 1).labels == [0, 0, 1, 0, 0, IGNORE]
    assert sampler.deletion(path).labels == [IGNORE, 0, 1, 0, 0, IGNORE]

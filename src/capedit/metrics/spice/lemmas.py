"""Base forms as the original's morphology gives them: nouns and verbs are reduced, everything else stays."""

from __future__ import annotations

from functools import lru_cache

from capedit.errors import MissingExtraError

try:
    from lemminflect import getLemma
except ImportError as error:
    raise MissingExtraError("SPICE needs lemminflect", "spice") from error

# Where the original differs from the dictionary: nouns it holds to have no singular, and Latin endings it undoes
# in words that are not Latin. Found by comparing with the lemmas of its own trees.
_PLURAL_ONLY_TEXT = """
shorts pants fries papers supplies goods shades olympics contents wares toiletries teens fours leggings shears checkers
trousers jeans clothes scissors outdoors goggles pajamas electronics christmas overalls belongings tights surroundings
furnishings people claus pepperoni chili
"""
_PLURAL_ONLY = frozenset(_PLURAL_ONLY_TEXT.split())
_NOUNS = {
    "wii": "wius",
    "graffiti": "graffitus",
    "semi": "semus",
    "multi": "multus",
    "california": "californium",
    "pinata": "pina",
    "granola": "granolum",
    "leaves": "leaf",
    "bases": "basis",
    "skiis": "skii",
    "los": "lo",
    "coveralls": "coverall",
    "tutus": "tutu",
}
_VERBS = {"lay": "lay", "kayaking": "kayake", "clad": "clothe", "waterskiing": "waterskie", "'s": "be"}


@lru_cache(maxsize=100_000)
def lemma(word: str, tag: str) -> str:
    """`word` in lower case, reduced to its base form by its Penn tag."""
    if tag.startswith("NN"):
        return _noun(word, tag)
    if tag.startswith("VB"):
        return _VERBS.get(word) or str(getLemma(word, "VERB")[0])
    return word


def _noun(word: str, tag: str) -> str:
    if word in _PLURAL_ONLY:
        return word
    if word in _NOUNS:
        return _NOUNS[word]
    # A plural that was tagged as a singular is reduced all the same.
    plural = tag in ("NNS", "NNPS") or word.endswith(("s", "men"))
    return str(getLemma(word, "NOUN")[0]) if plural else word

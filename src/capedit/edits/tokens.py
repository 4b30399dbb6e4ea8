"""From a caption to the words that captions are edited and scored by.

The normalisation of the published caption data: treebank tokens in lower case, without punctuation.
"""

from collections.abc import Iterator
from functools import lru_cache

from capedit.edits import ptb
from capedit.edits.ptb import Token

# The published list. Its bracket names are in upper case while the tokens it is held against are in lower case, so
# "-lrb-" and "-rrb-" survive in all published data and scores, and must survive here.
DROPPED = frozenset(
    ["''", "'", "``", "`", "-LRB-", "-RRB-", "-LCB-", "-RCB-", ".", "?", "!", ",", ":", "-", "--", "...", ";"]
)


def tokenize(caption: str) -> list[str]:
    """The words of a caption; the list always equals `" ".join(words).split()`."""
    words: list[str] = []
    for stretch in caption.split(" "):
        known = _plain_words(stretch)
        if known is None:
            return [word.text for word in spans(caption)]
        words += known
    return words


def spans(caption: str) -> list[Token]:
    """The words of a caption with the characters each was read from, in order and without overlap."""
    # Line ends inside a caption are blanks.
    tokens = ptb.tokenize(caption.replace("\n", " "))
    return [word for token in tokens if token.text not in DROPPED for word in _without_blanks(token, caption)]


@lru_cache(maxsize=1 << 16)
def _plain_words(stretch: str) -> tuple[str, ...] | None:
    """The words of a stretch without blanks, or None if they depend on its neighbours; scoring needs no spans."""
    tokens = ptb.plain_tokens(stretch)
    return None if tokens is None else tuple(token.text for token in tokens if token.text not in DROPPED)


def _without_blanks(token: Token, caption: str) -> Iterator[Token]:
    """Part the few tokens that hold blanks ("1 1/2", telephone numbers): scorers part them too."""
    texts = token.text.split()
    if texts == [token.text]:
        yield token
        return
    start = token.start
    for text, source in zip(texts, caption[token.start : token.end].split(), strict=True):
        start = caption.index(source, start)
        yield Token(text, start, start + len(source))
        start += len(source)

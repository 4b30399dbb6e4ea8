"""The Penn Treebank tokeniser of Stanford CoreNLP 3.4.1, by rule, with the place of every token.

It gives the tokens that `edu.stanford.nlp.process.PTBTokenizer -preserveLines -lowerCase` prints, the tokeniser of
the COCO caption scores. Each token also knows its characters in the text, so that an editor can keep the
spelling, case and punctuation of the words it keeps.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from capedit.edits.ptb_rules import RULES, Rule


class Token(NamedTuple):
    """A token as the treebank writes it, and the characters `text[start:end]` it was read from.

    A full stop that the lexer supplies after an abbreviation ("etc." before a new sentence) has an empty span.
    """

    text: str
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """Part a text into tokens, in order; characters that the treebank cannot write are left out.

    Lines are parted like words, but what follows an abbreviation across a line end still decides whether a sentence
    ended there. The end of the text counts as the end of a line.
    """
    tokens: list[Token] = []
    start = 0
    for stretch in text.split(" "):
        known = plain_tokens(stretch)
        if known is None:
            return _lex(text)
        tokens += [Token(word, start + first, start + last) for word, first, last in known]
        start += len(stretch) + 1
    return tokens


# Most captions are made of such words only, and nothing in the grammar reaches from one of them into the next,
# except from an abbreviation.
_PLAIN = re.compile(r"(?:[A-Za-z]+(?:['-][A-Za-z]+)*[,.]?)?")


@lru_cache(maxsize=1 << 16)
def plain_tokens(stretch: str) -> tuple[Token, ...] | None:
    """The tokens of a stretch without blanks, or None if they depend on its neighbours."""
    if not _PLAIN.fullmatch(stretch):
        return None
    tokens = _lex(stretch)
    abbreviation = stretch.endswith(".") and tokens[-1].text != "."
    return None if abbreviation else tuple(tokens)


def _lex(text: str) -> list[Token]:
    tokens = []
    position, length = 0, len(text)
    text += "\n"
    while position < length:
        rule, end = _longest(text, position)
        if rule is None:
            position += 1
            continue
        if written := rule.render(text[position:end]):
            tokens.append(Token(written, position, end))
        if rule.closes_sentence:
            tokens.append(Token(".", end, end))
        position = end
    return tokens


def _longest(text: str, position: int) -> tuple[Rule | None, int]:
    """The rule with the longest match, context included, and where its token ends."""
    winner: Rule | None = None
    reach = end = position
    for rule in _rules_for(text[position]):
        found = rule.pattern.match(text, position)
        if found is not None and found.end() > reach:
            winner, reach = rule, found.end()
            end = found.end(1) if rule.pattern.groups else reach
    return winner, end


@lru_cache(maxsize=4096)
def _rules_for(character: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in RULES if rule.first.match(character))

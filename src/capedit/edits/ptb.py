"""The Penn Treebank tokeniser of Stanford CoreNLP 3.4.1, by rule, with the place of every token.

It gives the tokens that `edu.stanford.nlp.process.PTBTokenizer -preserveLines -lowerCase` prints, the tokeniser of
the COCO caption scores. Each token also knows its characters in the text, so that an editor can keep the
spelling, case and punctuation of the words it keeps.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from capedit.edits.ptb_rules import RULES, Rule

# Captions are mostly plain words. These need no grammar: nothing longer can start with one, and none of the
# words that the grammar parts ("cannot", "gonna") is among them.
_PLAIN_WORD = re.compile(r"(?!(?i:cannot|gonna|wanna|gotta|gimme|lemme)\b)[A-Za-z]+(?=,?(?:[ \n]|\Z))")


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
    tokens = []
    position = 0
    while position < len(text):
        if plain := _PLAIN_WORD.match(text, position):
            position = plain.end()
            tokens.append(Token(plain[0].lower(), plain.start(), position))
            continue
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

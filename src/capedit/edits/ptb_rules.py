"""The grammar of the PTB lexer: what counts as one token, and how it is written.

Rules behave like those of a generated lexer: at each place the rule with the longest match wins, and of
equal matches the earlier rule. A pattern's first group, where it has one, is the token; what follows the group is
context, which counts towards the length of the match but is read again afterwards.

The rules were written from what is publicly documented and commonly known of the Stanford tokeniser, and settled by
the output of version 3.4.1: on captions, on short strings over small alphabets (all of up to four characters, samples
of longer ones), and on each character of Unicode's first plane.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from capedit.edits.ptb_chars import CAPITAL, DIGIT, LETTER, MARK, NEWLINE, SPACE, SYMBOL

Render = Callable[[str], str]


class Rule(NamedTuple):
    """One kind of token."""

    first: re.Pattern[str]  # the characters it can begin with: a cheap way to leave most rules untried
    pattern: re.Pattern[str]
    render: Render  # source text -> token text
    closes_sentence: bool  # an abbreviation whose dot is also the full stop, so a "." token follows


# --- how tokens are written -----------------------------------------------------------------------------

_BRACKETS = {"(": "-lrb-", ")": "-rrb-", "[": "-lsb-", "]": "-rsb-", "{": "-lcb-", "}": "-rcb-"}
_ROUND = str.maketrans({"(": "-lrb-", ")": "-rrb-"})
_QUOTES = str.maketrans(
    dict.fromkeys("\x91\u2018\u201b\u2039", "`")
    | dict.fromkeys("\x92\u2019\u203a", "'")
    | dict.fromkeys("\x93\u201c\xab", "``")
    | dict.fromkeys('"\x94\u201d\xbb', "''")
)
# The treebank is plain ASCII of 1990: its dollar stands for the euro, its number sign for the pound.
_SYMBOLS = (
    _BRACKETS
    | dict.fromkeys("\x80\xa4\u20a0\u20ac", "$")
    | {"\xa2": "cents", "\xa3": "#", "\x85": "...", "\u2026": "..."}
    | dict.fromkeys("\x96\x97\u2013\u2014\u2015", "--")
    | {"\xbc": "1/4", "\xbd": "1/2", "\xbe": "3/4", "\u2153": "1/3", "\u2154": "2/3"}
)


def _unhyphenated(text: str) -> str:
    """Soft hyphens are layout, not spelling; a token of nothing else is a hyphen."""
    return text.replace("\xad", "").lower() or "-"


def _unspaced(text: str) -> str:
    """Blanks inside a token become no-break spaces, so that a blank always parts two tokens."""
    return re.sub(f"[{SPACE}]", "\xa0", text).lower()


def _phone(text: str) -> str:
    return _unspaced(text).translate(_ROUND)


def _emoticon(text: str) -> str:
    return text.translate(_ROUND).lower()


def _quote(text: str) -> str:
    return text.replace("&apos;", "'").replace("&quot;", "''").translate(_QUOTES).lower()


def _ampersand(text: str) -> str:
    return re.sub("&amp;", "&", text, flags=re.IGNORECASE).lower()


def _dashes(text: str) -> str:
    return "--" if len(text) < 5 else text


def _symbol(text: str) -> str:
    return _SYMBOLS.get(text, text)


def _always(value: str) -> Render:
    return lambda _text: value


# --- building blocks ------------------------------------------------------------------------------------

_GAP = rf"[{SPACE}{NEWLINE}\x85]"  # \x85 is both a line end and, as Windows writes it, an ellipsis
_BLANK = r"[ \xa0]"
_APOSTROPHE = r"(?:['\x92\u2019]|&(?i:apos);)"
_ANY_APOSTROPHE = r"(?:['`\x91\x92\u2018\u2019\u201b]|&(?i:apos);)"

_ACCENTED = r"&[aeiouAEIOU](?:acute|grave|uml);"
_WORD_LETTER = rf"(?:[{LETTER}{MARK}\xad]|{_ACCENTED})"
_WORD_CHARACTER = rf"(?:[{LETTER}{MARK}\xad{DIGIT}]|{_ACCENTED})"
_PLAIN_WORD = rf"{_WORD_LETTER}{_WORD_CHARACTER}*(?:[.!?]{_WORD_LETTER}{_WORD_CHARACTER}*)*"
_ALNUM = rf"[{LETTER}{DIGIT}]"
_PART = rf"(?:[dDlLoO]{_ANY_APOSTROPHE}{_ALNUM})?{_ALNUM}+"
_JOINED = rf"{_PART}(?:[-_\u058a\u2010\u2011]{_PART})*"  # x-ray, snake_case
_DOTTED = r"[A-Za-z0-9][A-Za-z0-9\xad.,]*+"  # the part before a hyphen may hold dots: u.s.-based
_ACRONYM = r"[A-Za-z](?:\.[A-Za-z])+"
_NATION = r"(?i:canada|eu|japan|korean|non|sino)-[uU]\.[sS]"
_CAPITALS = r"[A-Z]+(?:(?:&(?i:amp;)?|\+)[A-Z]+)+"  # AT&T
_CLITIC = r"(?:[sSdDmM]|[lL][lL]|[rR][eE]|[vV][eE])"

_NAME = r"[A-Za-z][A-Za-z0-9.:_\-]*"
_ATTRIBUTE = rf"{_BLANK}+{_NAME}(?:{_BLANK}*={_BLANK}*(?:\"[^\"\n\r]*\"|'[^'\n\r]*'))?"
_TAG = rf"(?:</{_NAME}{_BLANK}*>|<{_NAME}(?:{_ATTRIBUTE})*{_BLANK}*/?{_BLANK}*>|<[!?][-A-Za-z][^>\r\n]*>)"

# Abbreviations after which a capital begins a new sentence ...
_CLOSING = (
    r"(?:(?i:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|mon|tues?|wed|thu(?:rs)?|fri"
    r"|ala|ariz|calif|colo|conn|ct|dak|fla|ga|ind|kans?|ky|md|mich|minn|mo|mont|neb|nev|okla|penn|tenn|va|vt|wisc?|wyo"
    r"|inc|cos?|corp|ltd|bros|plc|bhd|assn|univ|intl|sys|esq|jr|sr|ext|bldg|blvd|rd|rt|sq|est|etc|al|seq|tel|ph\.d)"
    r"|(?i:p?pt)[ey][sS]?"
    # ... of which these are words when in lower case
    r"|A[zZ]|L[aA]|P[aA]|A(?i:rk)|D(?i:el)|I(?i:ll)|O(?i:re)|T(?i:ex)|M(?i:ass|iss)|W(?i:ash))\."
)
# Abbreviations that stand before a name, so that a capital may follow.
_TITLE = (
    r"(?:(?i:mr|mrs|ms|drs?|mme|mlle|messrs|msgr|st|ste|mt|ft|lt|lieut|capt|cpl|col|cmdr|comdr|gen|maj|sgt|sfc|spc|pfc|pvt"
    r"|ens|brig|adm|govs?|sens?|reps?|pres|profs?|hon|rev|supts?|insp|det|attys?|asst|assoc|treas|dept|natl|elec|invt"
    r"|adj|adv|ave|cf|cie|vs|ph|alex|jos|wm)|[mM][ft][gG])\."
)
_BEFORE_NUMBER = r"(?i:ca|figs?|prop|nos?|art|pp|op)\."
# A single letter or an acronym ends its sentence only before one of these words.
_SENTENCE_START = (
    r"(?:A|A(?i:bout|ccording|fter|n|s|t)|B(?i:ut)|E(?i:arlier)|H(?i:e|er|ere|owever)|I(?i:f|n|t)|L(?i:ast)|M(?i:any|ore)"
    r"|N(?i:ow)|O(?i:nce|ne|ther|ur)|S(?i:he|ince|o|ome|uch)|T(?i:hat|he|heir|hen|here|hese|hey|his)|W(?i:e|hat|hen|hile)"
    rf"|Y(?i:et|ou)|M(?i:r|s)\.|{_TAG}){_GAP}"
)

_UNQUOTED = rf" \t{NEWLINE}\"<>|()"
_URL_END = rf"[^{_UNQUOTED}{{}}.!?,\-]"
_PATH = rf"(?:/[^{_UNQUOTED}]+{_URL_END})?"
_MAIL = rf"[^{_UNQUOTED}{{}}\xa0]"
_MAIL_PART = rf"[^{_UNQUOTED}{{}}\xa0.]"
_HOST = rf"[^ \t{NEWLINE}\"`'|!(){{}}$,-_]"
_EXTENSION = (
    r"bat|bmp|c|cgi|class|cpp|dll|docx?|exe|gif|gz|h|html?|jar|java|jpe?g"
    r"|mov|pdf|php|pl|png|ppt|ps|py|sql|tar|txt|wav|x|xml|zip"
)
_EYE = r"[\-^x=~<>']"
_LEVEL_EYE = r"[\^x=~<>']"

# --- the rules, earlier ones first among equals ---------------------------------------------------------

_ASCII = "[A-Za-z]"
_WORDY = rf"[&{LETTER}{MARK}{DIGIT}\xad]"
_MARKED = r"['&\x92\u2019]"
_NUMERIC = rf"[-+.:,\xad\u066b\u066c{DIGIT}]"


def _rule(first: str, pattern: str, render: Render = str.lower, *, closes_sentence: bool = False) -> Rule:
    return Rule(re.compile(first), re.compile(pattern), render, closes_sentence)


RULES: tuple[Rule, ...] = (
    # Words written as one that the treebank parts: can|not, gon|na.
    _rule("[cC]", r"((?i:can))(?i:not)"),
    _rule("[gwGW]", r"((?i:gon|wan))(?i:na)"),
    _rule("[gG]", r"((?i:got))(?i:ta)"),
    _rule("[glGL]", r"((?i:gim|lem))(?i:me)"),
    # Markup.
    _rule("<", _TAG, _unspaced),
    _rule("&", r"&(?:HT|TL|UR|LR|QC|QL|QR|ODQ|CDQ|ht|tl|ur|lr|qc|ql|qr|odq|cdq|#[0-9]+);"),
    _rule("&", r"&(?:MD|md|mdash|ndash);", _always("--")),
    _rule("&", r"&(?i:lt);", _always("<")),
    _rule("&", r"&(?i:gt);", _always(">")),
    _rule("&", r"&(?i:amp);", _always("&")),
    _rule(rf"[&{SPACE}{NEWLINE}]", rf"(?:[{SPACE}{NEWLINE}]|&nbsp;)+", _always("")),
    # Abbreviations.
    _rule(_ASCII, rf"({_CLOSING}){_GAP}(?:[{CAPITAL}{SPACE}{NEWLINE}\x85]|{_TAG})", closes_sentence=True),
    _rule(_ASCII, rf"((?:{_NATION}|{_ACRONYM})\.){_GAP}+{_SENTENCE_START}", closes_sentence=True),
    _rule(_ASCII, rf"({_ASCII})\.{_GAP}+{_SENTENCE_START}"),
    _rule(_ASCII, rf"{_CLOSING}|{_TITLE}"),
    _rule(_ASCII, rf"{_ACRONYM}\.|{_ASCII}\."),
    _rule("[cCeEjJkKnNsS]", rf"({_NATION}){_GAP}"),
    _rule(_ASCII, rf"({_BEFORE_NUMBER}){_GAP}?[{DIGIT}]"),
    # A dot before other punctuation cannot end a sentence.
    _rule(_WORDY, rf"({_PLAIN_WORD}\.)[,;:]", _unhyphenated),
    _rule(_WORDY, rf"({_JOINED}\.)[,;:]", _unhyphenated),
    _rule(_WORDY, rf"({_DOTTED}(?:-[A-Za-z0-9\xad]+)+\.)[,;:]", _unhyphenated),
    _rule("[A-Z]", rf"({_CAPITALS}\.)[,;:]", _ampersand),
    # Words.
    _rule(r"[A-Za-z\xad]", rf"([A-Za-z\xad]*?[A-MO-Za-mo-z]\xad*)[nN]{_ANY_APOSTROPHE}[tT]", _unhyphenated),
    _rule(_WORDY, rf"({_PLAIN_WORD}){_APOSTROPHE}{_CLITIC}", _unhyphenated),
    _rule(_WORDY, _PLAIN_WORD, _unhyphenated),
    _rule("[<&A-Za-z0-9]", rf"(?:<|&lt;)?[A-Za-z0-9]{_MAIL}*@(?:{_MAIL_PART}+\.)*{_MAIL_PART}+(?:>|&gt;)?"),
    _rule(_ASCII, rf"({_CLOSING})[\s\S]{{2}}"),
    _rule(_WORDY, rf"{_DOTTED}(?:-(?:{_ACRONYM}\.|[A-Za-z0-9\xad]+))+", _unhyphenated),
    _rule(_WORDY, _JOINED, _unhyphenated),
    _rule("[A-Za-z0-9]", r"[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}(?:\\?/[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}){1,2}"),  # and/or
    # Words with an apostrophe inside: o'clock, ma'am, d'Arcy, y'|all.
    _rule(_ASCII, rf"[A-HJ-XZn]{_ANY_APOSTROPHE}[{LETTER}]{{2,}}"),
    _rule(_WORDY, rf"[{LETTER}]+[aeiouyAEIOUY]{_ANY_APOSTROPHE}[aeiouA-Z][{LETTER}]*"),
    _rule("[cClLnN]", r"(?i:c'mon|c'est|cap'n|li'l|nat'l)"),
    _rule("[dDjJlLoO]", rf"(?:[dDjJlL]|[oO][lL]){_APOSTROPHE}"),
    _rule("[dD]", rf"((?i:dunkin){_APOSTROPHE})[^A-Za-z]"),
    _rule("[yY]", rf"([yY]{_APOSTROPHE})[{LETTER}]"),
    # Names made of capitals, and of programming languages.
    _rule("[A-Z]", _CAPITALS, _ampersand),
    _rule("[cCfF]", r"[cC]\+\+|[cCfF]#"),
    # Clitics, and words that lost their beginning: 's, n't, 'em, '90s, 't|is.
    _rule(_MARKED, rf"({_APOSTROPHE}{_CLITIC})[^A-Za-z]", _quote),
    _rule("[nN]", rf"[nN]{_ANY_APOSTROPHE}[tT]", _quote),
    _rule(_MARKED, rf"{_APOSTROPHE}(?i:em|till?|cause)|{_APOSTROPHE}[nN]{_APOSTROPHE}?|{_APOSTROPHE}[2-9]0[sS]"),
    _rule(_MARKED, rf"({_APOSTROPHE}[0-9]{{2}}){_GAP}"),
    _rule("'", r"('[tT])(?i:is|was)"),
    _rule("'", rf"(')[A-Za-z][^ \t\xa0{NEWLINE}]", _always("`")),
    _rule(_MARKED, rf"{_APOSTROPHE}{_CLITIC}", _quote),
    # Addresses.
    _rule("h", rf"https?://[^{_UNQUOTED}{{}}]+{_URL_END}"),
    _rule("[wW]", rf"(?i:www)\.(?:[^{_UNQUOTED}.!?{{}},]+\.)+[A-Za-z]{{2,4}}{_PATH}"),
    _rule(_HOST, rf"(?:{_HOST}+\.)+(?i:com|net|org|edu){_PATH}"),
    _rule(_WORDY, rf"((?:{_ALNUM}+\.)+(?i:{_EXTENSION}))(?:{_GAP}|[.,!?])"),
    _rule("@", r"@[A-Za-z_][A-Za-z0-9_]*"),
    _rule("#", rf"#{_WORD_LETTER}+"),
    # Numbers.
    _rule(
        r"[(+0-9]",
        rf"(?:\([0-9]{{2,3}}\){_BLANK}?|\+{{0,2}}(?:[0-9]{{2,4}}[- \xa0])?[0-9]{{2,4}}[- \xa0])"
        r"[0-9]{3,4}[- \xa0]?[0-9]{3,5}",
        _phone,
    ),
    _rule(_NUMERIC, rf"[{DIGIT}]{{1,2}}[-/][{DIGIT}]{{1,2}}[-/][{DIGIT}]{{2,4}}"),
    _rule(_NUMERIC, rf"(?:[{DIGIT}]{{1,4}}[- \xa0])?[{DIGIT}]{{1,4}}(?:\\?/|\u2044)[{DIGIT}]{{1,4}}", _unspaced),
    _rule(_NUMERIC, rf"[-+]?(?:[{DIGIT}]*(?:[.:,\xad\u066b\u066c][{DIGIT}]+)+|[{DIGIT}]+)", _unhyphenated),
    _rule("[A-Z$]", r"[A-Z]*\$"),
    # Emoticons.
    _rule("[<>:;=]", r"([<>]?[:;=]['o*\-]?[()DPdpO\\{@|\[\]])[^A-Za-z0-9]", _emoticon),
    _rule(_EYE, rf"{_EYE}_{_EYE}"),
    _rule("[oO]", r"[oO]['`_][oO]"),
    _rule(r"\(", rf"\({_EYE}[._]?{_EYE}\)|\({_LEVEL_EYE}-{_LEVEL_EYE}\)", _emoticon),
    # Punctuation.
    _rule(r"\.", rf"\.{{3,5}}|(?:\.{_BLANK}){{2,4}}\.", _always("...")),
    _rule("-", r"-{2,}", _dashes),
    _rule(r"[!?*_#@<>\\]", r"[!?]+|\\\*|\*+|_+|#+|@+|<<|>>"),
    _rule('["&]', r"(\"|&quot;)[A-Za-z0-9$]", _always("``")),
    _rule(
        "[\"&'`\x91-\x94\u2018-\u201f\u2039\u203a\xab\xbb]",
        r"\"|&(?i:quot|apos);|'{1,2}|[`\x91-\x94\u2018-\u201f\u2039\u203a\xab\xbb]{1,2}",
        _quote,
    ),
    _rule("[\xb2\xb3\xb9\u2070-\u2089]", r"[\xb2\xb3\xb9\u2070\u2074-\u2079]+|[\u2080-\u2089]+"),
    _rule("", rf"[!-/:-@\[-`{{-~{SYMBOL}\x85]", _symbol),
)

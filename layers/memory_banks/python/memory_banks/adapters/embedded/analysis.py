"""Text to terms as Lucene's English analyser does it, so that the embedded index ranks words as OpenSearch does.

Word boundaries (Unicode annex 29, as Lucene's standard tokenizer reads it), lower case, no possessive, no stop words,
Porter's stems. Han and Hiragana characters are terms of their own; runs of Katakana, Hangul and Thai are words.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache

import regex
import snowballstemmer

STOP_WORDS = frozenset(
    {
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "for",
        "if",
        "in",
        "into",
        "is",
        "it",
        "no",
        "not",
        "of",
        "on",
        "or",
        "such",
        "that",
        "the",
        "their",
        "then",
        "there",
        "these",
        "they",
        "this",
        "to",
        "was",
        "will",
        "with",
    }
)
"""Lucene's English stop words."""

LONGEST = 255
"""Characters; Lucene cuts longer words into pieces of this length."""

_ALONE = r"\p{Han}\p{Hiragana}"
_RUNS = r"\p{Katakana}\p{LineBreak=SA}"
_LETTER = rf"[\p{{L}}\p{{Nl}}--[{_ALONE}{_RUNS}]]"
_MARKS = r"[\p{M}\p{Cf}]*"
_WORD = regex.compile(
    rf"""
      [{_ALONE}] \p{{M}}*
    | [\p{{Katakana}}\u30FC]+
    | \p{{LineBreak=SA}}+
    | (?: {_LETTER} {_MARKS} (?: [.:·'‘’․﹒＇．] (?={_LETTER}) )?      # an apostrophe or a dot between letters joins them
        | \p{{Nd}} {_MARKS} (?: [.,;'‘’․﹒＇．，；] (?=\p{{Nd}}) )?     # a point or a comma between digits too
        | [_‿] )+
    | \p{{Regional_Indicator}}{{2}}
    | [\p{{Extended_Pictographic}}--[©®™]] (?: [\uFE0F\p{{Emoji_Modifier}}] | \u200D\p{{Extended_Pictographic}} )*
    """,
    regex.VERBOSE | regex.VERSION1,
)
_ASCII_WORD = re.compile(r"(?:[a-z]+(?:[.:'](?=[a-z]))?|[0-9]+(?:[.,;'](?=[0-9]))?|_)+")
"""The same of lower-case ASCII, many times faster."""
_POSSESSIVE = ("'s", "’s", "＇s")
_stemmer = snowballstemmer.stemmer("porter")
_one_at_a_time = threading.Lock()  # the stemmer keeps the word it works on in itself


def terms(text: str) -> list[str]:
    """The terms of a text, in order, repeated as often as they occur."""
    found: list[str] = []
    for word in _words(text):
        found += _terms(word)
    return found


def _words(text: str) -> list[str]:
    return _ASCII_WORD.findall(text.lower()) if text.isascii() else [_lower(match.group()) for match in _WORD.finditer(text)]


def _lower(word: str) -> str:
    """Lower case one character at a time, as Lucene does it: no final sigma, and a dotted capital I loses its dot."""
    return word.lower() if word.isascii() else "".join(character.lower()[0] for character in word)


@lru_cache(maxsize=65_536)
def _terms(word: str) -> tuple[str, ...]:
    """The terms of a word: one, or none, or the pieces of an overlong one."""
    if not word.strip("_‿"):
        return ()
    pieces = (_term(word[start : start + LONGEST]) for start in range(0, len(word), LONGEST))
    return tuple(piece for piece in pieces if piece)


def _term(word: str) -> str | None:
    if word.endswith(_POSSESSIVE):
        word = word[:-2]
    if not word or word in STOP_WORDS:
        return None
    with _one_at_a_time:
        return str(_stemmer.stemWord(word))

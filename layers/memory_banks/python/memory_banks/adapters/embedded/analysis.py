"""Text to terms as Lucene's English analyser does it, so that the embedded index ranks words as OpenSearch does.

Word boundaries (Unicode annex 29, as Lucene's standard tokenizer reads it), lower case, no possessive, no stop words,
Porter's stems. Han and Hiragana characters are terms of their own; runs of Katakana, Hangul and Thai are words.
"""

from __future__ import annotations

from functools import lru_cache

import regex
import snowballstemmer

STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with".split()
)
"""Lucene's English stop words."""

LONGEST = 255
"""Characters; Lucene cuts longer words into pieces of this length."""

_WORD = regex.compile(
    r"""
      [\p{Han}\p{Hiragana}] \p{M}*
    | [\p{Katakana}\u30FC]+
    | \p{LineBreak=SA}+
    | (?: [\p{L}\p{Nl}--[\p{Han}\p{Hiragana}\p{Katakana}\p{LineBreak=SA}]] [\p{M}\p{Cf}]* (?: [.:·'’․﹒＇．] (?=[\p{L}--[\p{Han}\p{Hiragana}\p{Katakana}]]) )?
        | \p{Nd} [\p{M}\p{Cf}]* (?: [.,;'’․﹒＇．，；] (?=\p{Nd}) )?
        | [_‿] )+
    | \p{Regional_Indicator}{2}
    | [\p{Extended_Pictographic}--[©®™]] (?: [\uFE0F\p{Emoji_Modifier}] | \u200D\p{Extended_Pictographic} )*
    """,
    regex.VERBOSE | regex.VERSION1,
)
_POSSESSIVE = ("'s", "’s", "＇s")
_stemmer = snowballstemmer.stemmer("porter")


def terms(text: str) -> list[str]:
    """The terms of a text, in order, repeated as often as they occur."""
    found = []
    for match in _WORD.finditer(text):
        word = match.group().lower()
        if not word.strip("_‿"):
            continue
        for start in range(0, len(word), LONGEST):
            term = _term(word[start : start + LONGEST])
            if term:
                found.append(term)
    return found


@lru_cache(maxsize=65_536)
def _term(word: str) -> str | None:
    if word.endswith(_POSSESSIVE):
        word = word[:-2]
    if not word or word in STOP_WORDS:
        return None
    # Lucene stems any word; the Porter rules only know ASCII letters and leave the rest alone.
    return str(_stemmer.stemWord(word)) if word.isascii() else word

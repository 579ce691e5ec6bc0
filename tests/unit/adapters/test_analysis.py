"""The tokenizer of the embedded index: its short way for ASCII gives what the long one gives."""

from __future__ import annotations

import random

from memory_banks.adapters.embedded import analysis


def test_ascii_has_the_same_words_either_way() -> None:
    chance = random.Random(1)
    characters = "abzABZ019_.:,;'  -\t\n\0!@\x7f\""
    for _ in range(20_000):
        text = "".join(chance.choices(characters, k=chance.randrange(1, 16)))
        assert analysis._words(text) == [analysis._lower(match.group()) for match in analysis._WORD.finditer(text)], text


def test_words_of_both_ways() -> None:
    assert analysis.terms("It's U.S.A. 3,000.5 foo_bar") == ["u.s.a", "3,000.5", "foo_bar"]
    assert analysis.terms("Café's 東京 it’s") == ["café", "東", "京"]

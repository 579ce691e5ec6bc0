"""The kill phrase: what a model answers where there is nothing to remember.

`contains`: an answer with the phrase anywhere in it skips the batch. `whole`: only one in which nothing of substance stands beside
it does; from any other the phrase's line is dropped and the facts are kept. Letters match whatever their case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..capture.settings import KillMatch

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class Ruling:
    """What remains of an answer: nothing, when the batch is skipped. `note` says what happened, if anything did."""

    text: str
    skipped: bool = False
    note: str | None = None


def ruling(answer: str, phrase: str, match: KillMatch) -> Ruling:
    """What a bank's kill phrase makes of an answer."""
    found = _pattern(phrase)
    if match == "contains":
        if found.search(answer):
            return Ruling("", True, f"Skipped: the model's answer contains {phrase!r}, so there was nothing to remember.")
        return Ruling(answer)
    # As a word of its own; an underscore may be emphasis.
    alone = re.compile(rf"(?<![^\W_])(?:{found.pattern})(?![^\W_])", re.IGNORECASE)
    if not alone.search(answer):
        return Ruling(answer)
    if not _says_something(alone.sub("", answer)):
        return Ruling("", True, f"Skipped: the model answered {phrase!r} and nothing else.")
    kept = "\n".join(line for line in answer.splitlines() if not alone.search(line)).strip()
    if not _says_something(kept):
        # All on the phrase's own line: what the other sentences say is kept, what explains the phrase is not.
        said = [sentence for line in answer.splitlines() for sentence in _SENTENCE_END.split(line)]
        kept = " ".join(sentence for sentence in said if not alone.search(sentence)).strip()
    if not _says_something(kept):
        return Ruling("", True, f"Skipped: the model answered {phrase!r} and why, but no facts.")
    return Ruling(kept, False, f"The model answered {phrase!r} beside facts: its line was dropped, the facts were kept.")


def _pattern(phrase: str) -> re.Pattern[str]:
    """Finds the phrase: its spaces may be any, its signs may be escaped as in Markdown (`NO\\_INGEST`)."""
    words = ["".join(_character(one) for one in word) for word in phrase.split()]
    return re.compile(r"\s+".join(words), re.IGNORECASE)


def _character(one: str) -> str:
    return re.escape(one) if one.isalnum() else r"\\?" + re.escape(one)


def _says_something(text: str) -> bool:
    return any(character.isalnum() for character in text)

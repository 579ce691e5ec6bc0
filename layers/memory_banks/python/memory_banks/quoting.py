"""Quoted reply chains: what a mail repeats of the thread is dropped before it is stored (`strip_quoted_reply_chains`).

A run counts as quoted when about 40 words or more repeat a recent turn of the thread word for word, whatever marks a mail
client put before its lines. The stored history is the truth; a quoted chain can be forged, so it is never used to fill gaps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

RUN = 40
"""Words that must repeat in one go."""

_WORD = re.compile(r"[^\s>|]\S*")
_ATTRIBUTION = re.compile(
    r"(?:^|\n)[>|\s]*(?:[^\n]{0,200}\b(?:wrote|writes|schrieb|a écrit|escribió|ha scritto|escreveu|schreef)\b[^\n]{0,80}:"
    r"|-{2,}\s*(?:original message|ursprüngliche nachricht|message d'origine)\s*-{2,})[>|\s]*$",
    re.IGNORECASE,
)
_MARKS_ONLY = re.compile(r"^[>|\s]*[>|][>|\s]*$", re.MULTILINE)
_GAPS = re.compile(r"\n{3,}")


class _Word(NamedTuple):
    text: str
    start: int
    end: int


def _words(text: str) -> list[_Word]:
    return [_Word(match[0].casefold(), match.start(), match.end()) for match in _WORD.finditer(text)]


def stripped(content: str, recent: Iterable[str]) -> str:
    """The content without what it repeats of the recent turns; as it is when nothing else would be left."""
    words = _words(content)
    if len(words) < RUN:
        return content
    known = {run for turn in recent for run in _runs([word.text for word in _words(turn)])}
    if not known:
        return content
    repeated = [False] * len(words)
    for start, run in enumerate(_runs([word.text for word in words])):
        if run in known:
            repeated[start : start + RUN] = [True] * RUN
    if not any(repeated):
        return content
    kept = "".join(_kept(content, words, repeated))
    tidy = _GAPS.sub("\n\n", _MARKS_ONLY.sub("", kept)).strip()
    return tidy if tidy else content


def _runs(words: list[str]) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1)]


def _kept(content: str, words: list[_Word], repeated: list[bool]) -> Iterable[str]:
    """The pieces between the repeated runs, without the line that says whose words follow."""
    position = 0
    place = 0
    while place < len(words):
        if not repeated[place]:
            place += 1
            continue
        last = place
        while last + 1 < len(words) and repeated[last + 1]:
            last += 1
        before = content[position : words[place].start]
        yield _ATTRIBUTION.sub("", before)
        position = words[last].end
        place = last + 1
    yield content[position:]

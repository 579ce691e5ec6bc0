"""Chunking: the pieces of an entry that get a vector each. Pure, so the number of chunks is known when an entry is written."""

from __future__ import annotations

import re

_BREAKS = (re.compile(r"\n\s*\n"), re.compile(r"[.!?。！？]['\")\]]*\s|[。！？]|\n"), re.compile(r"\s"))
"""Where a chunk may end, best first: a paragraph, a sentence, a word."""


def spans(content: str, size: int, overlap: int) -> list[tuple[int, int]]:
    """Start and end (characters) of the chunks of a text: at most `size` long, the next starting `overlap` before the end.

    A chunk ends at a paragraph, else a sentence, else a word, if one ends in its last half; else in mid-word.
    """
    found: list[tuple[int, int]] = []
    start = 0
    while True:
        if len(content) - start <= size:
            found.append((start, len(content)))
            return found
        end = _end(content, start, size)
        found.append((start, end))
        start = max(end - min(overlap, size // 2), start + 1)


def _end(content: str, start: int, size: int) -> int:
    for pattern in _BREAKS:
        ends = [match.end() for match in pattern.finditer(content, start + size // 2, start + size)]
        if ends:
            return ends[-1]
    return start + size

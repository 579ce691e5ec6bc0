"""What is embedded and analysed of an entry: the text of a chunk and of a window."""

from __future__ import annotations

from collections.abc import Sequence

from .entries import Entry


def chunk_text(entry: Entry, span: tuple[int, int]) -> str:
    """The text of a chunk: who said it, and what."""
    said = entry.content[span[0] : span[1]]
    return f"{entry.speaker}: {said}" if entry.speaker else said


def window_text(members: Sequence[Entry]) -> str:
    """The text of a window: its turns in order."""
    return "\n".join(chunk_text(member, (0, len(member.content))) for member in members)

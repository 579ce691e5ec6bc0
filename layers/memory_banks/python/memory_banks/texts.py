"""What is embedded and analysed: the text of a chunk, of a window, and of a query.

A text says who spoke and on which day, because questions do: "When did Ann …", "What happened in May 2023?".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from .entries import Entry

WINDOW_SIDE = 1_000
"""Characters of a long turn that its neighbours' windows take along: the end of the one before, the start of the one after."""

WINDOW_MIDDLE = 2_000
"""Characters of a long turn in its own window."""

BM25_K1, BM25_B = 0.6, 0.4
"""How keyword search scores: how soon repetition stops to count, and how much length does. Lower than Lucene's 1.2 and
0.75, which are for long documents: a memory is short, and its second mention of a word says little."""

QUESTION_WORDS = frozenset(
    {"what", "when", "where", "who", "whom", "whose", "which", "why", "how", "than", "about", "from", "so", "any", "some"}
    | {"do", "does", "did", "done", "doing", "has", "have", "had", "having", "would", "could", "should", "can"}
    | {"is", "are", "was", "were", "am", "been", "being", "i", "me", "my", "mine", "you", "your", "yours", "he", "him", "his"}
    | {"she", "her", "hers", "we", "our", "ours", "they", "them", "its"}
)
"""Words of a question that say nothing about its answer: the meaning of the whole is the vector's business, words find words."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")


def chunk_text(entry: Entry, span: tuple[int, int]) -> str:
    """The text of a chunk: who said it, on which day, and what."""
    said = entry.content[span[0] : span[1]]
    if entry.speaker:
        return f"{entry.speaker} ({day(entry.occurred_at)}): {said}"
    return f"{said} ({day(entry.occurred_at)})"


def window_text(members: Sequence[Entry]) -> str:
    """The text of a window: the day, and its turns in order. Of a long turn only what is next to the others."""
    middle = members[1] if len(members) == 3 else members[0]
    lines = [day(middle.occurred_at)]
    for place, member in enumerate(members):
        said = member.content
        if member is middle:
            said = said[:WINDOW_MIDDLE]
        elif place == 0:
            said = said[-WINDOW_SIDE:]
        else:
            said = said[:WINDOW_SIDE]
        lines.append(f"{member.speaker}: {said}" if member.speaker else said)
    return "\n".join(lines)


def keywords(query: str) -> str:
    """A query as keyword search takes it: without question words, unless it has nothing else."""
    kept = _WORD.sub(lambda found: "" if _bare(found.group()) in QUESTION_WORDS else found.group(), query)
    return kept if _WORD.search(kept) else query


def day(milliseconds: int) -> str:
    """A day as people write it, in UTC: `8 May 2023`."""
    date = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{date.day} {_MONTHS[date.month - 1]} {date.year}"


# Not by locale: a text must be the same on every machine.
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def _bare(word: str) -> str:
    """Without case, and without what is hung on: `What's` is `what`."""
    return re.split("['’]", word.lower(), maxsplit=1)[0]

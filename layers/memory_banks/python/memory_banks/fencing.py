"""Material for a model, fenced: what a user wrote stands between tags that it cannot contain, so it can't pose as instruction.

<entry-9f2c41d07b3a5e68 date="2026-11-30T12:00:00.000Z" speaker="alice">
I moved to Lisbon.
</entry-9f2c41d07b3a5e68>
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["entry", "summary", "memory"]

_OPENING = re.compile(r"^<(?:entry|summary)-([0-9a-f]{16})(?: |>)", re.MULTILINE)
_ATTRIBUTES = r'((?: [a-z]+="(?:[^"\\]|\\.)*")*)'
_ATTRIBUTE = re.compile(r' ([a-z]+)=("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of material: an entry (or a part of a long one), an earlier summary, or a memory that may be changed."""

    text: str
    kind: Kind = "entry"
    speaker: str | None = None
    date: str | None = None
    """ISO 8601."""
    id: str | None = None
    """How the model names it in its answer."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The tag that one prompt's material stands between: 16 hexadecimal digits."""

    tag: str

    @classmethod
    def around(cls, texts: Iterable[str]) -> Fence:
        """A fence whose tag occurs in none of the texts. The same texts give the same tag."""
        everything = list(texts)
        seed = hashlib.sha256()
        for text in everything:
            seed.update(hashlib.sha256(text.encode()).digest())
        while True:
            tag = seed.hexdigest()[:16]
            if not any(tag in text for text in everything):
                return cls(tag)
            seed.update(b"again")

    def enclose(self, piece: Piece) -> str:
        """The piece between its tags. Its attributes are JSON strings, so a speaker's name can't end the tag either."""
        attributes = {"id": piece.id, "date": piece.date, "speaker": piece.speaker}
        given = {name: json.dumps(value, ensure_ascii=False) for name, value in attributes.items() if value is not None}
        shown = "".join(f" {name}={value}" for name, value in given.items())
        return f"<{piece.kind}-{self.tag}{shown}>\n{piece.text}\n</{piece.kind}-{self.tag}>"

    def strip(self, text: str) -> str:
        """The text without this fence's tags."""
        return re.sub(rf"</?(?:entry|summary|memory)-{self.tag}{_ATTRIBUTES}>\n?", "", text)


def fenced(text: str) -> list[Piece]:
    """The pieces that a text encloses, in order. The first opening tag at the start of a line tells the fence."""
    opening = _OPENING.search(text)
    if not opening:
        return []
    blocks = re.finditer(rf"<(entry|summary)-{opening[1]}{_ATTRIBUTES}>\n(.*?)\n</\1-{opening[1]}>", text, re.DOTALL)
    return [_piece(block) for block in blocks]


def _piece(block: re.Match[str]) -> Piece:
    attributes = {name: json.loads(value) for name, value in _ATTRIBUTE.findall(block[2])}
    kind: Kind = "summary" if block[1] == "summary" else "entry"
    return Piece(block[3], kind, attributes.get("speaker"), attributes.get("date"))

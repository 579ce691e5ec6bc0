"""JSON lines: one object a line, with the fields of an entry.

`{"content": "…", "speaker": "Maya", "key": "trip", "occurred_at": "2026-05-08T13:56:00Z", "tags": [], "metadata": {}, "id": "…"}`;
`text` may stand for `content`, `role` for `speaker`, `timestamp` for `occurred_at`. Other fields are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from clients.cli.histories.turn import Piece, Turn, Unreadable, first, text_of, time_of


def read(lines: Iterable[str]) -> Iterator[Piece]:
    """The turns of the lines, in order; blank lines are nothing."""
    for number, line in enumerate(lines, 1):
        where = f"line {number}"
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Unreadable(where, f"no JSON: {error}")
            continue
        if not isinstance(record, dict):
            yield Unreadable(where, "no JSON object")
            continue
        yield Turn(
            where,
            content=text_of(first(record, "content", "text")),
            speaker=first(record, "speaker", "role"),
            key=record.get("key"),
            occurred_at=time_of(first(record, "occurred_at", "timestamp")),
            tags=record.get("tags") or (),
            metadata=record.get("metadata") or {},
            id=record.get("id"),
        )

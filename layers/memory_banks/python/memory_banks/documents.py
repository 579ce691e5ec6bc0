"""Documents: what the index holds of entries. A chunk for each piece of an entry; in a conversation, a window for each entry
that has a next one: the entry with its neighbours.

Made from the table alone, so that ingestion, a rebuild and a reconciliation give the same documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from . import chunking, entries, partitions, texts
from .bank import Bank
from .entries import Entry
from .partitions import Head
from .ports import IndexDocument, Item, Member, Ports


def chunk_id(internal_id: str, number: int) -> str:
    """The index's id of the n-th chunk of an entry."""
    return f"{internal_id}#{number}"


def window_id(internal_id: str) -> str:
    """The index's id of the window around an entry."""
    return internal_id + "#w"


def window_version(head: Head) -> int:
    """The version of windows made after this head was read.

    Every change of a member or a neighbour but an append counts in `edits`; an append makes the window.
    """
    return head.edits + 1


def chunks(bank: Bank, entry: Entry, previous: str | None) -> list[IndexDocument]:
    """The chunks of an entry, still without vectors; `previous` is the internal id of the entry before it."""
    spans = chunking.spans(entry.content, bank.chunk_size, bank.chunk_overlap)
    return [
        _document(
            bank,
            entry,
            id=chunk_id(entry.internal_id, number),
            form="chunk",
            version=entry.version,
            members=(Member(entry.internal_id, entry.version),),
            previous=previous,
            start=start,
            end=end,
            text=texts.chunk_text(entry, (start, end)),
            tokens=None if number else entry.tokens,
        )
        for number, (start, end) in enumerate(spans)
    ]


class Neighbourhood:
    """The living entries of a conversation around some positions, in order, two beyond each end."""

    def __init__(self, bank: Bank, head: Head, order: Sequence[Entry]) -> None:
        self._bank = bank
        self._head = head
        self._order = order
        self._place = {entry.sort: place for place, entry in enumerate(order)}

    @classmethod
    def read(cls, ports: Ports, bank: Bank, head: Head, around: Sequence[str]) -> Neighbourhood:
        """Strong reads, after that of the head: what is seen is at least as new as its `edits`."""
        pk = partitions.partition_pk(bank, head.partition)
        first, last = min(around), max(around)
        before = ports.table.query(pk, after="E#" + head.watermark, before="E#" + first, reverse=True, limit=2).items
        items: list[Item] = before[::-1]
        position: str | None = None
        while True:
            if position is None:
                page = ports.table.query(pk, first="E#" + first, last="E~", limit=len(around) + 2)
            else:
                page = ports.table.query(pk, after=position, last="E~", limit=100)
            items += page.items
            position = page.after
            if position is None or sum(item["sk"] > "E#" + last for item in items) >= 2:
                break
        cutoff = bank.cutoff(ports.clock.now())
        found = [entries.from_item(item) for item in items]
        return cls(bank, head, [e for e in found if e.kind == "entry" and partitions.alive(head, e, cutoff)])

    @property
    def order(self) -> Sequence[Entry]:
        """The entries, oldest first."""
        return self._order

    def previous(self, entry: Entry) -> str | None:
        """Internal id of the entry before."""
        place = self._place.get(entry.sort, 0)
        return self._order[place - 1].internal_id if place else None

    def windows(self, around: Iterable[str]) -> list[IndexDocument]:
        """The windows that hold an entry at, or next to, one of these positions.

        The newest entry has none yet. One that it had before, when a later entry was there, went with that entry.
        """
        middles: set[int] = set()
        for sort in around:
            place = sum(entry.sort < sort for entry in self._order) if sort not in self._place else self._place[sort]
            middles |= {place - 1, place, place + 1}
        return [self._window(place) for place in sorted(middles) if 0 <= place < len(self._order) - 1]

    def _window(self, place: int) -> IndexDocument:
        middle = self._order[place]
        members = list(self._order[max(place - 1, 0) : place + 2])
        return _document(
            self._bank,
            middle,
            id=window_id(middle.internal_id),
            form="window",
            version=window_version(self._head),
            members=tuple(Member(one.internal_id, one.version) for one in members),
            previous=members[0].internal_id if members[0] is not middle else None,
            start=0,
            end=0,
            text=texts.window_text(members),
        )


def with_vector(document: IndexDocument, vector: Sequence[float]) -> IndexDocument:
    """The document as it is written."""
    return replace(document, vector=vector)


def _document(bank: Bank, entry: Entry, **rest: Any) -> IndexDocument:
    return IndexDocument(
        bank=bank.id,
        generation=bank.generation,
        partition=entry.partition,
        entry=entry.internal_id,
        kind=entry.kind,
        speaker=entry.speaker,
        tags=entry.tags,
        metadata=entry.metadata,
        occurred_at=entry.occurred_at,
        created_at=entry.created_at,
        vector=(),
        **rest,
    )

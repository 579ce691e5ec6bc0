"""Reconciling: what an index holds of a partition against what the table says, mended both ways.

Documents of what is not alive are removed; entries with a missing or stale document are indexed again. Writers go on
meanwhile, so the order matters: the index is scanned before the table is read (whatever has a document was in the table
before, so what the table does not have then is dead), and what is missing is written after the last removal (a document that
a writer made in between is made again if it was removed). Dying at any point leaves less to mend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from . import backfill, documents, ids, partitions
from .bank import Bank, Target
from .partitions import Head
from .ports import Indexed, Member, Ports

REMOVED_AT_ONCE = 500
INDEXED_AT_ONCE = 50

APART = 100
"""Entries further apart than so many are not indexed together: all between them would be read."""


class Mended(NamedTuple):
    """What a reconciliation compared and mended. `ahead`: documents of versions that the table never had, or has lost."""

    entries: int = 0
    indexed: int = 0
    removed: int = 0
    ahead: int = 0
    done: bool = True
    """False when the deadline came first."""

    def plus(self, other: Mended) -> Mended:
        """Both together."""
        return Mended(
            self.entries + other.entries,
            self.indexed + other.indexed,
            self.removed + other.removed,
            self.ahead + other.ahead,
            self.done and other.done,
        )


class _Living(NamedTuple):
    """A living entry, without its text."""

    id: str
    """The internal id."""
    sort: str
    kind: str
    version: int
    chunks: int
    waits: bool
    """Whether ingestion has tried it in vain and will again: its documents may be missing."""


@dataclass(frozen=True, slots=True)
class _Expected:
    """The documents that a partition should have."""

    order: list[_Living]
    chunks: Mapping[str, int]
    """The version of each chunk, by its id."""
    windows: Mapping[str, tuple[Member, ...]]
    """The members of each window, by its id."""
    newest: int
    """No window has a higher version."""

    def wants(self, document: Indexed) -> bool:
        """Whether there should be a document of that id."""
        return document.id in self.chunks or document.id in self.windows

    def ahead(self, document: Indexed) -> bool:
        """Whether a document is newer than the table, as after a restore: no later state could replace it."""
        return self.wants(document) and document.version > self.chunks.get(document.id, self.newest)

    def missing(self, there: Mapping[str, Indexed]) -> list[int]:
        """The places in the order of entries that have no document, or a stale one, where they should have one."""
        stale = {id for id, version in self.chunks.items() if id not in there or there[id].version != version}
        stale |= {id for id, members in self.windows.items() if id not in there or tuple(there[id].members) != members}
        entries = {id.rpartition("#")[0] for id in stale}
        return [place for place, living in enumerate(self.order) if living.id in entries and not living.waits]


def partition(ports: Ports, bank: Bank, target: Target, name: str, *, deadline: int) -> Mended:
    """Compare and mend one partition, until about the deadline (ms).

    Raises `IndexUnavailable`, `ModelUnavailable`, `TableUnavailable`, `Contended`.
    """
    there = {document.id: document for document in ports.index.scan(target.index, bank.id, bank.generation, name)}
    expected = _expect(ports, bank, name)
    if expected is None:
        return Mended()
    ahead = sum(expected.ahead(document) for document in there.values())
    wrong = [id for id, document in there.items() if not expected.wants(document) or expected.ahead(document)]
    for start in range(0, len(wrong), REMOVED_AT_ONCE):
        ports.index.delete(target.index, bank.id, wrong[start : start + REMOVED_AT_ONCE])
    if wrong:
        there = {id: document for id, document in there.items() if id not in set(wrong)}
        expected = _expect(ports, bank, name)
        if expected is None:
            return Mended(removed=len(wrong))
    missing = expected.missing(there)
    indexed = 0
    for batch in _batches(missing):
        indexed += _index(ports, bank, target, name, [expected.order[place].sort for place in batch])
        if ports.clock.now() > deadline and batch[-1] != missing[-1]:
            return Mended(0, indexed, len(wrong), ahead, done=False)
    return Mended(len(expected.order), indexed, len(wrong), ahead)


def strays(ports: Ports, bank: Bank, target: Target, *, deadline: int) -> tuple[int, bool]:
    """Remove the documents of keys that the table does not know (as after a restore of an older table).

    Gives how many such keys there were, and whether all documents were looked at before the deadline (ms).
    """
    seen: set[str] = set()
    whole = True
    for number, document in enumerate(ports.index.scan(target.index, bank.id, bank.generation), start=1):
        seen.add(document.entry[ids.ULID_LENGTH : 2 * ids.ULID_LENGTH])
        if number % 1000 == 0 and ports.clock.now() > deadline:
            whole = False
            break
    names = sorted(seen)
    heads = ports.table.read([partitions.head_key(bank, name) for name in names]) if names else []
    unknown = [name for name, head in zip(names, heads, strict=True) if head is None]
    for name in unknown:
        ports.index.delete_partition(target.index, bank.id, bank.generation, name)
    return len(unknown), whole


def _expect(ports: Ports, bank: Bank, name: str) -> _Expected | None:
    """What the table says now: the head first, so that windows are not taken for newer than they can be."""
    found = backfill.current(ports, bank, name)
    if found is None:
        return None
    bank, head = found
    order = list(_living(ports, bank, head))
    chunks = {documents.chunk_id(one.id, number): one.version for one in order for number in range(one.chunks)}
    windows: dict[str, tuple[Member, ...]] = {}
    if bank.conversation:
        spoken = [one for one in order if one.kind == "entry"]
        for place in range(len(spoken) - 1):
            members = spoken[max(place - 1, 0) : place + 2]
            windows[documents.window_id(spoken[place].id)] = tuple(Member(one.id, one.version) for one in members)
    return _Expected(order, chunks, windows, documents.window_version(_newest(ports, bank, head)))


def _newest(ports: Ports, bank: Bank, head: Head) -> Head:
    """The head after the entries were read: an edit in between may have made windows of a higher version."""
    item = ports.table.read([partitions.head_key(bank, head.partition)])[0]
    return partitions.head_from(item) if item is not None else head


def _living(ports: Ports, bank: Bank, head: Head) -> Iterator[_Living]:
    cutoff = bank.cutoff(ports.clock.now())
    pk = partitions.partition_pk(bank, head.partition)
    wanted = ["kind", "version", "chunks", "attempts", "index_failed"]
    position: str | None = "E#" + head.watermark
    while position is not None:
        page = ports.table.query(pk, after=position, last="E~", attributes=wanted)
        for item in page.items:
            sort = item["sk"][2:]
            if cutoff is None or ids.milliseconds_of(sort) > cutoff:
                waits = "attempts" in item and not item.get("index_failed")
                yield _Living(ids.internal(head.partition, sort), sort, item["kind"], item["version"], item["chunks"], waits)
        position = page.after


def _batches(places: Sequence[int]) -> Iterator[list[int]]:
    batch: list[int] = []
    for place in places:
        if batch and (len(batch) == INDEXED_AT_ONCE or place - batch[-1] > APART):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _index(ports: Ports, bank: Bank, target: Target, name: str, sorts: Sequence[str]) -> int:
    found = backfill.current(ports, bank, name)
    if found is None:
        return 0
    bank, head = found
    items = ports.table.read([partitions.entry_key(bank, name, sort) for sort in sorts])
    living = backfill.alive(ports, bank, head, [item for item in items if item is not None])
    if living:
        backfill.write(ports, bank, head, target, living)
    return len(living)

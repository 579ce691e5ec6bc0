"""Leavings: vectors and blobs that a write made for a version that never came to be, or of one that is no more.

Vectors and blobs are written before the transaction that makes their document: it can be found the moment it exists. A
record in the table tells of them from before the first is written until the last useless one is removed, and is due in the
sweep's index: whatever dies, nothing is left behind. The transaction needs the record, unclaimed; the sweep claims it
first. So either the write commits and the sweep finds its row, or it never will.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..marking import due
from ..ports import Condition, ConditionFailed, Delete, Is, Item, Key, Ports, Put, Update
from . import rows
from .indexing import Vectors, bank_of

DUE = 600_000
"""After how many ms the sweep looks at a record: far longer than a request lives."""


class Held(NamedTuple):
    """What a version has outside the table."""

    vectors: Vectors | None
    blob: str | None

    def __bool__(self) -> bool:
        return bool(self.vectors or self.blob)

    def to_attribute(self) -> list[Any]:
        """As it is kept in an item."""
        return [self.vectors.to_attribute() if self.vectors else None, self.blob]


def held_by(item: Item) -> Held:
    """What the version in a document's item has outside the table."""
    return Held(Vectors(*item["vectors"]) if "vectors" in item else None, item.get("blob"))


def record_key(account: str, version: str) -> Key:
    """Where a record is."""
    return Key(f"Y#{account}", version)


def open_record(account: str, version: str, fresh: Held, now: int) -> Put:
    """The record of a version that is about to be written."""
    key = record_key(account, version)
    kept = {"pk": key.pk, "sk": key.sk, "account": account, "fresh": fresh.to_attribute(), "gone": []}
    return Put(kept | due(key.pk + version, now + DUE))


def close_record(account: str, version: str, fresh: Held, gone: Held, now: int) -> list[Put | Update | Delete]:
    """What the write's transaction does to the record: from now on it tells only of what is no more, if anything."""
    key = record_key(account, version)
    unclaimed: Condition = (Is("pk", "exists"), Is("claimed", "missing"))
    if not gone:
        return [Delete(key, unclaimed)] if fresh else []
    attribute = [gone.to_attribute()]
    if fresh:
        return [Update(key, set={"gone": attribute}, remove=("fresh",), when=unclaimed)]
    kept = {"pk": key.pk, "sk": key.sk, "account": account, "gone": attribute}
    return [Put(kept | due(key.pk + version, now + DUE))]


def remove(ports: Ports, account: str, held: Sequence[Held]) -> None:
    """Remove vectors and blobs; absent ones are no error."""
    by_index: dict[str, list[str]] = {}
    for one in held:
        if one.vectors:
            by_index.setdefault(one.vectors.index, []).extend(one.vectors.ids)
    for index, ids in by_index.items():
        ports.index.delete(index, bank_of(account), ids)
    blobs = [one.blob for one in held if one.blob]
    if blobs:
        ports.blobs.delete(blobs)


def take_up(ports: Ports, key: Key) -> bool:
    """Do what a record that is due says, and remove it. Raises `IndexUnavailable`, `BlobsUnavailable`; it stays due."""
    try:
        record = ports.table.write(Update(key, set={"claimed": True}, when=(Is("pk", "exists"),)))
    except ConditionFailed:
        return True
    account = record["account"]
    gone = [_held(one) for one in record["gone"]]
    if "fresh" in record:
        [row] = ports.table.read([rows.row_key(account, (), key.sk)])
        if row is None:
            gone.append(_held(record["fresh"]))
    remove(ports, account, gone)
    ports.table.write(Delete(key))
    return True


def _held(attribute: Sequence[Any]) -> Held:
    vectors, blob = attribute
    return Held(Vectors(*vectors) if vectors else None, blob)

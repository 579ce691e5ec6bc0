"""What batches of messages were made into: one record a batch, written in the transaction that moves the ledger on.

`O#{place}` has the batch whose last message is there, and what came of its messages: batches follow each other, so a message's is
the first at or after its own place. What is made again, of messages that were edited, or set aside and tried anew, has a
record `Q#{ulid}`, and the messages name it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .. import partitions
from ..bank import Bank
from ..ports import Item, Key, Ports, Put
from . import ledger as ledgers

Kind = Literal["none", "prompt", "schemas"]


@dataclass(frozen=True, slots=True)
class Made:
    """One batch: `messages` are places; `entries` sort positions, with kind `none` in the order of `told`."""

    sk: str
    kind: Kind
    messages: tuple[str, ...]
    """All messages of the batch."""
    told: tuple[str, ...]
    """Those with something to remember."""
    entries: tuple[str, ...]
    note: str | None = None


def record(bank: Bank, partition: str, made: Made, ulid: str, more: dict[str, Any] | None = None) -> Put:
    """The record of a batch. It expires with the bank's retention, like what it tells of."""
    key = key_of(bank, partition, made.sk)
    item: Item = {
        "pk": key.pk,
        "sk": key.sk,
        "kind": made.kind,
        "messages": list(made.messages),
        "told": list(made.told),
        "entries": list(made.entries),
    }
    item |= {"note": made.note} if made.note else {}
    return Put(item | (more or {}) | partitions.age_attributes(bank, partition, ulid))


def key_of(bank: Bank, partition: str, sk: str) -> Key:
    """Where a record is."""
    return Key(ledgers.runs_pk(bank, partition), sk)


def from_item(item: Item) -> Made:
    """A record from its item."""
    return Made(
        sk=item["sk"],
        kind=item["kind"],
        messages=tuple(item["messages"]),
        told=tuple(item["told"]),
        entries=tuple(item["entries"]),
        note=item.get("note"),
    )


def sk_of(messages: Sequence[str]) -> str:
    """The sort key of a batch's record: the place of its last message."""
    return f"O#{max(messages)}"


def all_of(ports: Ports, bank: Bank, partition: str) -> Iterator[Made]:
    """Every record of a key: the batches in order, then what was made again."""
    yield from batches(ports, bank, partition)
    yield from batches(ports, bank, partition, "Q")


def batches(ports: Ports, bank: Bank, partition: str, kind: str = "O") -> Iterator[Made]:
    """The records of one kind, in order: `O` of batches, `Q` of what was made again."""
    pk = ledgers.runs_pk(bank, partition)
    after: str | None = f"{kind}#"
    while after is not None:
        page = ports.table.query(pk, after=after, before=f"{kind}~", limit=100)
        yield from map(from_item, page.items)
        after = page.after


def of(ports: Ports, bank: Bank, partition: str, place: str, again: str | None = None) -> Made | None:
    """The record of what a message was made into; `again` is the one that the message names, if it does."""
    if again is not None:
        # Where that is gone, nothing is left of the message: what its batch was made into is older.
        item = ports.table.read([key_of(bank, partition, again)])[0]
        return from_item(item) if item is not None else None
    page = ports.table.query(ledgers.runs_pk(bank, partition), first=f"O#{place}", last="O~", limit=1)
    found = from_item(page.items[0]) if page.items else None
    return found if found and place in found.messages else None

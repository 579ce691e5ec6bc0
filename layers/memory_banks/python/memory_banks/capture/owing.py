"""Messages that were edited or deleted after something was made of them, or set aside and are to be tried again.

`A#{place}` is written in the transaction that changes the message, and goes only when what was made of it follows: a process
that dies in between leaves it for the next distillation of the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..bank import Bank
from ..ports import Delete, Is, Item, Key, Ports, Put, Update
from . import ledger as ledgers
from .ledger import Ledger

Work = Literal["carry", "distil"]
"""`carry`: what was made of the message is to follow it. `distil`: it is to be distilled, alone of its batch."""


@dataclass(frozen=True, slots=True)
class Owed:
    """One such message. `stamp` tells it from the same message owed again."""

    place: str
    work: Work
    stamp: str
    made: str | None
    """The record that the message named."""


def put(bank: Bank, partition: str, place: str, work: Work, stamp: str, made: str | None = None) -> Put:
    """That a message is owed."""
    key = _key(bank, partition, place)
    item: Item = {"pk": key.pk, "sk": key.sk, "work": work, "stamp": stamp}
    return Put(item | ({"made": made} if made else {}))


def done(bank: Bank, partition: str, owed: Owed) -> Delete:
    """That it is owed no more; the condition fails when it was owed again since."""
    return Delete(_key(bank, partition, owed.place), (Is("stamp", "=", owed.stamp),))


def noted(bank: Bank, ledger: Ledger, marks: dict[str, str | int]) -> Update:
    """The ledger's part: what reads messages now and commits later finds `edits` changed."""
    at = ledgers.ledger_key(bank, ledger.partition)
    return Update(at, set={"owes": True} | marks, add={"edits": 1}, when=ledgers.unchanged(ledger, "reset_at", "plan"))


def listed(ports: Ports, bank: Bank, ledger: Ledger, work: Work, limit: int) -> list[Owed]:
    """The first of those that are owed this; what was forgotten, though not yet removed, is owed nothing."""
    found: list[Owed] = []
    after: str | None = "A#" + ledgers.end_of(ledger.forgotten)
    while after is not None and len(found) < limit:
        page = ports.table.query(ledgers.runs_pk(bank, ledger.partition), after=after, before="A~", limit=200)
        found += [from_item(item) for item in page.items if item["work"] == work]
        after = page.after
    return found[:limit]


def from_item(item: Item) -> Owed:
    """From the table's form."""
    return Owed(item["sk"][2:], item["work"], item["stamp"], item.get("made"))


def any_of(ports: Ports, bank: Bank, ledger: Ledger) -> bool:
    """Whether any message is owed."""
    after = "A#" + ledgers.end_of(ledger.forgotten)
    return bool(ports.table.query(ledgers.runs_pk(bank, ledger.partition), after=after, before="A~", limit=1).items)


def clear(ports: Ports, bank: Bank, partition: str, *, after: str) -> None:
    """No message after a place is owed any more: all of them will be made again."""
    pk = ledgers.runs_pk(bank, partition)
    while page := ports.table.query(pk, after="A#" + after, before="A~", limit=50).items:
        ports.table.transact([Delete(Key(pk, item["sk"])) for item in page])


def _key(bank: Bank, partition: str, place: str) -> Key:
    return Key(ledgers.runs_pk(bank, partition), "A#" + place)

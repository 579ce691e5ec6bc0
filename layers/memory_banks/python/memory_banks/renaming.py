"""Renaming a key: all that is under it is under another key from then on, and under the old one nothing.

Nothing is copied. A partition stays where it is, with its entries, summaries, captured runs, jobs, ids and vectors; one
transaction names the new key on its head and ledger, and says on the homes of both keys where each lives now (see `homes`): the
new one in this partition, the old one in a fresh one that is still empty. Dying before it commits changes nothing; after it,
nothing is left to do.

The partition where the new key lived until then must be empty, and is closed in the same transaction, on condition that nothing
came into it since it was looked at: whoever was about to write there fails and reads the homes again. A write that has read the
old key's home before the rename lands in the partition all the same, as if it had come just before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import homes, ids, partitions
from .bank import SHARDS, Bank
from .capture import forgetting
from .capture import ledger as ledgers
from .errors import Conflict, Invalid, NotFound
from .ports import Action, Check, Contended, Is, Item, Ports, Put, Update
from .retrying import until_committed

KEPT = 20
"""Earlier names of a partition, and partitions that a key has left, that are remembered for requests that are sent again."""


def rename(ports: Ports, bank: Bank, key: str, to: str, *, deadline: int) -> None:
    """Rename a key. Sent again after it took effect it changes nothing.

    Raises `Invalid` where both are the same, `NotFound` for a key that has neither entries nor runs (`key_not_found`), `Conflict`
    where the new one has some, be they past the retention and not yet removed (`key_exists`), and `DatabaseUnavailable`.
    """
    if key == to:
        raise Invalid(("body", "to"), "is the key itself")

    def attempt() -> None:
        renaming = _Renaming(ports, bank, key, to)
        if renaming.needed():
            ports.table.transact(renaming.actions())

    until_committed(attempt, ports.clock, ports.chance, deadline)


@dataclass
class _Place:
    """A partition as it was read."""

    partition: str
    head: Item | None
    ledger: Item | None

    @property
    def names(self) -> tuple[str, ...]:
        """The keys that it was under before."""
        return tuple(self.head.get("names", ())) if self.head is not None else ()


@dataclass
class _Change:
    """What becomes of one head: a transaction takes one action an item, and a head may be the home of a key as well."""

    read: Item | None
    set: dict[str, Any] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)


class _Renaming:
    """One try: what is read, and the transaction that follows from it."""

    def __init__(self, ports: Ports, bank: Bank, key: str, to: str) -> None:
        self._ports, self._bank, self._key, self._to = ports, bank, key, to
        wanted = {one: homes.home_key(bank, one) for one in (key, to)}
        self._homes = dict(zip(wanted, ports.table.read(list(wanted.values())), strict=True))
        source, target = (homes.lives(bank, one, self._homes[one]) for one in wanted)
        wanted_there = [at(bank, name) for name in (source, target) for at in (partitions.head_key, ledgers.ledger_key)]
        items = ports.table.read(wanted_there)
        self._source, self._target = _Place(source, *items[:2]), _Place(target, *items[2:])
        count = self._target.head["shards"] if self._target.head is not None else SHARDS[bank.type]
        shards = [partitions.shard_key(bank, target, number) for number in range(count)]
        self._shards = dict(zip(shards, ports.table.read(shards), strict=True))
        for place, name in ((self._source, key), (self._target, to)):
            if place.head is not None and place.head["key"] != name:
                raise Contended("another rename came in between")

    def needed(self) -> bool:
        """False when it was done before. Raises as `rename`."""
        if self._empty(self._source):
            if self._target.names[-1:] == (self._key,):
                return False
            raise NotFound(f"There is nothing under the key {self._key!r}.", code="key_not_found")
        if not self._empty(self._target):
            raise Conflict(f"There are entries or runs under the key {self._to!r} already.", code="key_exists")
        return True

    def _empty(self, place: _Place) -> bool:
        """Whether a partition holds neither entries nor runs. What was forgotten does not count, what has expired does."""
        table, bank = self._ports.table, self._bank
        if place.head is None:
            return True
        pk, after = partitions.partition_pk(bank, place.partition), "E#" + partitions.head_from(place.head).watermark
        if table.query(pk, after=after, before="E~", limit=1, attributes=[]).items:
            return False
        if place.ledger is None:
            return True
        pk, after = ledgers.runs_pk(bank, place.partition), "N#" + ledgers.end_of(ledgers.from_item(place.ledger).forgotten)
        return not table.query(pk, after=after, before="N~", limit=1, attributes=[]).items

    # ----------------------------------------------------------------------------------------------------------------

    def actions(self) -> list[Action]:
        """The transaction."""
        return [*self._heads(), *self._closed_shards(), self._moved_ledger(), self._closed_ledger()]

    def _heads(self) -> list[Action]:
        """Both keys' homes and both partitions' heads, some of which may be the same."""
        bank, key, to = self._bank, self._key, self._to
        source, target = self._source, self._target
        changes = {
            source.partition: _Change(source.head),
            target.partition: _Change(target.head),
            # What the homes said when they were read first, for that is what the rest was made of.
            homes.of(bank, key): _Change(self._homes[key]),
            homes.of(bank, to): _Change(self._homes[to]),
        }
        names = [one for one in source.names if one not in (key, to)]
        changes[source.partition].set |= {"key": to, "names": [*names, key][-KEPT:]}
        changes[target.partition].set |= {"closed": True}
        left = [*_left(self._homes[key]), source.partition][-KEPT:]
        changes[homes.of(bank, key)].set |= {"lives": ids.fresh_partition(self._ports.chance), "left": left}
        # It comes back to where it was, or goes into the partition that was the old key's.
        home = changes[homes.of(bank, to)]
        home.set |= {"left": [one for one in _left(self._homes[to]) if one != source.partition]}
        if source.partition == homes.of(bank, to):
            home.remove.append("lives")
        else:
            home.set |= {"lives": source.partition}
        return [self._head(partition, change) for partition, change in changes.items()]

    def _head(self, partition: str, change: _Change) -> Action:
        """One head, on condition that no rename has changed it since it was read."""
        before = change.read
        if before is None:
            # Nobody wrote under the new key so far.
            return Put(partitions.new_head(self._bank, partition, self._to) | change.set, (Is("pk", "missing"),))
        lives = Is("lives", "=", before["lives"]) if "lives" in before else Is("lives", "missing")
        when = (Is("key", "=", before["key"]), lives)
        return Update(partitions.head_key(self._bank, partition), set=change.set, remove=tuple(change.remove), when=when)

    def _closed_shards(self) -> list[Action]:
        """Where the new key lived nothing can be written any more, and nothing was since it was looked at."""
        closed: list[Action] = []
        for key, item in self._shards.items():
            floor = Is("floor", "=", item["floor"]) if item is not None and "floor" in item else Is("floor", "missing")
            closed.append(Update(key, set={"closed": True}, when=(floor,)))
        return closed

    def _moved_ledger(self) -> Action:
        """The ledger under its new key. What is being distilled was to be written under the old one: `edits` has it read again."""
        at = ledgers.ledger_key(self._bank, self._source.partition)
        if self._source.ledger is None:
            return Check(at, (Is("pk", "missing"),))
        return Update(at, set={"key": self._to}, add={"edits": 1}, when=(Is("pk", "exists"),))

    def _closed_ledger(self) -> Action:
        """No run is captured where the new key lived."""
        if self._target.ledger is None:
            return Check(ledgers.ledger_key(self._bank, self._target.partition), (Is("pk", "missing"),))
        gone = forgetting.forgotten(self._bank, ledgers.from_item(self._target.ledger))
        return Update(gone.key, set={**gone.set, "closed": True}, add=gone.add, remove=gone.remove, when=gone.when)


def _left(home: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The partitions that a key has left."""
    return tuple(home.get("left", ())) if home is not None else ()

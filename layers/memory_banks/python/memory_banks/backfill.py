"""Backfilling: the living entries of a bank, walked key after key and written to an index.

A walk has a position, so it goes on where it was left; repeating a piece of it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from . import bank as banks
from . import entries, indexing, ingestion, partitions
from .bank import Bank, Target
from .entries import Entry
from .partitions import Head
from .ports import Item, Ports

BATCH = 50
"""Entries written at once."""

KEYS = 200
"""Keys that one piece of a walk looks at, at most."""

Position = list[str | None]
"""A partition that was walked, and the sort position it was walked to; None for all of it."""


class Walked(NamedTuple):
    """A piece of a walk: how many entries it was, and where to go on; None at the end."""

    entries: int
    position: Position | None


def rest(ports: Ports, bank: Bank, position: Position | None) -> Iterator[tuple[str, str | None]]:
    """The partitions still to be walked, each with the sort position to go on after; only the first can have one."""
    after = None
    if position and position[0] is not None:
        partition, sort = position[0], position[1]
        if sort is not None:
            yield partition, sort
        after = (partitions.group_of(partition), partition)
    for head in partitions.heads(ports.table, bank, after=after):
        yield head.partition, None


def count(ports: Ports, bank: Bank, position: Position | None) -> Walked:
    """How many entries and summaries the next keys have, by their counters."""
    after = (partitions.group_of(position[0]), position[0]) if position and position[0] is not None else None
    heads = list(islice(partitions.heads(ports.table, bank, after=after), KEYS))
    wanted = [key for head in heads for key in partitions.shard_keys(bank, head)]
    items = dict(zip(wanted, ports.table.read(wanted), strict=True)) if wanted else {}
    found = 0
    for head in heads:
        counters = partitions.count(head, [items[key] for key in partitions.shard_keys(bank, head)])
        found += counters.entries + (head.summary is not None)
    return Walked(found, [heads[-1].partition, None] if len(heads) == KEYS else None)


def fill(ports: Ports, bank: Bank, target: Target, position: Position | None) -> Walked:
    """Write about a batch of entries to an index. Raises as `indexing.index` does."""
    filled = 0
    for number, (partition, after) in enumerate(rest(ports, bank, position), start=1):
        count, reached = _page(ports, bank, target, partition, after)
        filled += count
        if reached is not None or filled >= BATCH or number >= KEYS:
            return Walked(filled, [partition, reached])
    return Walked(filled, None)


def current(ports: Ports, bank: Bank, partition: str) -> tuple[Bank, Head] | None:
    """Bank and head as they are, read strongly; None when the bank or this generation of it is gone."""
    bank_item, head_item = ports.table.read([banks.key_of(bank.account, bank.id), partitions.head_key(bank, partition)])
    if bank_item is None or head_item is None or bank_item["generation"] != bank.generation:
        return None
    return banks.from_item(bank_item), partitions.head_from(head_item)


def write(ports: Ports, bank: Bank, head: Head, target: Target, living: list[Entry]) -> None:
    """Write these entries to an index. One that is refused is noted on itself, and tried again by ingestion.

    `bank` and `head` must have been read before the entries.
    """
    failed = indexing.index(ports, bank, head, living, [target])
    unknown = [entry for entry in living if entry.sort in failed or not entry.indexed]
    if bank.writes != (target,):
        # What ingestion has not confirmed may be missing in the other index still.
        unknown = [entry for entry in unknown if entry.sort in failed]
    ingestion.settle(ports, bank, head.partition, unknown, failed)


def _page(ports: Ports, bank: Bank, target: Target, partition: str, after: str | None) -> tuple[int, str | None]:
    """Write a page of one partition; how many entries it was, and the position to go on after."""
    found = current(ports, bank, partition)
    if found is None:
        return 0, None
    bank, head = found
    start = "E#" + max(head.watermark, after or "")
    page = ports.table.query(partitions.partition_pk(bank, partition), after=start, last="E~", limit=BATCH)
    living = alive(ports, bank, head, page.items)
    if living:
        write(ports, bank, head, target, living)
    return len(living), page.after[2:] if page.after else None


def alive(ports: Ports, bank: Bank, head: Head, items: list[Item]) -> list[Entry]:
    """The entries of these items that are still remembered."""
    cutoff = bank.cutoff(ports.clock.now())
    found = [entries.from_item(item) for item in items]
    return [entry for entry in found if partitions.alive(head, entry, cutoff)]

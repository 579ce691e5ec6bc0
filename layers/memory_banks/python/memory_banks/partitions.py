"""Partitions: the entries of one key of a bank, with their head, shards and counters.

The items of a partition (design: where the truth lives):

    H#{bank}#{generation}#{0..15} / {partition}         the head: watermark, lease, edits, corrections of the counters
    P#{bank}#{generation}#{partition} / S#{n}           a shard: counters and floor
    P#{bank}#{generation}#{partition} / E#{sort}        an entry or a summary
    P#{bank}#{generation}#{partition} / X#{ulid}        a clean-up that is due
    I#{bank}#{generation}#{0..15} / {caller's id}       a pointer from a caller-given id to its entry
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import cursors, ids
from .bank import SHARDS, Bank
from .clock import iso
from .entries import Entry
from .ports import Item, Key, Ports, Table

HEAD_GROUPS = 16
"""Over how many table partitions the heads of a bank are spread; a walk of a bank queries each."""

MAX_SHARDS = max(SHARDS.values())


@dataclass(frozen=True, slots=True)
class Counters:
    """What lives in a partition: entries without summaries; tokens and chunks with them."""

    entries: int
    tokens: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a partition. `entries`, `tokens` and `chunks` are corrections, added to the sums of the shards."""

    partition: str
    key: str
    shards: int
    watermark: str = ids.LOWEST
    """The ULID up to which entries were compacted or forgotten; only what sorts after it lives."""
    forgotten: str = ids.LOWEST
    """Like the watermark, but of what was erased: hidden from views begun before, too."""
    summary: str | None = None
    """Sort position of the living summary."""
    edits: int = 0
    """Grows with every correction, deletion and compaction."""
    entries: int = 0
    tokens: int = 0
    chunks: int = 0
    lease: str | None = None
    lease_until: int = 0
    retry_at: int = 0
    failures: int = 0
    error: str | None = None
    compacted_at: int = 0
    due_at: int | None = None
    """When the sweep looks at the partition; None when nothing is due."""
    asked: bool = False
    """Whether a compaction was asked for while one was due already."""
    names: tuple[str, ...] = ()
    """The keys that its entries were under before, the last one last."""
    lives: str | None = None
    """The partition where the key lives whose home this is, if it is another (see `homes`)."""


def alive(head: Head | None, entry: Entry, cutoff: int | None) -> bool:
    """Whether an entry that is in the table is still remembered: not compacted, forgotten or past the retention."""
    return head is not None and entry.sort > head.watermark and (cutoff is None or entry.created_at > cutoff)


def group_of(partition: str) -> int:
    """Which of the 16 groups of heads, ages and pointers a partition (or any text) belongs to."""
    return zlib.crc32(partition.encode()) % HEAD_GROUPS


def heads_pk(bank: Bank, group: int) -> str:
    """The table partition of a group of heads."""
    return f"H#{bank.id}#{bank.generation}#{group}"


def head_key(bank: Bank, partition: str) -> Key:
    """Where the head is."""
    return Key(heads_pk(bank, group_of(partition)), partition)


def partition_pk(bank: Bank, partition: str) -> str:
    """The table partition of shards, entries and clean-ups."""
    return f"P#{bank.id}#{bank.generation}#{partition}"


def shard_key(bank: Bank, partition: str, shard: int) -> Key:
    """Where a shard is."""
    return Key(partition_pk(bank, partition), f"S#{shard}")


def entry_key(bank: Bank, partition: str, sort: str) -> Key:
    """Where an entry is."""
    return Key(partition_pk(bank, partition), f"E#{sort}")


def pointer_key(bank: Bank, caller_id: str) -> Key:
    """Where the pointer of a caller-given id is."""
    return Key(pointers_pk(bank, group_of(caller_id)), caller_id)


def pointers_pk(bank: Bank, group: int) -> str:
    """The table partition of a group of pointers."""
    return f"I#{bank.id}#{bank.generation}#{group}"


def age_attributes(bank: Bank, partition: str, ulid: str) -> dict[str, str]:
    """The attributes that put an item into the bank's `age` index."""
    return {"age_pk": age_pk(bank, group_of(partition)), "age": ulid}


def age_pk(bank: Bank, group: int) -> str:
    """The partition of the `age` index that holds a group."""
    return f"A#{bank.id}#{bank.generation}#{group}"


def new_head(bank: Bank, partition: str, key: str) -> Item:
    """The head of a partition at its first write; the number of shards never changes afterwards."""
    at = head_key(bank, partition)
    return {"pk": at.pk, "sk": at.sk, "account": bank.account, "key": key, "shards": SHARDS[bank.type]}


def head_from(item: Item) -> Head:
    """A head from its item."""
    return Head(
        partition=item["sk"],
        key=item["key"],
        shards=item["shards"],
        watermark=item.get("watermark", ids.LOWEST),
        forgotten=item.get("forgotten", ids.LOWEST),
        summary=item.get("summary"),
        edits=item.get("edits", 0),
        entries=item.get("entries", 0),
        tokens=item.get("tokens", 0),
        chunks=item.get("chunks", 0),
        lease=item.get("lease"),
        lease_until=item.get("lease_until", 0),
        retry_at=item.get("retry_at", 0),
        failures=item.get("failures", 0),
        error=item.get("error"),
        compacted_at=item.get("compacted_at", 0),
        due_at=item.get("due_at"),
        asked="asked" in item,
        names=tuple(item.get("names", ())),
        lives=item.get("lives"),
    )


def shard_keys(bank: Bank, head: Head) -> list[Key]:
    """The keys of all shards of a partition."""
    return [shard_key(bank, head.partition, number) for number in range(head.shards)]


def count(head: Head, shards: Sequence[Item | None]) -> Counters:
    """The counters of a partition from its head and all its shards."""
    sums = [sum(shard.get(name, 0) for shard in shards if shard) for name in ("entries", "tokens", "chunks")]
    return Counters(sums[0] + head.entries, sums[1] + head.tokens, sums[2] + head.chunks)


def read_all(table: Table, bank: Bank, partition: str) -> tuple[Head, list[Item | None]] | None:
    """Head and all shards in one strong batch read; None when the partition was never written to."""
    keys = [head_key(bank, partition), *(shard_key(bank, partition, n) for n in range(SHARDS[bank.type]))]
    item, *shards = table.read(keys)
    if item is None:
        return None
    head = head_from(item)
    return head, shards if head.shards == len(shards) else table.read(shard_keys(bank, head))


def heads(table: Table, bank: Bank, *, after: tuple[int, str] | None = None, limit: int = 100) -> Iterator[Head]:
    """Every head of a bank in walking order (group, partition), after the given position; read strongly."""
    start, position = after or (0, "")
    for group in range(start, HEAD_GROUPS):
        last: str | None = position if group == start and position else None
        while True:
            page = table.query(heads_pk(bank, group), after=last, limit=limit)
            for item in page.items:
                yield head_from(item)
            if page.after is None:
                break
            last = page.after


def keys(ports: Ports, bank: Bank, *, limit: int, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """A page of the bank's keys with what lives under each, and the cursor of the next page.

    Raises `Invalid` for a cursor that is not this bank's.
    """
    position: tuple[int, str] | None = None
    if cursor is not None:
        view = cursors.read(bank.secret, cursor, "keys")
        position = (view["group"], view["partition"])
    cutoff = bank.cutoff(ports.clock.now())
    shown: list[dict[str, Any]] = []
    batch: list[Head] = []
    walked: Head | None = None
    source = heads(ports.table, bank, after=position, limit=limit)
    for head in source:
        batch.append(head)
        if len(batch) + len(shown) < limit:
            continue
        shown += _shown(ports.table, bank, batch, cutoff)
        walked, batch = head, []
        if len(shown) >= limit:
            break
    else:
        shown += _shown(ports.table, bank, batch, cutoff)
        return shown, None
    if walked is None or next(source, None) is None:
        return shown, None
    view = {"group": group_of(walked.partition), "partition": walked.partition}
    return shown, cursors.write(bank.secret, "keys", view)


def _shown(table: Table, bank: Bank, batch: Sequence[Head], cutoff: int | None) -> list[dict[str, Any]]:
    wanted = [key for head in batch for key in shard_keys(bank, head)]
    runs = [_ledger_key(bank, head.partition) for head in batch] if bank.capture is not None else []
    items = dict(zip(wanted + runs, table.read(wanted + runs), strict=True)) if wanted else {}
    return [row for head in batch if (row := _row(table, bank, head, items, cutoff))]


def _row(table: Table, bank: Bank, head: Head, items: Mapping[Key, Item | None], cutoff: int | None) -> dict[str, Any] | None:
    shards = [items[key] for key in shard_keys(bank, head)]
    counters = count(head, shards)
    pk = partition_pk(bank, head.partition)
    after = "E#" + head.watermark
    first = table.query(pk, after=after, before="E~", limit=1, attributes=["occurred_at"]).items
    if first and cutoff is not None and ids.milliseconds_of(first[0]["sk"][2:]) <= cutoff:
        counters, first = _without_expired(table, pk, after, cutoff, counters)
    captured = _captured(items.get(_ledger_key(bank, head.partition)))
    if not first and not captured["pending_runs"] and not captured["processed_messages"]:
        return None
    return {
        "key": head.key,
        "entries": counters.entries,
        "chunks": counters.chunks,
        "tokens": counters.tokens,
        "first_at": iso(ids.milliseconds_of(first[0]["sk"][2:])) if first else None,
        "last_at": iso(max(shard.get("last_at", 0) for shard in shards if shard)) if first else None,
        "compaction": {
            "last_at": iso(head.compacted_at) if head.compacted_at else None,
            "failures": head.failures,
            "retry_at": iso(head.retry_at) if head.failures else None,
            "error": head.error,
        },
        **captured,
    }


def _ledger_key(bank: Bank, partition: str) -> Key:
    # Imported here: only banks that capture runs have ledgers.
    from .capture.ledger import ledger_key

    return ledger_key(bank, partition)


def _captured(item: Item | None) -> dict[str, Any]:
    """What is shown of a key's captured runs."""
    from .capture.ledger import Ledger, from_item
    from .capture.listing import summary

    return summary(from_item(item) if item else Ledger("", ""))


def _without_expired(table: Table, pk: str, after: str, cutoff: int, counters: Counters) -> tuple[Counters, list[Item]]:
    """The counters less what is past the retention and not yet swept, and the first living entry."""
    end = "E#" + ids.at(cutoff + 1)
    entries, tokens, chunks = counters.entries, counters.tokens, counters.chunks
    position: str | None = after
    while position is not None:
        page = table.query(pk, after=position, before=end, attributes=["kind", "tokens", "chunks"])
        entries -= sum(item["kind"] == "entry" for item in page.items)
        tokens -= sum(item["tokens"] for item in page.items)
        chunks -= sum(item["chunks"] for item in page.items)
        position = page.after
    return Counters(entries, tokens, chunks), table.query(pk, first=end, last="E~", limit=1, attributes=["kind"]).items

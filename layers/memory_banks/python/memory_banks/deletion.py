"""Deleting an entry, a key, a source or a bank: gone from every answer as soon as it is acknowledged, physically gone soon.

Each is one transaction that makes things invisible and leaves a clean-up record; dying before it changes nothing, after it
the sweep finishes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from . import bank as banks
from . import cleaning, entries, homes, ids, loading, partitions, retention
from .bank import Bank
from .capture import capturing, forgetting
from .corrections import edit_head
from .entries import Entry
from .errors import NotFound
from .marking import DUE_ATTRIBUTES
from .partitions import Head
from .ports import Action, ConditionFailed, Contended, Delete, Either, Is, Item, Ports, Put, Update
from .retrying import contended, until_committed


def delete_entry(ports: Ports, bank: Bank, entry_id: str, *, deadline: int) -> None:
    """Forget one entry or summary. Raises `NotFound`, `Gone` ("compacted") and `DatabaseUnavailable`.

    With a summary go the entries that it replaced.
    """

    def attempt() -> list[Put]:
        head, entry = loading.locate(ports, bank, entry_id)
        now = ports.clock.now()
        records = [cleaning.of_entries(bank, entry.partition, [entry.sort], now, ports.chance)]
        if entry.kind == "summary":
            records.append(cleaning.of_range(bank, entry.partition, entry.ulid, now, ports.chance, erased=True))
        actions: list[Action] = [
            Delete(partitions.entry_key(bank, entry.partition, entry.sort), (Is("version", "=", entry.version),)),
            _without(bank, head, entry),
            *records,
        ]
        actions += cleaning.pointer_removals(ports, bank, [entries.to_item(entry, "")])
        ports.table.transact(actions)
        return records

    for record in until_committed(attempt, ports.clock, ports.chance, deadline):
        cleaning.announce(ports, record)


def _without(bank: Bank, head: Head, entry: Entry) -> Update:
    """The head after an entry is gone; what a summary replaced is not to come back in a view that began before."""
    counted = int(entry.kind == "entry")
    edit = edit_head(bank, head, entry.sort, entries=-counted, tokens=-entry.tokens, chunks=-entry.chunks)
    if entry.kind == "entry":
        return edit
    return Update(edit.key, set={"forgotten": entry.ulid}, add=edit.add, remove=("summary",), when=edit.when)


def forget_key(ports: Ports, bank: Bank, key: str, *, deadline: int) -> None:
    """Forget everything under a key, its captured runs and jobs too; a key never written to is forgotten already.

    Raises `DatabaseUnavailable`.

    The design's compaction without a summary: raise all floors to P, then move the watermark to P. A due mark stays: what was
    written after P may have asked for it.
    """

    def attempt() -> Put | None:
        partition, _ = homes.find(ports.table, bank, key)
        found = partitions.read_all(ports.table, bank, partition)
        if found is None:
            return None
        head, shards = found
        if head.key != key:
            raise Contended("the key is being renamed")
        through = max([head.watermark, *(shard["floor"] for shard in shards if shard and "floor" in shard)])
        runs = forgetting.actions(ports, bank, partition)
        if through == head.forgotten and not runs:
            return None
        raise_floors(ports, bank, head, through)
        living = sum_of(living_items(ports, bank, head, through))
        record = cleaning.of_range(bank, partition, through, ports.clock.now(), ports.chance, forgotten=head.key)
        ports.table.transact(
            [
                Update(
                    partitions.head_key(bank, partition),
                    set={"watermark": through, "forgotten": through},
                    add={"edits": 1, "entries": -living.entries, "tokens": -living.tokens, "chunks": -living.chunks},
                    remove=("summary", "lease", "lease_until", "retry_at", "failures", "error"),
                    # Renamed meanwhile, it is another key that would be forgotten.
                    when=(*unchanged(head), Is("key", "=", head.key)),
                ),
                record,
                *runs,
            ]
        )
        return record

    record = until_committed(attempt, ports.clock, ports.chance, deadline)
    if record is not None:
        cleaning.announce(ports, record)


def raise_floors(ports: Ports, bank: Bank, head: Head, through: str) -> None:
    """Make every shard refuse ids at or below `through`, so that nothing can land there any more. Idempotent."""
    for key in partitions.shard_keys(bank, head):
        raised = Update(key, set={"floor": through}, when=(Either((Is("floor", "missing"), Is("floor", "<", through))),))
        with suppress(ConditionFailed):
            # Each by itself: under heavy writing all eight in a row hardly ever meet no conflict.
            contended(lambda raised=raised: ports.table.write(raised), ports.clock, ports.chance)  # type: ignore[misc]


def unchanged(head: Head) -> tuple[Is | Either, ...]:
    """The condition that nothing was compacted, corrected or deleted since the head was read."""
    watermark = Is("watermark", "=", head.watermark)
    edits = Is("edits", "=", head.edits)
    return (
        Is("pk", "exists"),
        Either((watermark, Is("watermark", "missing"))) if head.watermark == ids.LOWEST else watermark,
        Either((edits, Is("edits", "missing"))) if head.edits == 0 else edits,
    )


def living_items(ports: Ports, bank: Bank, head: Head, through: str) -> Iterator[Item]:
    """Kind, tokens and chunks of what is above the watermark and sorts at or below `through`."""
    pk = partitions.partition_pk(bank, head.partition)
    position: str | None = "E#" + head.watermark
    while position is not None:
        page = ports.table.query(pk, after=position, last="E#" + through, attributes=["kind", "tokens", "chunks"])
        yield from page.items
        position = page.after


def sum_of(items: Iterator[Item]) -> partitions.Counters:
    """The counters of some entry items."""
    count = tokens = chunks = 0
    for item in items:
        count += item["kind"] == "entry"
        tokens += item["tokens"]
        chunks += item["chunks"]
    return partitions.Counters(count, tokens, chunks)


def delete_source(ports: Ports, bank: Bank, *, deadline: int) -> Bank:
    """Forget all entries of a bank and keep its settings: one update, generation + 1. Gives the bank as it is then."""

    def attempt() -> tuple[Bank, Put]:
        now = ports.clock.now()
        item = ports.table.read([banks.key_of(bank.account, bank.id)])[0]
        if item is None:
            raise NotFound("no such memory bank")
        before = banks.from_item(item)
        record = cleaning.of_generation(before, now, ports.chance)
        ports.table.transact(
            [
                Update(
                    banks.key_of(bank.account, bank.id),
                    # What is written from now on is due for the retention no earlier than this.
                    set={"updated_at": now, "status": "empty"} | retention.due_from(before, now),
                    add={"generation": 1},
                    remove=("source_connection_id", *(() if before.retention_days else DUE_ATTRIBUTES)),
                    when=(Is("generation", "=", before.generation),),
                ),
                record,
            ]
        )
        return before, record

    _, record = until_committed(attempt, ports.clock, ports.chance, deadline)
    cleaning.announce(ports, record)
    item = ports.table.read([banks.key_of(bank.account, bank.id)])[0]
    if item is None:
        raise NotFound("no such memory bank")
    return banks.from_item(item)


def delete_bank(ports: Ports, bank: Bank, *, deadline: int) -> None:
    """Delete a bank with all that is in it. Raises `NotFound` when it is gone already."""

    def attempt() -> Put:
        key = banks.key_of(bank.account, bank.id)
        item = ports.table.read([key])[0]
        if item is None:
            raise NotFound("no such memory bank")
        current = banks.from_item(item)
        record = cleaning.of_generation(current, ports.clock.now(), ports.chance)
        gone = [Delete(key, (Is("generation", "=", current.generation),)), *capturing.name_actions(current, None)]
        ports.table.transact([*gone, record])
        return record

    record = until_committed(attempt, ports.clock, ports.chance, deadline)
    cleaning.announce(ports, record)

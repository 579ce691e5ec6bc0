"""Clean-ups: removing for good what is already invisible. Each is a record in the table until it is done.

A record is written in the transaction that makes things invisible, and is due in the sweep's index, so a clean-up that
dies, or whose message is lost, is taken up again. All steps may be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from . import bank as banks
from . import ids, partitions
from .bank import Bank, Target
from .marking import due
from .ports import Chance, Delete, Item, Key, Ports, Put, QueueUnavailable

BATCH = 50
"""Entries removed by one transaction, each perhaps with a pointer."""

MOST = 1_000
"""Entries removed by one call; the rest is for the next."""

Kind = Literal["entries", "range", "generation"]


def of_entries(bank: Bank, partition: str, sorts: Sequence[str], at: int, chance: Chance) -> Put:
    """The record of entries that are gone from the table: their vectors and windows are still to be removed."""
    return _record(bank, "entries", partition, at, chance, sorts=list(sorts))


def of_range(bank: Bank, partition: str, through: str, at: int, chance: Chance, *, pointers: bool) -> Put:
    """The record of everything in a partition up to a ULID (a summary at it stays), due at `at` (ms).

    `pointers`: caller-given ids are free again. After a compaction they stay, so that importing twice doubles nothing.
    """
    return _record(bank, "range", partition, at, chance, through=through, pointers=pointers)


def of_generation(bank: Bank, at: int, chance: Chance, *, again: bool) -> Put:
    """The record of a whole generation of a bank (its source, or the bank itself, was deleted)."""
    return _record(bank, "generation", "", at, chance, again=again)


def _record(bank: Bank, kind: Kind, partition: str, at: int, chance: Chance, **what: Any) -> Put:
    [ulid] = ids.ulids(at, ids.LOWEST, 1, chance)
    pk = partitions.partition_pk(bank, partition) if partition else f"G#{bank.id}#{bank.generation}"
    item: Item = {
        "pk": pk,
        "sk": f"X#{ulid}",
        "kind": kind,
        "account": bank.account,
        "bank": bank.id,
        "generation": bank.generation,
        "partition": partition,
        "targets": [[target.model, target.dimensions] for target in bank.writes],
    }
    return Put(item | what | due(pk + ulid, at))


def announce(ports: Ports, record: Put, delay_seconds: int = 0) -> None:
    """Have ingest do it soon; without the message the sweep does it when due."""
    try:
        ports.ingestion.send([message_of(Key(record.item["pk"], record.item["sk"]))], delay_seconds)
    except QueueUnavailable:
        ports.metrics.count("IngestionMessagesLost")


def message_of(key: Key) -> dict[str, Any]:
    """The message that makes ingest do a clean-up."""
    return {"clean": [key.pk, key.sk]}


def clean(ports: Ports, key: Key) -> bool:
    """Do what a record says and remove it; False when some is left for another call. An absent record is done."""
    record = ports.table.read([key])[0]
    if record is None:
        return True
    bank = _bank_of(record)
    done = True
    match record["kind"]:
        case "entries":
            _clean_index(ports, bank, record)
        case "range":
            done = _clean_range(ports, bank, record)
        case "generation":
            from . import generations

            done = generations.clean(ports, bank, _targets(record))
    if not done:
        return False
    if record["kind"] == "generation" and record["again"]:
        # A write that read the bank just before may still have landed: look once more, an hour later.
        again = of_generation(bank, ports.clock.now() + 3_600_000, ports.chance, again=False)
        ports.table.write(Put(again.item | {"targets": record["targets"]}))
    ports.table.write(Delete(key))
    return True


def _bank_of(record: Item) -> Bank:
    """As much of the bank as its keys need; the bank itself may be gone."""
    return banks.stand_in(record["account"], record["bank"], record["generation"])


def _targets(record: Item) -> list[Target]:
    return [Target(model, dimensions) for model, dimensions in record["targets"]]


def _clean_index(ports: Ports, bank: Bank, record: Item) -> None:
    from . import ingestion

    partition, sorts = record["partition"], record["sorts"]
    gone = [ids.internal(partition, sort) for sort in sorts]
    for target in _targets(record):
        ports.index.delete_entries(target.index, bank.id, gone)
    ingestion.renew_windows(ports, bank.account, bank.id, bank.generation, partition, sorts)


def _clean_range(ports: Ports, bank: Bank, record: Item) -> bool:
    from . import ingestion

    partition, through = record["partition"], record["through"]
    for target in _targets(record):
        ports.index.delete_partition(target.index, bank.id, bank.generation, partition, through)
    pk = partitions.partition_pk(bank, partition)
    removed = 0
    while removed < MOST:
        page = ports.table.query(pk, first="E#", last="E#" + through, limit=BATCH, attributes=["caller_id"])
        if not page.items:
            ingestion.renew_windows(ports, bank.account, bank.id, bank.generation, partition, [through])
            return True
        ports.table.transact(removals(bank, page.items, pointers=record["pointers"]))
        removed += len(page.items)
    return False


def removals(bank: Bank, items: Sequence[Item], *, pointers: bool) -> list[Delete]:
    """The deletes of entry items, and of the pointers of those that have a caller-given id."""
    actions = [Delete(Key(item["pk"], item["sk"])) for item in items]
    if pointers:
        actions += [Delete(partitions.pointer_key(bank, item["caller_id"])) for item in items if item.get("caller_id")]
    return actions

"""Ingestion: a queue message → chunks and windows → vectors → the index.

A message carries ids, never text, and may come twice, late or out of order: what is indexed is what the table says now.
Dying at any step leaves the entries marked as unindexed; the message comes back, or the sweep sends another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import bank as banks
from . import cleaning, entries, ids, indexing, partitions
from .bank import Bank
from .documents import Neighbourhood
from .entries import Entry
from .marking import DUE_ATTRIBUTES, due
from .ports import ConditionFailed, Is, Key, Ports, Update

RETRY_HOURS = (1, 2, 4, 8, 16, 24)
"""After a failed attempt the entry is due again in so many hours; after the last it is `index_failed`."""


def ingest(ports: Ports, message: Mapping[str, Any]) -> None:
    """Do what one message of the ingestion queue asks. Repeating it changes nothing.

    Raises what makes the message come back: `IndexUnavailable`, `ModelUnavailable`, `TableUnavailable`, `Contended`.
    An entry that can't be indexed raises nothing; the failure is recorded on the entry.
    """
    if "clean" in message:
        pk, sk = message["clean"]
        if not cleaning.clean(ports, Key(pk, sk)):
            ports.ingestion.send([message])
        return
    account, bank_id, generation = message["account"], message["bank"], message["generation"]
    partition, wanted = message["partition"], message["entries"]
    named = banks.stand_in(account, bank_id, generation)
    bank_item, head_item, *items = ports.table.read(
        [
            banks.key_of(account, bank_id),
            partitions.head_key(named, partition),
            *(partitions.entry_key(named, partition, sort) for sort in wanted),
        ]
    )
    if bank_item is None or head_item is None or bank_item["generation"] != generation:
        return
    bank, head = banks.from_item(bank_item), partitions.head_from(head_item)
    cutoff = bank.cutoff(ports.clock.now())
    found = [entries.from_item(item) for item in items if item is not None]
    gone = [ids.internal(partition, sort) for sort, item in zip(wanted, items, strict=True) if item is None]
    shrunk = indexing.surplus(entry for entry in found if entry.indexed)
    for target in bank.writes:
        # This message may have come before, and its function died between writing and looking again.
        if gone:
            ports.index.delete_entries(target.index, bank.id, gone)
        if shrunk:
            ports.index.delete(target.index, bank.id, shrunk)
    fresh = [entry for entry in found if partitions.alive(head, entry, cutoff) and not entry.indexed]
    if fresh:
        settle(ports, bank, partition, fresh, indexing.index(ports, bank, head, fresh, bank.writes))


def settle(ports: Ports, bank: Bank, partition: str, tried: Sequence[Entry], failed: Mapping[str, str]) -> None:
    """Note what came of indexing entries in all indexes of the bank: those that failed, by sort position, and the others."""
    for entry in tried:
        if entry.sort in failed:
            _record_failure(ports, bank, entry, failed[entry.sort])
    indexed = [entry for entry in tried if entry.sort not in failed]
    if indexed:
        _ask_for_compaction(ports, bank, partition)
        _confirm(ports, bank, indexed)
        _say_ready(ports, bank)


def renew_windows(ports: Ports, account: str, bank_id: str, generation: int, partition: str, around: Sequence[str]) -> None:
    """Index the windows next to these sort positions again, after the entries there have gone or changed."""
    named = banks.stand_in(account, bank_id, generation)
    bank_item, head_item = ports.table.read([banks.key_of(account, bank_id), partitions.head_key(named, partition)])
    if bank_item is None or head_item is None or bank_item["generation"] != generation:
        return
    bank, head = banks.from_item(bank_item), partitions.head_from(head_item)
    if not bank.conversation:
        return
    neighbourhood = Neighbourhood.read(ports, bank, head, around)
    windows = neighbourhood.windows(around)
    if windows:
        for target in bank.writes:
            indexing.write(ports, target, windows, {})
        indexing.bury(ports, bank, bank.writes, partition, neighbourhood.order)


# --------------------------------------------------------------------------------------------------------------------
# Steps


def _ask_for_compaction(ports: Ports, bank: Bank, partition: str) -> None:
    """Before the unindexed marks go, so that the last writer always sees the full count."""
    if bank.compacts:
        from . import compaction

        compaction.ask_if_exceeded(ports, bank, partition)


def _confirm(ports: Ports, bank: Bank, indexed: Sequence[Entry]) -> None:
    """Mark entries as searchable in the version that was indexed; a corrected one keeps its mark for its own message."""
    updates = [
        Update(
            partitions.entry_key(bank, entry.partition, entry.sort),
            set={"indexed_version": entry.version, "indexed_at": ports.clock.now()},
            remove=(*DUE_ATTRIBUTES, "attempts"),
            when=(Is("version", "=", entry.version),),
        )
        for entry in indexed
    ]
    for start in range(0, len(updates), 100):
        batch = updates[start : start + 100]
        try:
            if len(batch) > 1:
                ports.table.transact(batch)
                continue
        except ConditionFailed:
            pass
        for update in batch:
            try:
                ports.table.write(update)
            except ConditionFailed:
                continue


def _say_ready(ports: Ports, bank: Bank) -> None:
    if bank.status == "empty":
        try:
            ports.table.write(
                Update(
                    banks.key_of(bank.account, bank.id),
                    set={"status": "ready"},
                    when=(Is("generation", "=", bank.generation),),
                )
            )
        except ConditionFailed:
            return


def _record_failure(ports: Ports, bank: Bank, entry: Entry, reason: str) -> None:
    """One more attempt on the entry itself, and when it is due again; after the last, a failed job and a metric."""
    key = partitions.entry_key(bank, entry.partition, entry.sort)
    item = ports.table.read([key])[0]
    if item is None or item["version"] != entry.version:
        return
    attempts = item.get("attempts", 0)
    changes: dict[str, Any] = {"attempts": attempts + 1, "index_error": reason[:500], "indexed_version": 0}
    remove: tuple[str, ...] = ()
    if attempts < len(RETRY_HOURS):
        changes |= due(entry.internal_id, ports.clock.now() + RETRY_HOURS[attempts] * 3_600_000)
    else:
        changes["index_failed"] = True
        remove = DUE_ATTRIBUTES
    try:
        ports.table.write(Update(key, set=changes, remove=remove, when=(Is("version", "=", entry.version),)))
    except ConditionFailed:
        return
    ports.metrics.count("IndexFailed" if remove else "IndexAttemptFailed")
    if remove:
        from . import jobs

        jobs.record_failure(ports, bank, "ingestion", f"entry {entry.id}: {reason[:500]}", key=entry.key, partition=entry.partition)

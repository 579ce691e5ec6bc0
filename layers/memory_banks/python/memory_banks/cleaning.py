"""Clean-ups: removing for good what is already invisible. Each is a record in the table until it is done.

A record is written in the transaction that makes things invisible, and is due in the sweep's index, so a clean-up that
dies, or whose message is lost, is taken up again. All steps may be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

from . import bank as banks
from . import ids, jobs, partitions
from .bank import Bank, Target
from .marking import due
from .ports import Action, Chance, ConditionFailed, Delete, Is, Item, Key, Ports, Put, QueueUnavailable, Update

BATCH = 50
"""Entries removed by one transaction, each perhaps with a pointer."""

MOST = 1_000
"""Entries removed by one call; the rest is for the next."""

SECOND_LOOK = 3_600_000
"""After how many ms what was deleted is looked for once more: what read it just before, and may write of it still, is over."""

Kind = Literal["entries", "range", "generation"]


def of_entries(bank: Bank, partition: str, sorts: Sequence[str], at: int, chance: Chance) -> Put:
    """The record of entries that are gone from the table: their vectors and windows are still to be removed."""
    return _record(bank, "entries", partition, at, chance, sorts=list(sorts), again=True)


def of_range(
    bank: Bank, partition: str, through: str, at: int, chance: Chance, *, erased: bool = False, forgotten: str | None = None
) -> Put:
    """The record of everything in a partition up to a ULID (a summary at it stays), due at `at` (ms).

    `erased`: it was forgotten, not compacted, so caller-given ids are free again; after a compaction they stay, so that
    importing twice doubles nothing. `forgotten`: the key that was forgotten as a whole; then its jobs go too.
    """
    erased = erased or forgotten is not None
    what = {"through": through, "pointers": erased, "again": erased}
    return _record(bank, "range", partition, at, chance, **what | ({"forgotten": forgotten} if forgotten is not None else {}))


def of_generation(bank: Bank, at: int, chance: Chance) -> Put:
    """The record of a whole generation of a bank (its source, or the bank itself, was deleted)."""
    return _record(bank, "generation", "", at, chance, again=True)


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
    """Do what a record says; False when some is left for another call. An absent record is done.

    Then it is removed or, where something may still land, due once more an hour later.
    """
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
    if record["again"]:
        # What read the table just before may still write to it or to the index; dying then, it can't look itself.
        with suppress(ConditionFailed):
            later = {"again": False} | due(key.sk, ports.clock.now() + SECOND_LOOK)
            ports.table.write(Update(key, set=later, when=(Is("again", "=", True),)))
    else:
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

    if "forgotten" in record:
        from .capture import forgetting

        jobs.forget(ports, bank.id, record["partition"], ids.milliseconds_of(record["sk"][2:]))
        if not forgetting.clean(ports, bank, record["partition"], MOST):
            return False
    partition, through = record["partition"], record["through"]
    for target in _targets(record):
        ports.index.delete_partition(target.index, bank.id, bank.generation, partition, through)
    pk = partitions.partition_pk(bank, partition)
    removed = 0
    # Entries, then what is left of compacted ones with an id of their caller's, where that id is to be free again.
    kinds = ("E#", "C#") if record["pointers"] else ("E#",)
    for kind in kinds:
        while page := ports.table.query(pk, first=kind, last=kind + through, limit=BATCH, attributes=["caller_id"]).items:
            if removed >= MOST:
                return False
            actions: list[Action] = [*removals(ports, bank, page, pointers=record["pointers"])]
            if not record["pointers"]:
                actions += [_stub(bank, partition, item) for item in page if item.get("caller_id")]
            with suppress(ConditionFailed):
                ports.table.transact(actions)
                removed += len(page)
    ingestion.renew_windows(ports, bank.account, bank.id, bank.generation, partition, [through])
    return True


def _stub(bank: Bank, partition: str, item: Item) -> Put:
    """What is left of a compacted entry whose caller gave it an id: by it the pointer is found when the summary is erased."""
    sort = item["sk"][2:]
    stub: Item = {"pk": item["pk"], "sk": "C#" + sort, "caller_id": item["caller_id"]}
    return Put(stub | partitions.age_attributes(bank, partition, sort[: ids.ULID_LENGTH]))


def removals(ports: Ports, bank: Bank, items: Sequence[Item], *, pointers: bool) -> list[Delete]:
    """The deletes of entry items and, with `pointers`, of those that point to them.

    A transaction with them fails its condition when an id is given away anew meanwhile; read again then.
    """
    actions = [Delete(Key(item["pk"], item["sk"])) for item in items]
    return actions + pointer_removals(ports, bank, items) if pointers else actions


def pointer_removals(ports: Ports, bank: Bank, items: Sequence[Item]) -> list[Delete]:
    """The deletes of the pointers to these entry items. An id of a dead entry may belong to a new entry by now: that stays."""
    named = [(partitions.pointer_key(bank, item["caller_id"]), item["sk"]) for item in items if item.get("caller_id")]
    found = ports.table.read([key for key, _ in named]) if named else []
    return [
        Delete(key, (Is("sort", "=", pointer["sort"]),))
        for (key, sk), pointer in zip(named, found, strict=True)
        if pointer is not None and sk[2:] == pointer["sort"]
    ]

"""Forgetting a key's captured runs: out of every answer with its entries, in the same transaction; then removed for good."""

from __future__ import annotations

from typing import Any

from ..bank import Bank
from ..marking import DUE_ATTRIBUTES
from ..ports import Action, Delete, Either, Is, Key, Ports, Update
from . import ledger as ledgers

BATCH = 50


def actions(ports: Ports, bank: Bank, partition: str) -> list[Action]:
    """What forgets the runs of a partition; nothing where it has none.

    Whoever is distilling them loses the lease, and so can't commit; what comes later is counted from here.
    """
    at = ledgers.ledger_key(bank, partition)
    item = ports.table.read([at])[0]
    if item is None or item["runs"] == item.get("forgotten", 0):
        return []
    return [forgotten(bank, ledgers.from_item(item))]


def forgotten(bank: Bank, ledger: ledgers.Ledger) -> Update:
    """The ledger, all of whose runs are forgotten."""
    values: dict[str, Any] = {"at": ledgers.end_of(ledger.runs), "forgotten": ledger.runs, "processed": 0, "held": 0}
    gone = (
        "lease",
        "lease_until",
        "running",
        "whole",
        "job",
        "asked",
        "owes",
        "plan",
        "reset",
        "reset_at",
        "failures",
        "retry_at",
        "error",
    )
    return Update(
        ledgers.ledger_key(bank, ledger.partition),
        set=values,
        add={"edits": 1},
        remove=(*gone, "synced_at", *DUE_ATTRIBUTES),
        when=ledgers.unchanged(ledger, "runs", "edits"),
    )


def clean(ports: Ports, bank: Bank, partition: str, most: int) -> bool:
    """Remove what was forgotten; False when some is left for another call."""
    item = ports.table.read([ledgers.ledger_key(bank, partition)])[0]
    if item is None:
        return True
    ledger = ledgers.from_item(item)
    pk = ledgers.runs_pk(bank, partition)
    end = ledgers.end_of(ledger.forgotten)
    removed = 0
    for kind in ("A#", "O#", "N#"):
        while page := ports.table.query(pk, first=kind, last=kind + end, limit=BATCH, attributes=["id", "run"]).items:
            removed += len(page)
            names = [ledgers.name_key(bank, one["id"]) for one in page if "id" in one]
            counted = [Key(pk, "I#" + one["run"]) for one in page if kind == "N#" and "id" not in one and "run" in one]
            found = ports.table.read([*names, *counted]) if names or counted else []
            known = [one for one in found if one is not None and _of_forgotten(one, ledger)]
            stale: list[Action] = [Delete(Key(one["pk"], one["sk"]), (_same(one),)) for one in known]
            for start in range(0, len(stale), 90):
                ports.table.transact(stale[start : start + 90])
            ports.table.transact([Delete(Key(one["pk"], one["sk"])) for one in page])
            if removed >= most:
                return False
    return _clean_again(ports, bank, partition, ledger)


def _of_forgotten(item: dict[str, object], ledger: ledgers.Ledger) -> bool:
    """Whether an id's record is of something forgotten; it may have been given away anew."""
    if "place" in item:
        return item["partition"] == ledger.partition and int(str(item["place"])[:12]) <= ledger.forgotten
    return int(str(item["number"])) <= ledger.forgotten


def _same(item: dict[str, object]) -> Either:
    return Either((Is("age", "=", item["age"]), Is("pk", "missing")))


def _clean_again(ports: Ports, bank: Bank, partition: str, ledger: ledgers.Ledger) -> bool:
    """The records of what was made again of forgotten messages."""
    from . import made

    for one in list(made.all_of(ports, bank, partition)):
        if one.sk.startswith("Q#") and one.messages and int(max(one.messages)[:12]) <= ledger.forgotten:
            ports.table.write(Delete(made.key_of(bank, partition, one.sk)))
    return True

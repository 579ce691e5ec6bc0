"""Whether what was made of a key's messages is still there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import partitions
from ..bank import Bank
from ..entries import from_item as entry_from
from ..ports import Key, Ports
from . import ledger as ledgers
from . import listing
from . import made as records
from .ledger import Ledger
from .made import Made
from .runs import from_item


def check(ports: Ports, bank: Bank, key: str) -> dict[str, Any]:
    """Whether what was made of a key's messages is there: counts, and what is missing.

    `missing` are entries that were deleted on their own, not those that a summary tells of, or whose message was deleted or
    emptied; `unindexed` entries that can't be found yet.
    """
    ledger = listing.get(ports, bank, key)
    cutoff = bank.cutoff(ports.clock.now())
    made = told = unindexed = 0
    missing = 0
    head_item = ports.table.read([partitions.head_key(bank, ledger.partition)])[0]
    head = partitions.head_from(head_item) if head_item else None
    for record in records.all_of(ports, bank, ledger.partition):
        told += len(record.told)
        items = ports.table.read([partitions.entry_key(bank, ledger.partition, sort) for sort in record.entries])
        gone: list[str] = []
        for number, item in enumerate(items):
            if head is not None and head.forgotten < record.entries[number] <= head.watermark:
                continue
            entry = entry_from(item) if item is not None else None
            if entry is None or not partitions.alive(head, entry, cutoff):
                gone.append(record.told[number] if record.kind == "none" else "")
                continue
            made += 1
            unindexed += not entry.indexed
        followed = _followed(ports, bank, ledger, record, gone) if record.kind == "none" and gone else 0
        told -= followed
        missing += len(gone) - followed
    return {
        "key": key,
        "messages": told,
        "entries": made,
        "missing": missing,
        "unindexed": unindexed,
        "mismatch": bool(missing),
        **listing.summary(ledger),
    }


def _followed(ports: Ports, bank: Bank, ledger: Ledger, record: Made, places: Sequence[str]) -> int:
    """How many of these messages were deleted, emptied, or made into something else since: their entries went with that."""
    pk = ledgers.runs_pk(bank, ledger.partition)
    items = ports.table.read([Key(pk, "N#" + place) for place in places])
    return sum(item is None or from_item(item).blank or item.get("made", record.sk) != record.sk for item in items)

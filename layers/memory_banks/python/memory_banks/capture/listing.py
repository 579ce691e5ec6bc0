"""Looking at captured runs: a key's runs with their messages and state, and all ledgers of a bank."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import cursors, homes
from ..bank import Bank
from ..clock import iso
from ..partitions import HEAD_GROUPS
from ..ports import Item, Ports
from . import ledger as ledgers
from .ledger import Ledger

PAGE_BYTES = 3_500_000
"""Of the texts on one page of runs, about."""


def ledgers_of(ports: Ports, bank: Bank, *, after: tuple[int, str] | None = None) -> Iterator[tuple[tuple[int, str], Ledger]]:
    """Every ledger of a bank, with its position in the walk, after the given one."""
    start, position = after or (0, "")
    for group in range(start, HEAD_GROUPS):
        last: str | None = position if group == start and position else None
        while True:
            page = ports.table.query(ledgers.ledgers_pk(bank, group), after=last, limit=100)
            for item in page.items:
                yield (group, item["sk"]), ledgers.from_item(item)
            if page.after is None:
                break
            last = page.after


def get(ports: Ports, bank: Bank, key: str) -> Ledger:
    """The ledger of a key; one without runs has an empty one."""
    partition, _ = homes.find(ports.table, bank, key)
    item = ports.table.read([ledgers.ledger_key(bank, partition)])[0]
    return ledgers.from_item(item) if item else Ledger(partition, key)


def summary(ledger: Ledger) -> dict[str, Any]:
    """What a list of keys shows of captured runs."""
    return {
        "pending_runs": ledger.pending,
        "processed_messages": ledger.processed,
        "last_sync_at": iso(ledger.synced_at) if ledger.synced_at else None,
    }


def runs(ports: Ports, bank: Bank, key: str, *, limit: int, cursor: str | None) -> dict[str, Any]:
    """A page of a key's runs, oldest first, as the API shows it. Raises `Invalid` for a cursor that is not this bank's."""
    ledger = get(ports, bank, key)
    after = "N#" + ledgers.end_of(ledger.forgotten)
    if cursor is not None:
        view = cursors.read(bank.secret, cursor, "runs")
        after = max(after, "N#" + view["after"]) if view["partition"] == ledger.partition else after
    cutoff = bank.cutoff(ports.clock.now())
    shown: list[dict[str, Any]] = []
    size = 0
    position: str | None = after
    while position is not None:
        page = ports.table.query(ledgers.runs_pk(bank, ledger.partition), after=position, before="N~", limit=400)
        for item in page.items:
            if cutoff is not None and item["captured_at"] <= cutoff:
                continue
            if "text" not in item:
                if len(shown) == limit or size > PAGE_BYTES:
                    last = ledgers.end_of(int(shown[-1]["number"]))
                    view = {"after": last, "partition": ledger.partition}
                    return _page(ledger, shown, cursors.write(bank.secret, "runs", view))
                shown.append(_run(item, ledger))
            elif shown:
                shown[-1]["messages"].append(_message(item, ledger))
                size += 2 * len(item["text"].encode())
        position = page.after
    return _page(ledger, shown, None)


def _page(ledger: Ledger, shown: list[dict[str, Any]], cursor: str | None) -> dict[str, Any]:
    at_work = {"job_id": ledger.running or ledger.job, "error": ledger.error}
    return {"runs": shown, **summary(ledger), **at_work, "next_cursor": cursor}


def _run(item: Item, ledger: Ledger) -> dict[str, Any]:
    number = int(item["sk"][2:])
    return {
        "run_id": item["run"],
        "number": number,
        "user_id": item.get("user_id"),
        "flow_id": item.get("flow_id"),
        "captured_at": iso(item["captured_at"]),
        "state": _state(ledger, ledgers.place_of(number, 0), number),
        "messages": [],
    }


def _state(ledger: Ledger, place: str, number: int) -> str:
    if place <= ledger.at:
        return "processed"
    return "stored" if number > ledger.runs - ledger.held else "pending"


def _message(item: Item, ledger: Ledger) -> dict[str, Any]:
    place = item["sk"][2:]
    state = _state(ledger, place, int(place[:12]))
    return {
        "id": item["id"],
        "sender": item["sender"],
        "name": item.get("name"),
        "text": item["text"],
        "error": item.get("error", False),
        "occurred_at": iso(item["occurred_at"]),
        "version": item["version"],
        "state": "set_aside" if state == "processed" and "failed" in item else state,
        "reason": item.get("failed"),
    }

"""Jobs: pieces of asynchronous work that a user can look at.

A job's item: J#{bank} / {id}, with an id that grows with time. Jobs are kept for 30 days. One that concerns a key has the key as it
was called then, and the partition, which tells what it is called now.
"""

from __future__ import annotations

from typing import Any, Literal

from . import cursors, ids, partitions
from .bank import Bank
from .clock import iso
from .errors import NotFound
from .ports import ConditionFailed, Delete, Is, Item, Key, Ports, Put, Update

Kind = Literal["ingestion", "distillation", "compaction", "export", "rebuild"]
Status = Literal["queued", "running", "completed", "failed", "cancelled"]

KEPT_SECONDS = 30 * 86_400
FINAL = ("completed", "failed", "cancelled")


def key_of(bank_id: str, job_id: str) -> Key:
    """Where a job is."""
    return Key(f"J#{bank_id}", job_id)


def create(ports: Ports, bank: Bank, kind: Kind, **concerns: Any) -> Item:
    """A new queued job; `concerns` says what it is about (key, …). Gives its item."""
    item = new(ports, bank, kind) | {name: value for name, value in concerns.items() if value is not None}
    return ports.table.write(Put(item))


def record_failure(ports: Ports, bank: Bank, kind: Kind, error: str, **concerns: Any) -> None:
    """A job that tells of work that failed for good."""
    now = ports.clock.now()
    item = new(ports, bank, kind) | {"status": "failed", "error": error, "started_at": now, "finished_at": now}
    ports.table.write(Put(item | {name: value for name, value in concerns.items() if value is not None}))


def new(ports: Ports, bank: Bank, kind: Kind) -> Item:
    """The item of a new queued job, to be put into the table."""
    now = ports.clock.now()
    [job_id] = ids.ulids(now, ids.LOWEST, 1, ports.chance)
    key = key_of(bank.id, job_id)
    return {
        "pk": key.pk,
        "sk": key.sk,
        "kind": kind,
        "status": "queued",
        "current": 0,
        "created_at": now,
        "ttl": now // 1000 + KEPT_SECONDS,
    }


def start(ports: Ports, bank_id: str, job_id: str) -> bool:
    """Mark as running; False when it was cancelled or is finished."""
    return _change(ports, bank_id, job_id, {"status": "running", "started_at": ports.clock.now()})


def pause(ports: Ports, bank_id: str, job_id: str, error: str) -> bool:
    """Back to waiting, with the reason; False when it was cancelled."""
    return _change(ports, bank_id, job_id, {"status": "queued", "error": error[:1000]})


def progress(ports: Ports, bank_id: str, job_id: str, current: int, total: int | None = None) -> bool:
    """Tell how far it is; False when it was cancelled."""
    return _change(ports, bank_id, job_id, {"current": current} | ({"total": total} if total is not None else {}))


def finish(ports: Ports, bank_id: str, job_id: str, status: Status = "completed", error: str | None = None) -> bool:
    """End a job; False when it has ended already."""
    changes: dict[str, Any] = {"status": status, "finished_at": ports.clock.now()}
    return _change(ports, bank_id, job_id, changes | ({"error": error[:1000]} if error else {}))


def goes_on(ports: Ports, bank_id: str, job_id: str) -> bool:
    """Whether the job is at work: neither cancelled nor removed."""
    item = ports.table.read([key_of(bank_id, job_id)])[0]
    return item is not None and item["status"] == "running"


def cancel(ports: Ports, bank: Bank, job_id: str) -> Item:
    """Cancel a job that has not ended; one that has stays as it is. Raises `NotFound`."""
    finish(ports, bank.id, job_id, "cancelled")
    return get(ports, bank, job_id)


def _change(ports: Ports, bank_id: str, job_id: str, changes: dict[str, Any]) -> bool:
    alive = tuple(Is("status", "<>", status) for status in FINAL)
    try:
        ports.table.write(Update(key_of(bank_id, job_id), set=changes, when=(Is("pk", "exists"), *alive)))
    except ConditionFailed:
        return False
    return True


def get(ports: Ports, bank: Bank, job_id: str) -> Item:
    """A job of the bank. Raises `NotFound`."""
    item = ports.table.read([key_of(bank.id, job_id)])[0]
    if item is None:
        raise NotFound("no such job")
    return _by_their_keys(ports, bank, [item])[0]


def _by_their_keys(ports: Ports, bank: Bank, items: list[Item]) -> list[Item]:
    """These jobs with their keys as they are called now."""
    named = sorted({item["partition"] for item in items if "partition" in item})
    heads = ports.table.read([partitions.head_key(bank, name) for name in named]) if named else []
    keys = {name: head["key"] for name, head in zip(named, heads, strict=True) if head is not None}
    return [item | {"key": keys[item["partition"]]} if item.get("partition") in keys else item for item in items]


def listed(ports: Ports, bank: Bank, *, limit: int = 100, cursor: str | None = None) -> tuple[list[Item], str | None]:
    """Jobs of a bank, newest first, and the cursor of the next page."""
    before = cursors.read(bank.secret, cursor, "jobs")["before"] if cursor else None
    page = ports.table.query(f"J#{bank.id}", before=before, reverse=True, limit=limit)
    following = cursors.write(bank.secret, "jobs", {"before": page.after}) if page.after else None
    return _by_their_keys(ports, bank, page.items), following


def forget(ports: Ports, bank_id: str, partition: str, until: int) -> None:
    """Remove the jobs that concern a partition and began by the time (ms) `until`; one under way finds itself cancelled."""
    after: str | None = ""
    while after is not None:
        page = ports.table.query(key_of(bank_id, "").pk, after=after, before=ids.at(until + 1), attributes=["partition"])
        for item in page.items:
            if item.get("partition") == partition:
                ports.table.write(Delete(Key(item["pk"], item["sk"])))
        after = page.after


def shown(item: Item) -> dict[str, Any]:
    """A job as the API shows it."""
    times = {name: iso(item[name]) if name in item else None for name in ("created_at", "started_at", "finished_at")}
    return {
        "id": item["sk"],
        "kind": item["kind"],
        "status": item["status"],
        "progress": {"current": item["current"], "total": item.get("total")},
        "error": item.get("error"),
        "key": item.get("key"),
        "mended": item.get("mended"),
        "note": item.get("note"),
        "set_aside": [{"message_id": message, "reason": reason} for message, reason in item.get("set_aside", ())],
        **times,
    }

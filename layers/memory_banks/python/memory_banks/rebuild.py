"""Rebuilding a bank's index from the table while reads and writes go on, also for another mode or model.

One record in the table says how far it is; each step is one transaction on it and on the job, so any step may be repeated,
by a message that comes again or by the sweep:

- *to another index*: the target is registered on the bank's record, so ingestion fills both indexes (`request`); once every
  function that read the bank before is over, the living entries are counted, written to the target (`fill`) and compared with
  it (`compare`); one conditional update makes the target what searches read, and ends the job (`swap`); once every function
  that knew the old index is over, the bank's documents are removed from that (`remove`);
- *in the same index*: everything living is written again, then what does not belong is removed, then the job ends;
- *reconciling* is the comparison alone.

A job that is cancelled, or can't go on, takes the registration back and removes what was written to the target.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from . import backfill, jobs, reconcile
from . import bank as bank_records
from .backfill import Position
from .bank import Bank, Mode, Target
from .errors import Conflict, Invalid, NotFound
from .marking import due
from .ports import (
    Action,
    Check,
    ConditionFailed,
    Delete,
    Either,
    Is,
    Item,
    Key,
    Ports,
    Put,
    QueueUnavailable,
    UnknownModel,
    Update,
)
from .retrying import contended, until_committed

if TYPE_CHECKING:
    from .requests import Rebuild

WAIT_MS = 360_000
"""How long what has read the bank's record may still act on it: longer than any function may run."""

DUE_MS = 1_200_000
"""After how many ms without a step the sweep sends another message; longer than a wait and a function's time."""

MARGIN_MS = 60_000
"""No step begins so shortly before the deadline."""

HOPS = 1_000
"""A chain of messages ends after so many; the sweep begins another, so nothing runs away."""

PASSES = 3
AGAIN_MS = 90_000
"""How often a comparison is made that met documents newer than the table, and the pause before the next: the index remembers
the versions of removed documents for a minute."""

STRIKES = 5
"""How often one message tries to note a step while the bank or the job keeps changing."""

Step = Literal["count", "fill", "compare", "strays", "swap", "remove"]


def key_of(bank_id: str) -> Key:
    """Where the record of a bank's rebuild is: one at a time."""
    return Key(f"V#{bank_id}", "rebuild")


# --------------------------------------------------------------------------------------------------------------------
# Asking for it


def request(ports: Ports, bank: Bank, wanted: Rebuild, *, deadline: int) -> Item:
    """Begin a rebuild, or with `wanted.reconcile` a comparison. Gives the job.

    Raises `Invalid` for a mode or model there is not, `Conflict` while another is under way, `NotFound`, and
    `DatabaseUnavailable` at the deadline (ms).
    """
    mode, target = _wanted(ports, bank, wanted)

    def attempt() -> Item:
        bank_item, running = ports.table.read([bank_records.key_of(bank.account, bank.id), key_of(bank.id)])
        if bank_item is None:
            raise NotFound("There is no such memory bank.", code="memory_bank_not_found")
        if running is not None:
            raise Conflict(f"job {running['job']} rebuilds this bank, or removes what is left of it", code="rebuild_running")
        current = bank_records.from_item(bank_item)
        job = jobs.new(ports, current, "rebuild")
        ports.table.transact(_beginning(ports, current, target or current.reads, mode or current.mode, job, wanted.reconcile))
        return job

    job = until_committed(attempt, ports.clock, ports.chance, deadline)
    announce(ports, bank.account, bank.id, job["sk"])
    return job


def _wanted(ports: Ports, bank: Bank, wanted: Rebuild) -> tuple[Mode | None, Target | None]:
    """The mode and index that are asked for; None where they stay."""
    from . import banks

    chosen = wanted.embedding_model is not None or wanted.dimensions is not None
    if wanted.reconcile and (chosen or wanted.mode is not None):
        raise Invalid(("body", "reconcile"), "reconciling keeps mode and model; leave mode, embedding_model and dimensions out")
    if wanted.mode is None and not chosen:
        return None, None
    mode: Mode = wanted.mode or "custom"
    model = wanted.embedding_model or (bank.embedding_model if mode == "custom" else None)
    return mode, banks.target_of(ports, mode, model, wanted.dimensions)


def _beginning(ports: Ports, bank: Bank, target: Target, mode: Mode, job: Item, reconciles: bool) -> list[Action]:
    now = ports.clock.now()
    elsewhere = target != bank.reads
    as_read = _all_are({name: getattr(bank, name) for name in ("generation", "embedding_model", "dimensions")})
    key = bank_records.key_of(bank.account, bank.id)
    registration: Action = Check(key, as_read)
    if elsewhere:
        registration = Update(key, set=_registration(target), when=(*as_read, Is("also_model", "missing")))
    at = key_of(bank.id)
    record: Item = {
        "pk": at.pk,
        "sk": at.sk,
        "account": bank.account,
        "bank": bank.id,
        "generation": bank.generation,
        "job": job["sk"],
        "step": "count",
        "moves": 0,
        "until": now + WAIT_MS if elsewhere else now,
        "source": [bank.embedding_model, bank.dimensions],
        "target": [target.model, target.dimensions],
        "mode": mode,
        "reconciles": reconciles,
    }
    return [Put(record | _BLANK | due(bank.id, now + DUE_MS), (Is("pk", "missing"),)), Put(job), registration]


_BLANK: dict[str, Any] = {"position": None, "walked": 0, "total": 0, "indexed": 0, "removed": 0, "ahead": 0, "passes": 0}
"""Where a rebuild begins."""


def announce(ports: Ports, account: str, bank_id: str, job_id: str, *, hop: int = 0, delay_ms: int = 0) -> None:
    """Have `compact` go on with it. Its queue, because it hands out one message a time, and no user waits behind it."""
    message = {"account": account, "bank": bank_id, "rebuild": job_id, "hop": hop}
    try:
        ports.compaction.send([message], max(0, -(-delay_ms // 1000)))
    except QueueUnavailable:
        ports.metrics.count("RebuildMessagesLost")


def take_up(ports: Ports, record: Item) -> None:
    """The sweep's part: another message for a record that nobody moved for a while."""
    announce(ports, record["account"], record["bank"], record["job"])


# --------------------------------------------------------------------------------------------------------------------
# One message


def handle(ports: Ports, message: Mapping[str, Any], *, deadline: int) -> None:
    """Go on with a rebuild until about the deadline (ms), then in another message.

    Raises what makes the message come back: `IndexUnavailable`, `ModelUnavailable`, `TableUnavailable`, `Contended`.
    """
    account, bank_id, job_id, hop = message["account"], message["bank"], message["rebuild"], message["hop"]
    stepped = False
    strikes = 0
    while True:
        record, bank_item, job = ports.table.read(
            [key_of(bank_id), bank_records.key_of(account, bank_id), jobs.key_of(bank_id, job_id)]
        )
        if record is None or record["job"] != job_id:
            return
        if hop >= HOPS:
            ports.metrics.count("RebuildChainsCut")
            return
        stopped = record["step"] != "remove" and (bank_item is None or job is None or job["status"] in jobs.FINAL)
        now = ports.clock.now()
        if record["until"] > now and not stopped:
            announce(ports, account, bank_id, job_id, hop=hop + 1, delay_ms=record["until"] - now)
            return
        if stepped and now > deadline - MARGIN_MS:
            announce(ports, account, bank_id, job_id, hop=hop + 1)
            return
        bank = bank_records.from_item(bank_item) if bank_item else None
        try:
            actions = _withdraw(ports, record, bank) if stopped else _step(ports, record, bank, deadline)
            contended(lambda actions=actions: ports.table.transact(actions), ports.clock, ports.chance)  # type: ignore[misc]
        except ConditionFailed:
            if _moved(ports, record):
                # Another message is at work on it.
                return
            strikes += 1
            if strikes >= STRIKES:
                announce(ports, account, bank_id, job_id, hop=hop + 1, delay_ms=AGAIN_MS)
                return
        stepped = True


def _moved(ports: Ports, record: Item) -> bool:
    """Whether somebody else has made a step since the record was read."""
    item = ports.table.read([Key(record["pk"], record["sk"])])[0]
    return item is None or item["moves"] != record["moves"]


def _step(ports: Ports, record: Item, bank: Bank | None, deadline: int) -> list[Action]:
    """Do a piece of the work; gives the transaction that notes it."""
    if bank is None:
        return _remove(ports, record, bank)
    if record["step"] != "remove" and bank.generation != record["generation"]:
        # The source was deleted. What is written since then is in both indexes.
        return _noted(ports, record, _BLANK | {"generation": bank.generation, "step": "count"})
    if record["step"] != "remove" and Target(*record["target"]) not in bank.writes:
        return _failed(ports, record, bank, "the bank's record does not name the rebuild's index any more")
    try:
        match record["step"]:
            case "count":
                return _count(ports, record, bank)
            case "fill":
                return _fill(ports, record, bank)
            case "compare":
                return _compare(ports, record, bank, deadline)
            case "strays":
                return _strays(ports, record, bank, deadline)
            case "swap":
                return _swap(ports, record, bank)
            case _:
                return _remove(ports, record, bank)
    except UnknownModel as error:
        return _failed(ports, record, bank, str(error))


# --------------------------------------------------------------------------------------------------------------------
# The steps: each does its piece and gives the transaction that notes it


def _count(ports: Ports, record: Item, bank: Bank) -> list[Action]:
    walked = backfill.count(ports, bank, record["position"])
    step: Step = "count" if walked.position else "compare" if record["reconciles"] else "fill"
    return _noted(ports, record, {"step": step, "position": walked.position, "total": record["total"] + walked.entries})


def _fill(ports: Ports, record: Item, bank: Bank) -> list[Action]:
    walked = backfill.fill(ports, bank, Target(*record["target"]), record["position"])
    step: Step = "fill" if walked.position else "compare"
    return _noted(ports, record, {"step": step, "position": walked.position, "walked": record["walked"] + walked.entries})


def _compare(ports: Ports, record: Item, bank: Bank, deadline: int) -> list[Action]:
    target = Target(*record["target"])
    mended = reconcile.Mended()
    position: Position | None = record["position"]
    for number, (partition, _) in enumerate(backfill.rest(ports, bank, position), start=1):
        mended = mended.plus(reconcile.partition(ports, bank, target, partition, deadline=deadline - MARGIN_MS))
        if mended.done:
            position = [partition, None]
        enough = mended.entries + mended.removed >= backfill.BATCH * 10 or mended.indexed >= backfill.BATCH
        if not mended.done or enough or number >= backfill.KEYS or ports.clock.now() > deadline - MARGIN_MS:
            return _noted(ports, record, _sums(record, mended) | {"position": position})
    return _noted(ports, record, _sums(record, mended) | {"step": "strays", "position": None})


def _sums(record: Item, mended: reconcile.Mended) -> dict[str, Any]:
    sums = {name: record[name] + getattr(mended, name) for name in ("indexed", "removed", "ahead")}
    return sums | ({"walked": record["walked"] + mended.entries} if record["reconciles"] and record["passes"] == 0 else {})


def _strays(ports: Ports, record: Item, bank: Bank, deadline: int) -> list[Action]:
    keys, whole = reconcile.strays(ports, bank, Target(*record["target"]), deadline=deadline)
    changes: dict[str, Any] = {"removed": record["removed"] + keys, "step": "swap"}
    if not whole:
        changes["remark"] = "there were too many documents to look for those of unknown keys"
    if record["ahead"] and record["passes"] + 1 < PASSES:
        changes |= {"step": "compare", "ahead": 0, "passes": record["passes"] + 1, "until": ports.clock.now() + AGAIN_MS}
    elif record["ahead"]:
        changes["remark"] = f"the index refuses {record['ahead']} documents because it had newer ones; reconcile again"
    return _noted(ports, record, changes)


def _swap(ports: Ports, record: Item, bank: Bank) -> list[Action]:
    """One conditional update: from now on searches read the target. The job ends with it, so it can't be cancelled after."""
    now = ports.clock.now()
    target, source = Target(*record["target"]), Target(*record["source"])
    end = _job_ends(ports, record, "completed", record.get("remark"))
    forget = Delete(_key(record), _unmoved(record))
    if target == source and record["mode"] == bank.mode:
        return [forget, end]
    unchanged = {"generation": bank.generation, "embedding_model": source.model, "dimensions": source.dimensions}
    registered = {} if target == source else _registration(target)
    swap = Update(
        bank_records.key_of(bank.account, bank.id),
        set={"embedding_model": target.model, "dimensions": target.dimensions, "mode": record["mode"], "updated_at": now},
        add={"version": 1},
        remove=tuple(registered),
        when=_all_are(unchanged | registered),
    )
    if target == source:
        return [swap, forget, end]
    return [swap, _move(ports, record, {"step": "remove", "drop": record["source"], "until": now + WAIT_MS}), end]


def _registration(target: Target) -> dict[str, Any]:
    """What the bank's record says while it is written to this index, too."""
    return {"also_model": target.model, "also_dimensions": target.dimensions}


def _all_are(values: Mapping[str, Any]) -> tuple[Is, ...]:
    return tuple(Is(name, "=", value) for name, value in values.items())


def _remove(ports: Ports, record: Item, bank: Bank | None) -> list[Action]:
    """The bank's documents leave the index that it does not use any more."""
    drop = Target(*record["drop"])
    if bank is None or drop not in bank.writes:
        for generation in sorted({record["generation"], bank.generation if bank else record["generation"]}):
            ports.index.delete_partition(drop.index, record["bank"], generation, None)
    return [Delete(_key(record), _unmoved(record))]


# --------------------------------------------------------------------------------------------------------------------
# When it does not come to an end


def _failed(ports: Ports, record: Item, bank: Bank, reason: str) -> list[Action]:
    return [*_withdraw(ports, record, bank), _job_ends(ports, record, "failed", reason)]


def _withdraw(ports: Ports, record: Item, bank: Bank | None) -> list[Action]:
    """Take the registration back, and have removed what was written to the target."""
    if record["target"] == record["source"]:
        actions: list[Action] = [Delete(_key(record), _unmoved(record))]
    else:
        change = {"step": "remove", "drop": record["target"], "until": ports.clock.now() + WAIT_MS}
        actions = [_move(ports, record, change)]
        registered = _registration(Target(*record["target"]))
        if bank is not None and (bank.also_model, bank.also_dimensions) == tuple(registered.values()):
            key = bank_records.key_of(bank.account, bank.id)
            actions.append(Update(key, remove=tuple(registered), when=_all_are(registered)))
    if bank is None:
        with suppress(ConditionFailed):
            ports.table.write(_job_ends(ports, record, "cancelled", "the bank was deleted"))
    return actions


# --------------------------------------------------------------------------------------------------------------------
# Noting


def _key(record: Item) -> Key:
    return Key(record["pk"], record["sk"])


def _unmoved(record: Item) -> tuple[Is, ...]:
    return (Is("moves", "=", record["moves"]), Is("job", "=", record["job"]))


def _move(ports: Ports, record: Item, changes: Mapping[str, Any]) -> Update:
    """The record after a step, if nobody else made one."""
    marks = due(record["bank"], max(changes.get("until", 0), ports.clock.now()) + DUE_MS)
    return Update(_key(record), set={**changes, **marks}, add={"moves": 1}, when=_unmoved(record))


def _noted(ports: Ports, record: Item, changes: Mapping[str, Any]) -> list[Action]:
    """A step, on the record and in the job; not when the job was cancelled."""
    after = {**record, **changes}
    shown = {
        "status": "running",
        "current": min(after["walked"], after["total"]),
        "total": after["total"],
        "mended": _mended(after),
    }
    if record["moves"] == 0:
        shown["started_at"] = ports.clock.now()
    return [_move(ports, record, changes), Update(jobs.key_of(record["bank"], record["job"]), set=shown, when=_going_on())]


def _job_ends(ports: Ports, record: Item, status: jobs.Status, error: str | None) -> Update:
    changes: dict[str, Any] = {"status": status, "finished_at": ports.clock.now(), "mended": _mended(record)}
    if status == "completed":
        changes |= {"current": record["walked"], "total": record["walked"]}
    if error:
        changes["error"] = error[:1000]
    return Update(jobs.key_of(record["bank"], record["job"]), set=changes, when=_going_on())


def _mended(record: Item) -> dict[str, int]:
    return {"indexed": record["indexed"], "removed": record["removed"]}


def _going_on() -> tuple[Is | Either, ...]:
    return (Is("pk", "exists"), *(Is("status", "<>", status) for status in jobs.FINAL))

"""When captured runs are distilled: a threshold of them at once, fewer when the key was quiet, and never later than a limit.

Each run sends a message that is delayed by the quiet time and carries the run's number; only the message of the last run
finds nothing newer, so one distillation follows three quick turns. The ledger is due in the table as well: a message that
is lost, and a wait longer than a queue can hold, are the sweep's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from .. import homes, jobs
from ..bank import Bank
from ..errors import Conflict
from ..marking import due
from ..ports import ConditionFailed, Is, Item, Key, Ports, Put, QueueUnavailable, Update
from ..retrying import until_committed
from . import ledger as ledgers
from .ledger import Ledger
from .settings import CaptureSettings

LONGEST_DELAY = 900
"""Seconds that a queue can hold a message back."""

GRACE = 120_000
"""How long after its time a ledger is due in the sweep, ms: until then the queue's message does it."""


def wait(ledger: Ledger, settings: CaptureSettings, now: int) -> int | None:
    """In how many ms the waiting runs are to be distilled; 0 is now, None where nothing waits or nothing fires by itself."""
    if ledger.asked:
        return 0
    if not settings.auto_capture or ledger.pending == 0 or ledger.job is None:
        # Without a job it was cancelled: the next run begins another.
        return None
    if ledger.pending >= settings.threshold:
        return 0
    until = min(ledger.last_at + settings.idle_seconds * 1000, ledger.first_at + settings.max_wait_seconds * 1000)
    return max(until - now, 0)


def marks(partition: str, waits: int, now: int) -> dict[str, str | int]:
    """The attributes that make a ledger due in the sweep, for runs that wait so many ms."""
    return due("L" + partition, now + waits + GRACE)


def message_of(bank: Bank, partition: str, number: int | None = None) -> dict[str, Any]:
    """The message that has a key looked at; with a run's number it says: if this is still the last one."""
    message = {"account": bank.account, "bank": bank.id, "generation": bank.generation, "partition": partition}
    return message | ({"number": number} if number is not None else {})


def send(ports: Ports, messages: Sequence[Mapping[str, Any]], waits: int = 0) -> None:
    """To the distillation queue, to be handed out in `waits` ms. What it can't hold or does not take is the sweep's."""
    delay = -(-waits // 1000)
    if delay > LONGEST_DELAY:
        return
    try:
        ports.distillation.send(messages, delay)
    except QueueUnavailable:
        ports.metrics.count("DistillationMessagesLost", len(messages))


def fires(ledger: Ledger, settings: CaptureSettings, message: Mapping[str, Any], now: int) -> bool:
    """Whether the message that came is the one to act on."""
    waits = wait(ledger, settings, now)
    if waits is None:
        return False
    # The message of the last run comes when the quiet time is over by the queue's clock, whatever ours says.
    return waits == 0 or message.get("number") == ledger.runs


def flush(ports: Ports, bank: Bank, key: str, *, deadline: int) -> Item:
    """Have everything that waits under a key distilled now, runs that were only stored included. Gives the job that does it.

    A key without runs gives a job that finds nothing. Raises `Conflict` for a bank that captures nothing, and
    `DatabaseUnavailable`.
    """
    if bank.capture is None:
        raise Conflict("The bank captures no runs; give it capture settings first.", code="capture_off")
    return _ask(ports, bank, homes.find(ports.table, bank, key)[0], key, {}, deadline)


def regenerate(ports: Ports, bank: Bank, key: str, *, deadline: int) -> Item:
    """Have all that was made of a key's messages removed, and made again from them. Gives the job.

    Dying anywhere the job goes on where it was; nothing is doubled. What was compacted stays, as the summary tells it. Raises
    as `flush`.
    """
    if bank.capture is None:
        raise Conflict("The bank captures no runs; give it capture settings first.", code="capture_off")
    return _ask(ports, bank, homes.find(ports.table, bank, key)[0], key, {"reset": True}, deadline)


def wake(ports: Ports, bank: Bank, ledger: Ledger, *, deadline: int) -> None:
    """Have a key looked at by settings that have changed: a backlog is distilled at once, what waits when it is time."""
    settings = bank.captures
    if settings is None:
        return
    if ledger.held and settings.auto_capture:
        _ask(ports, bank, ledger.partition, ledger.key, {"held": 0}, deadline)
        return
    now = ports.clock.now()
    waits = 0 if ledger.owes or ledger.running or ledger.reset else wait(ledger, settings, now)
    if waits is not None:
        with suppress(ConditionFailed):
            at, unchanged = ledgers.ledger_key(bank, ledger.partition), ledgers.unchanged(ledger, "runs", "job", "lease")
            ports.table.write(Update(at, set=marks(ledger.partition, waits, now), when=unchanged))
        send(ports, [message_of(bank, ledger.partition, ledger.runs)], waits)


def _ask(ports: Ports, bank: Bank, partition: str, key: str, changes: Mapping[str, Any], deadline: int) -> Item:
    at = ledgers.ledger_key(bank, partition)

    def attempt() -> Item:
        found = ports.table.read([at])[0]
        now = ports.clock.now()
        fresh = jobs.new(ports, bank, "distillation") | {"key": key, "partition": partition}
        if found is None:
            done = {"status": "completed", "started_at": now, "finished_at": now, "note": "there are no runs under this key"}
            return ports.table.write(Put(fresh | done))
        ledger = ledgers.from_item(found)
        waiting = ports.table.read([jobs.key_of(bank.id, ledger.job)])[0] if ledger.job else None
        job = waiting if waiting is not None and waiting["status"] not in jobs.FINAL else fresh
        values = {**changes, "reset": job["sk"]} if "reset" in changes else dict(changes)
        update = Update(
            at,
            set={"job": job["sk"], "asked": True} | values | marks(partition, 0, now),
            remove=("retry_at",),
            when=ledgers.unchanged(ledger, "job"),
        )
        ports.table.transact([update, *([Put(job)] if job is fresh else [])])
        return job

    job = until_committed(attempt, ports.clock, ports.chance, deadline)
    send(ports, [message_of(bank, partition)])
    return job


def cancelled(ports: Ports, bank: Bank, job: Item) -> None:
    """What is left to do when a distillation was cancelled: the next run gets a new job. The runs stay, waiting."""
    if "partition" not in job:
        return
    partition = job["partition"]
    with suppress(ConditionFailed):
        ports.table.write(Update(ledgers.ledger_key(bank, partition), remove=("job", "asked"), when=(Is("job", "=", job["sk"]),)))


# --------------------------------------------------------------------------------------------------------------------
# A whole bank


def walk_key(bank: Bank) -> Key:
    """Where it is noted that the ledgers of a bank are to be looked at."""
    return Key(f"O#{bank.id}", "walk")


def walk_record(bank: Bank, at: int) -> Put:
    """The record that the capture settings changed: every waiting run is looked at by them."""
    key = walk_key(bank)
    item: Item = {"pk": key.pk, "sk": key.sk, "account": bank.account, "bank": bank.id, "version": bank.version}
    return Put(item | due(key.pk, at + GRACE))


def walk_message(bank: Bank) -> dict[str, Any]:
    """The message that has all ledgers of a bank looked at."""
    return {"account": bank.account, "bank": bank.id, "walk": bank.version}

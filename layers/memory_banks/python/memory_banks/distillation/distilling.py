"""One message of the distillation queue: what waits under a key is distilled, batch after batch, each message exactly once.

1. take the lease on the ledger, for a job; whoever does not get it does nothing, and what arrives meanwhile is in the next;
2. follow up messages that were edited, deleted or are tried again (`following`);
3. read the next batch of messages, and `edits` before them;
4. distil: call the model, where there is one;
5. commit in one transaction what was made, its record, the job's progress, and the ledger's new place, if lease, place and
   `edits` are those read;
6. go on with 3 until nothing waits; then let go of the lease, and have the next distillation start when it is due.

Dying before step 5 commits leaves the batch waiting; dying after it leaves it done. A batch that fails is halved until the
message that does it is found; it is set aside, named in the job, and the rest goes on. A model or an index that can't be
reached is a pause: nothing is set aside, and the same job goes on later.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .. import bank as banks
from .. import jobs
from ..bank import Bank
from ..capture import ledger as ledgers
from ..capture import trigger
from ..capture.ledger import LEASE_MS, Ledger
from ..capture.settings import CaptureSettings
from ..errors import DatabaseUnavailable, NotFound
from ..marking import DUE_ATTRIBUTES
from ..ports import (
    Action,
    BlobsUnavailable,
    ConditionFailed,
    Contended,
    Delete,
    Either,
    IndexUnavailable,
    Is,
    Item,
    Key,
    ModelError,
    Ports,
    Put,
    Update,
)
from ..retrying import Superseded, contended
from . import following
from .batches import Batches, Stopped

FIRST_BACKOFF, LONGEST_BACKOFF = 30_000, 3_600_000
"""After the n-th failure in a row the same job is tried again FIRST_BACKOFF × 2ⁿ⁻¹ ms later, at most the longest."""

TRIES = 8
"""Failures in a row after which the job has failed. Its messages stay waiting: the sweep begins another in an hour."""

HOPS = 1_000
"""How many messages in a row go on with a key's work before it is left to the sweep."""

MARGIN = 30_000
"""What is left of the function's time, ms, when no further batch is begun."""


def handle(ports: Ports, message: Mapping[str, Any], *, deadline: int) -> None:
    """Do what one message of the distillation queue asks, until about the deadline (ms). Repeating it changes nothing."""
    bank_key = banks.key_of(message["account"], message["bank"])
    if "walk" in message:
        _walk(ports, ports.table.read([bank_key])[0], message, deadline)
        return
    named = banks.stand_in(message["account"], message["bank"], message["generation"])
    item, found = ports.table.read([bank_key, ledgers.ledger_key(named, message["partition"])])
    if found is None:
        return
    ledger = ledgers.from_item(found)
    if item is None or item["generation"] != message["generation"]:
        for job in filter(None, (ledger.job, ledger.running)):
            jobs.finish(ports, message["bank"], job, "cancelled", "the source was deleted")
        return
    bank = banks.from_item(item)
    settings = bank.captures
    now = ports.clock.now()
    if settings is None:
        # What is to be done waits for new settings, which have every ledger looked at.
        _unmark(ports, found)
        return
    if ledger.retry_at > now:
        return
    takes = trigger.fires(ledger, settings, message, now) or ledger.running is not None
    if not (takes or ledger.owes or ledger.reset):
        if "due_at" in found and ledger.lease is None and trigger.wait(ledger, settings, now) is None:
            # Nothing waits: the one who let go of the lease died before it took the mark away.
            _unmark(ports, found)
        return
    _Distillation(ports, bank, settings, deadline, message.get("hops", 0)).run(ledger, takes=takes)


def _unmark(ports: Ports, found: Item) -> None:
    """A ledger as it was found is due no more."""
    if "due_at" in found:
        unchanged = ledgers.unchanged(ledgers.from_item(found), "runs", "job", "asked", "owes", "lease")
        with suppress(ConditionFailed):
            at = Key(found["pk"], found["sk"])
            ports.table.write(Update(at, remove=DUE_ATTRIBUTES, when=(*unchanged, Is("due_at", "=", found["due_at"]))))


def take_up(ports: Ports, item: Item) -> None:
    """Have a ledger looked at that is due in the sweep."""
    _, bank_id, generation, _ = item["pk"].split("#")
    named = banks.stand_in(item["account"], bank_id, int(generation))
    ports.distillation.send([trigger.message_of(named, item["sk"])])


class _Distillation:
    """One lease's work."""

    def __init__(self, ports: Ports, bank: Bank, settings: CaptureSettings, deadline: int, hops: int) -> None:
        self._ports, self._bank, self._settings = ports, bank, settings
        self._deadline, self._hops = deadline, hops
        self._token = f"{ports.chance.getrandbits(128):032x}"

    def run(self, seen: Ledger, *, takes: bool) -> None:
        """Take the lease and work; `takes`: what waits is distilled, not only what is owed."""
        ledger = self._lease(seen, takes)
        if ledger is None or ledger.running is None:
            return
        job = ledger.running
        try:
            if not self._given_up(ledger):
                self._release(ledger, again=True, keep=job)
                return
            if not self._start(ledger, job):
                # Cancelled, or removed with its key: what waits stays, for the next run's job or a flush.
                self._release(ledger, again=False)
                return
            batches = Batches(self._ports, self._bank, self._settings, ledger, self._token, job, self._deadline - MARGIN)
            done = batches.work(takes=takes)
        except Stopped:
            self._release(ledger, again=False)
            return
        except (Superseded, NotFound):
            self._lost(ledger, job)
            return
        except (ModelError, IndexUnavailable, BlobsUnavailable, DatabaseUnavailable, Contended) as error:
            self._fail(ledger, job, str(error) or type(error).__name__)
            return
        if not done:
            self._release(ledger, again=True, keep=job)
            return
        status: jobs.Status = "failed" if batches.aside and not batches.told else "completed"
        reason = "; ".join(f"message {message}: {why}" for message, why in batches.aside[:20]) or None
        jobs.finish(self._ports, self._bank.id, job, status, reason)
        self._ports.metrics.count("Distillations")
        self._release(ledger, again=False)

    # ----------------------------------------------------------------------------------------------------------------

    def _lease(self, seen: Ledger, takes: bool) -> Ledger | None:
        """The ledger under our lease, with the job that is at work; None when another has it."""
        now = self._ports.clock.now()
        resumed = seen.running is not None
        fresh: Item | None = None
        job = seen.running or (seen.job if takes or seen.reset else None)
        if job is None and seen.reset is not None and self._was_cancelled(seen.reset):
            job = seen.reset
        if job is None:
            fresh = jobs.new(self._ports, self._bank, "distillation") | {"key": seen.key, "partition": seen.partition}
            job = fresh["sk"]
        at = ledgers.ledger_key(self._bank, seen.partition)
        values: dict[str, Any] = {"lease": self._token, "lease_until": now + LEASE_MS, "running": job}
        values |= {"whole": True} if seen.asked and not resumed else {}
        lease = Update(
            at,
            set=values | trigger.marks(seen.partition, LEASE_MS, now),
            # What an earlier one left is done first; what waits has its own turn then.
            remove=("job", "asked") if not resumed and (takes or seen.reset) else (),
            when=(
                *ledgers.unchanged(seen, "job", "running", "asked"),
                Either((Is("lease", "missing"), Is("lease_until", "<=", now))),
            ),
        )
        try:
            return self._taken(lease, fresh)
        except ConditionFailed:
            again = self._ports.table.read([at])[0]
            if again is not None and again.get("lease") == self._token:
                # It took effect before: the answer was lost.
                return ledgers.from_item(again)
            if again is None or again.get("lease_until", 0) > now:
                return None
            # Another run or request came in between: look at it as it is now. Or what was to be done was cancelled.
            changed = ledgers.from_item(again)
            left = changed.job or changed.asked or changed.running or changed.owes or changed.reset
            return self._lease(changed, takes) if changed != seen and left else None

    def _taken(self, lease: Update, fresh: Item | None) -> Ledger | None:
        """The ledger once the lease is taken, with a job that is new if there is one. Raises `ConditionFailed`."""
        table, clock, chance = self._ports.table, self._ports.clock, self._ports.chance
        if fresh is None:
            return ledgers.from_item(contended(lambda: table.write(lease), clock, chance))
        actions: list[Action] = [lease, Put(fresh)]
        contended(lambda: table.transact(actions), clock, chance)
        found = table.read([lease.key])[0]
        ledger = ledgers.from_item(found) if found else None
        return ledger if ledger is not None and ledger.lease == self._token else None

    def _lost(self, ledger: Ledger, job: str) -> None:
        """Something that was to be unchanged has changed. What is still ours goes on later; what another has is theirs."""
        named = [ledgers.ledger_key(self._bank, ledger.partition), banks.key_of(self._bank.account, self._bank.id)]
        item, bank = self._ports.table.read(named)
        if item is None or bank is None or bank["generation"] != self._bank.generation or item.get("running") != job:
            jobs.finish(self._ports, self._bank.id, job, "cancelled", "the messages were forgotten meanwhile")
        elif item.get("lease") == self._token:
            self._fail(ledger, job, "others changed the same again and again")

    def _given_up(self, ledger: Ledger) -> bool:
        """Give up a regeneration that was cancelled; False when the time was over before that was done."""
        if ledger.reset is None or not self._was_cancelled(ledger.reset):
            return True
        return following.give_up_reset(self._ports, self._bank, ledger, self._token, deadline=self._deadline - MARGIN)

    def _was_cancelled(self, job: str) -> bool:
        item = self._ports.table.read([jobs.key_of(self._bank.id, job)])[0]
        return item is not None and item["status"] == "cancelled"

    def _start(self, ledger: Ledger, job: str) -> bool:
        """Mark the job as running; False when it was cancelled. One that is not there, its key being forgotten, is made anew."""
        if jobs.start(self._ports, self._bank.id, job):
            return True
        key = jobs.key_of(self._bank.id, job)
        if self._ports.table.read([key])[0] is not None:
            return False
        fresh = jobs.new(self._ports, self._bank, "distillation") | {"sk": job}
        fresh |= {"key": ledger.key, "partition": ledger.partition}
        with suppress(ConditionFailed):
            self._ports.table.write(Put(fresh, (Is("pk", "missing"),)))
        return jobs.start(self._ports, self._bank.id, job)

    def _release(self, ledger: Ledger, *, again: bool, keep: str | None = None) -> None:
        """Let go of the lease; what came meanwhile gets its message. `keep`: the job that goes on in another message."""
        at = ledgers.ledger_key(self._bank, ledger.partition)
        gone = ["lease", "lease_until", "failures", "retry_at", "error"] + ([] if keep else ["running", "whole"])
        try:
            item = self._ports.table.write(Update(at, remove=tuple(gone), when=(Is("lease", "=", self._token),)))
        except ConditionFailed:
            return
        after = ledgers.from_item(item)
        if not again and after.job is not None and after.pending == 0 and not (after.asked or after.held or after.reset):
            after = self._ended(after, after.job)
        later = trigger.wait(after, self._settings, self._ports.clock.now())
        self._arrange(after, 0 if again or after.owes or after.reset else later)

    def _ended(self, ledger: Ledger, job: str) -> Ledger:
        """End the job of runs that came during a pause and were distilled with those before them."""
        at = ledgers.ledger_key(self._bank, ledger.partition)
        try:
            unchanged = ledgers.unchanged(ledger, "runs", "job", "asked", "lease", "running")
            item = self._ports.table.write(Update(at, remove=("job",), when=unchanged))
        except ConditionFailed:
            return ledger
        contended(lambda: jobs.finish(self._ports, self._bank.id, job), self._ports.clock, self._ports.chance)
        return ledgers.from_item(item)

    def _arrange(self, ledger: Ledger, waits: int | None) -> None:
        """Have the ledger looked at in so many ms; None: when the next run comes."""
        now = self._ports.clock.now()
        unchanged = ledgers.unchanged(ledger, "runs", "job", "asked", "owes", "lease")
        at = ledgers.ledger_key(self._bank, ledger.partition)
        if waits is None:
            with suppress(ConditionFailed):
                self._ports.table.write(Update(at, remove=DUE_ATTRIBUTES, when=unchanged))
            return
        with suppress(ConditionFailed):
            self._ports.table.write(Update(at, set=trigger.marks(ledger.partition, waits, now), when=unchanged))
        hops = 0 if waits else self._hops + 1
        if hops > HOPS:
            # The sweep goes on: work that never ends must not keep a function busy.
            self._ports.metrics.count("DistillationChainsCut")
            return
        message = trigger.message_of(self._bank, ledger.partition, ledger.runs)
        trigger.send(self._ports, [message | {"hops": hops} if hops else message], waits)

    def _fail(self, ledger: Ledger, job: str, reason: str) -> None:
        """A pause: the same job goes on later, until it has failed too often."""
        now = self._ports.clock.now()
        failures = ledger.failures + 1
        over = failures >= TRIES
        back = LONGEST_BACKOFF if over else min(FIRST_BACKOFF * 2 ** (failures - 1), LONGEST_BACKOFF)
        at = ledgers.ledger_key(self._bank, ledger.partition)
        values: dict[str, Any] = {"failures": 0 if over else failures, "retry_at": now + back, "error": reason[:500]}
        gone = ["lease", "lease_until"] + (["running", "whole"] if over else [])
        if over:
            jobs.finish(self._ports, self._bank.id, job, "failed", reason)
            values["asked"] = True
        else:
            jobs.pause(self._ports, self._bank.id, job, reason)
        self._ports.metrics.count("DistillationsFailed" if over else "DistillationsPaused")
        with suppress(ConditionFailed):
            marks = trigger.marks(ledger.partition, back, now)
            self._ports.table.write(Update(at, set=values | marks, remove=tuple(gone), when=(Is("lease", "=", self._token),)))
            trigger.send(self._ports, [trigger.message_of(self._bank, ledger.partition)], back + 1_000)


# --------------------------------------------------------------------------------------------------------------------
# A whole bank


def _walk(ports: Ports, item: Item | None, message: Mapping[str, Any], deadline: int) -> None:
    """Look at every ledger of a bank whose capture settings have changed; go on in another message."""
    from ..capture.listing import ledgers_of

    if item is None:
        return
    bank = banks.from_item(item)
    start = tuple(message["after"]) if message.get("after") else None
    for position, ledger in ledgers_of(ports, bank, after=start):
        trigger.wake(ports, bank, ledger, deadline=deadline)
        if ports.clock.now() > deadline - MARGIN:
            ports.distillation.send([{**message, "after": position}])
            return
    with suppress(ConditionFailed):
        ports.table.write(Delete(trigger.walk_key(bank), (Is("version", "<=", message["walk"]),)))

"""Compaction: the oldest entries of a partition give way to one summary, which exists before anything is deleted.

The protocol is the design's (six steps; `tests/faults/test_partition_protocol.py` shows why each is needed):

1. take the lease on the head; whoever does not get it does nothing;
2. choose P, the last ULID to replace;
3. raise every shard's floor to P, so that nothing can land at or below it any more;
4. read the head's `edits`, then the entries up to P;
5. call the model;
6. commit on the head, if watermark, lease, `edits` and the bank's settings are those read: watermark = P, the counters'
   correction, the summary, and the clean-up record.

Dying before step 6 leaves every entry as it was, and the head marked as due; dying after it leaves a clean-up record, and the
mark, which goes only when nothing more is to be compacted (`_settle`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from . import bank as banks
from . import chunking, cleaning, deletion, entries, homes, ids, jobs, loading, partitions, summarising, writing
from .bank import Bank
from .entries import SUMMARY_TAG, Entry, Replaces
from .errors import BadRequest
from .marking import DUE_ATTRIBUTES, due
from .partitions import Counters, Head
from .ports import (
    Action,
    Check,
    ConditionFailed,
    Contended,
    Delete,
    Either,
    Is,
    Item,
    Key,
    ModelError,
    Ports,
    Put,
    QueueUnavailable,
    Update,
)
from .retrying import contended

LEASE_MS = 360_000
"""How long a lease holds: longer than the function may run."""

ASKED_DUE = 300_000
"""After how many ms the sweep asks again for a compaction that was asked for."""

CLEANUP_DELAY = loading.VIEW_LIFE + 60_000
"""When the replaced entries are removed: no Load that saw them is under way any more."""

FIRST_BACKOFF, LONGEST_BACKOFF = 60_000, 6 * 3_600_000
"""The first failure may be retried at once; the n-th after FIRST_BACKOFF × 2ⁿ⁻² ms, at most the longest."""

SMALLEST_SUMMARY = 64
"""Tokens a summary may have however little it replaces; it is smaller than that in any case."""

Outcome = Literal["compacted", "nothing", "busy", "failed", "superseded"]


class Plan(NamedTuple):
    """What a compaction is to replace: everything up to this ULID."""

    through: str
    entries: int


def exceeded(bank: Bank, counters: Counters) -> bool:
    """Whether a threshold is exceeded: strictly more."""
    return bool(
        (bank.max_turns and counters.entries > bank.max_turns) or (bank.max_size_tokens and counters.tokens > bank.max_size_tokens)
    )


# --------------------------------------------------------------------------------------------------------------------
# Asking for it


def ask_if_exceeded(ports: Ports, bank: Bank, partition: str) -> bool:
    """Make a partition that is over a threshold due, and tell `compact`; one strong read when it is not over.

    Whoever finds it due already does not tell again, unless an earlier try failed and its back-off is over, but leaves word
    (`asked`): a compaction that counted before may be about to take the due mark away.
    """
    key = partitions.head_key(bank, partition)
    while True:
        found = partitions.read_all(ports.table, bank, partition)
        if found is None or not exceeded(bank, partitions.count(*found)):
            return False
        head = found[0]
        now = ports.clock.now()
        rested = head.retry_at <= now
        unasked = Is("due_pk", "missing")
        again = rested and head.failures > 0
        if head.due_at is None or again:
            when = Either((unasked, Is("failures", ">", 0))) if again else unasked
            with suppress(ConditionFailed):
                marks = due(partition, max(now + ASKED_DUE, head.retry_at))
                ports.table.write(Update(key, set=marks, when=(Is("pk", "exists"), when)))
                if rested:
                    send(ports, [message_of(bank, partition)])
                return rested
        elif head.asked:
            return False
        with suppress(ConditionFailed):
            ports.table.write(Update(key, set={"asked": True}, when=(Is("due_pk", "exists"),)))
            return False


def message_of(bank: Bank, partition: str, job: str | None = None) -> dict[str, Any]:
    """The message that makes `compact` look at a partition."""
    message = {"account": bank.account, "bank": bank.id, "generation": bank.generation, "partition": partition}
    return message | ({"job": job} if job else {})


def send(ports: Ports, messages: Sequence[Mapping[str, Any]]) -> None:
    """To the compaction queue. What is not taken is due in the table all the same."""
    try:
        ports.compaction.send(messages)
    except QueueUnavailable:
        ports.metrics.count("CompactionMessagesLost", len(messages))


def request(ports: Ports, bank: Bank, key: str | None = None) -> Item:
    """Compact on demand: one key, or every key of the bank. Gives the job.

    Goes down to half the threshold, exceeded or not, and does not wait for a back-off. Raises `BadRequest` where the bank
    has no threshold.
    """
    if not bank.compacts:
        raise BadRequest("the bank has neither max_turns nor max_size_tokens, so nothing is ever too much", code="no_threshold")
    partition = homes.find(ports.table, bank, key)[0] if key is not None else None
    job = jobs.create(ports, bank, "compaction", key=key, partition=partition)
    message = message_of(bank, partition, job["sk"]) if partition is not None else walk_message(bank, job["sk"])
    try:
        ports.compaction.send([message])
    except QueueUnavailable:
        jobs.finish(ports, bank.id, job["sk"], "failed", "the queue did not take the job; try again")
        return jobs.get(ports, bank, job["sk"])
    return job


def walk_message(bank: Bank, job: str | None = None, after: tuple[int, str] | None = None) -> dict[str, Any]:
    """The message that makes `compact` walk the keys of a bank, from a position on."""
    message: dict[str, Any] = {"account": bank.account, "bank": bank.id, "generation": bank.generation, "walk": after}
    return message | {"version": bank.version} | ({"job": job} if job else {})


def walk_record(bank: Bank, at: int) -> Put:
    """The due record of a bank whose thresholds have changed: its partitions are to be looked at, with no write needed."""
    key = walk_key(bank)
    item: Item = {"pk": key.pk, "sk": key.sk, "account": bank.account, "bank": bank.id, "version": bank.version}
    return Put(item | due(bank.id, at))


def walk_key(bank: Bank) -> Key:
    """Where that record is."""
    return Key(f"W#{bank.id}", "thresholds")


# --------------------------------------------------------------------------------------------------------------------
# One message of the compaction queue


def handle(ports: Ports, message: Mapping[str, Any], *, deadline: int) -> None:
    """Do what one message of the compaction queue asks, until about the deadline (ms)."""
    if "rebuild" in message:
        from . import rebuild

        rebuild.handle(ports, message, deadline=deadline)
        return
    item = ports.table.read([banks.key_of(message["account"], message["bank"])])[0]
    job = message.get("job")
    if item is None or item["generation"] != message["generation"]:
        if job:
            jobs.finish(ports, message["bank"], job, "cancelled", "the source was deleted")
        return
    bank = banks.from_item(item)
    if job and not jobs.start(ports, bank.id, job):
        return
    if "walk" in message:
        _walk(ports, bank, message, deadline)
        return
    outcome, error = compact(ports, bank, message["partition"], deadline=deadline, forced=job is not None)
    if job:
        status: jobs.Status = "failed" if outcome in {"failed", "superseded"} else "completed"
        jobs.progress(ports, bank.id, job, 1, 1)
        jobs.finish(ports, bank.id, job, status, error)


def _walk(ports: Ports, bank: Bank, message: Mapping[str, Any], deadline: int) -> None:
    """Compact (for a job) or ask for compaction (after a change of thresholds) key after key; go on in another message."""
    job = message.get("job")
    start = tuple(message["walk"]) if message["walk"] else None
    walked = message.get("walked", 0)
    failures: list[str] = list(message.get("failures", []))
    margin = 60_000 if job else 5_000
    for head in partitions.heads(ports.table, bank, after=start):
        if job:
            outcome, error = compact(ports, bank, head.partition, deadline=deadline, forced=True)
            if outcome in {"failed", "superseded"}:
                failures.append(f"{head.key}: {error}")
            walked += 1
            if not jobs.progress(ports, bank.id, job, walked):
                return
        else:
            ask_if_exceeded(ports, bank, head.partition)
        if ports.clock.now() > deadline - margin:
            position = (partitions.group_of(head.partition), head.partition)
            rest = {**message, "walk": position, "walked": walked, "failures": failures[:20]}
            ports.compaction.send([rest])
            return
    if job:
        jobs.progress(ports, bank.id, job, walked, walked)
        jobs.finish(ports, bank.id, job, "failed" if failures else "completed", "; ".join(failures[:20]) or None)
    else:
        _forget_walk(ports, bank, message["version"])


def _forget_walk(ports: Ports, bank: Bank, version: int) -> None:
    """The walk is over; one that a later change of thresholds asked for is not."""
    with suppress(ConditionFailed):
        ports.table.write(Delete(walk_key(bank), (Is("version", "<=", version),)))


# --------------------------------------------------------------------------------------------------------------------
# The six steps


@dataclass(frozen=True, slots=True)
class _Read:
    """What step 4 read: the head, then the entries up to P, expired ones left out of what is told."""

    head: Head
    living: list[Entry]
    items: list[Entry]
    """All of them, expired ones too: the counters still count those."""

    @property
    def told(self) -> list[Entry]:
        """The living entries without an earlier summary."""
        return [entry for entry in self.living if entry.kind == "entry"]

    @property
    def through(self) -> str:
        """The last ULID to replace. The plan's own may have been deleted; a summary is as old as what it replaces."""
        return self.items[-1].ulid


def compact(ports: Ports, bank: Bank, partition: str, *, deadline: int, forced: bool = False) -> tuple[Outcome, str | None]:
    """Compact one partition if it is over a threshold (`forced`: down to half of it in any case).

    Gives what came of it and, for a failure, why. Raises `TableUnavailable`; whatever the model does is a failure that the
    head records.
    """
    token = ids.encode(ports.chance.getrandbits(128))
    head, counters = _lease(ports, bank, partition, token, forced)
    if head is None or counters is None:
        return "busy", "another compaction of this key is under way, or there is no such key"
    plan = _plan(ports, bank, head, counters, forced)
    if plan is None:
        return _not_due(ports, bank, partition, token), None
    try:
        deletion.raise_floors(ports, bank, head, plan.through)
        read = _read(ports, bank, partition, plan)
        if read.head.watermark == head.watermark and not read.told:
            # All that the plan was to replace was deleted meanwhile. An earlier summary alone is not summarised again.
            return _not_due(ports, bank, partition, token), None
        summary = _summarise(ports, bank, read, deadline)
    except ModelError as error:
        return "failed", _fail(ports, bank, partition, token, str(error) or type(error).__name__, forced=forced)
    try:
        if read.head.watermark != head.watermark:
            raise ConditionFailed
        _commit(ports, bank, read, token, summary)
    except ConditionFailed:
        reason = "entries or settings changed while the summary was made"
        return "superseded", _fail(ports, bank, partition, token, reason, forced=forced)
    ports.metrics.count("Compactions")
    _settle(ports, bank, partition)
    return "compacted", None


def _repeat(ports: Ports, action: Callable[[], Any]) -> Any:
    return contended(action, ports.clock, ports.chance)


def _lease(ports: Ports, bank: Bank, partition: str, token: str, forced: bool) -> tuple[Head | None, Counters | None]:
    """Step 1. The head with our lease on it, and the counters read after that; None when another has it, or must wait."""
    now = ports.clock.now()
    free = Either((Is("lease", "missing"), Is("lease_until", "<=", now)))
    rested = Either((Is("retry_at", "missing"), Is("retry_at", "<=", now)))
    conditions = (Is("pk", "exists"), free) if forced else (Is("pk", "exists"), free, rested)
    lease = Update(
        partitions.head_key(bank, partition),
        set={"lease": token, "lease_until": now + LEASE_MS},
        remove=("asked",),
        when=conditions,
    )
    try:
        _repeat(ports, lambda: ports.table.write(lease))
    except ConditionFailed:
        return None, None
    found = _repeat(ports, lambda: partitions.read_all(ports.table, bank, partition))
    return found[0], partitions.count(*found)


def _plan(ports: Ports, bank: Bank, head: Head, counters: Counters, forced: bool) -> Plan | None:
    """Step 2: which prefix goes. Reads no further than to the end of that prefix, and one entry more."""
    if not bank.compacts or not (forced or exceeded(bank, counters)):
        return None
    return plan(bank, counters, _ascending(ports, bank, head), bank.cutoff(ports.clock.now()), forced=forced)


def plan(bank: Bank, counters: Counters, ascending: Iterator[Entry], cutoff: int | None, *, forced: bool = False) -> Plan | None:
    """The prefix to replace, from the counters and the entries in order; None when nothing can or need be replaced.

    With a prompt, down to half of each threshold that is exceeded (all of them when `forced`), the summary included;
    without one, down to the threshold. The newest entry stays. Entries past `cutoff` (ms) count for nothing.
    """
    turns, size = counters.entries, counters.tokens
    keep_turns, keep_tokens = _goals(bank, counters, forced)
    through: str | None = None
    replaced = 0
    due_now = forced
    following = next(ascending, None)
    while (entry := following) is not None:
        following = next(ascending, None)
        gone = cutoff is not None and entry.created_at <= cutoff
        if not gone and not due_now:
            # Those past the retention are all at the front: what is left of the counters now is what lives.
            due_now = exceeded(bank, Counters(turns, size, 0))
            if not due_now:
                return None
        # The counters were read before the entries: some may have been deleted since, so the newest is known by what follows.
        newest = entry.kind == "entry" and (turns <= 1 or following is None)
        if newest or (turns <= keep_turns and size <= keep_tokens):
            break
        turns -= entry.kind == "entry"
        size -= entry.tokens
        through = entry.ulid
        replaced += entry.kind == "entry" and not gone
    return Plan(through, replaced) if through is not None and replaced else None


def _goals(bank: Bank, counters: Counters, forced: bool) -> tuple[float, float]:
    """How many turns and tokens may stay, infinite where that threshold asks for nothing."""
    half = 2 if bank.compaction_prompt else 1
    turns = size = float("inf")
    if bank.max_turns and (forced or counters.entries > bank.max_turns):
        turns = bank.max_turns // half
    if bank.max_size_tokens and (forced or counters.tokens > bank.max_size_tokens):
        room = bank.max_size_tokens // 4 if bank.compaction_prompt else 0
        size = bank.max_size_tokens // half - room
    return turns, size


def _ascending(ports: Ports, bank: Bank, head: Head, through: str | None = None) -> Iterator[Entry]:
    """The entries above the watermark in order, strongly, up to a ULID if given; pages of the table as they are needed."""
    pk = partitions.partition_pk(bank, head.partition)
    position: str | None = "E#" + head.watermark
    last = "E#" + through if through else "E~"
    while position is not None:
        page = _repeat(ports, lambda at=position: ports.table.query(pk, after=at, last=last))  # type: ignore[misc]
        yield from map(entries.from_item, page.items)
        position = page.after


def _read(ports: Ports, bank: Bank, partition: str, plan: Plan) -> _Read:
    """Step 4: `edits` first, so that an edit of what is read afterwards is noticed at the commit."""
    item = _repeat(ports, lambda: ports.table.read([partitions.head_key(bank, partition)]))[0]
    head = partitions.head_from(item)
    items = list(_ascending(ports, bank, head, plan.through))
    cutoff = bank.cutoff(ports.clock.now())
    return _Read(head, [entry for entry in items if partitions.alive(head, entry, cutoff)], items)


def _summarise(ports: Ports, bank: Bank, read: _Read, deadline: int) -> Entry | None:
    """Step 5. None without a prompt: then the overflow is only shed. Raises `ModelError`."""
    if not bank.compaction_prompt:
        return None
    told = read.told
    earlier = next((entry for entry in read.living if entry.kind == "summary"), None)
    content = summarising.summarise(
        ports.chat,
        told,
        earlier,
        prompt=bank.compaction_prompt,
        max_tokens=summary_limit(bank, read.living),
        deadline=deadline,
        clock=ports.clock,
    )
    replaces = _replaces(told, earlier)
    return Entry(
        sort=read.through + "S",
        partition=read.head.partition,
        key=read.head.key,
        content=content,
        kind="summary",
        tags=(SUMMARY_TAG,),
        occurred_at=max(entry.occurred_at for entry in told),
        chunks=len(chunking.spans(content, bank.chunk_size, bank.chunk_overlap)),
        replaces=replaces,
    )


def summary_limit(bank: Bank, replaced: Sequence[Entry]) -> int:
    """Most tokens of a summary: under a quarter of `max_size_tokens` or, without one, of what it replaces."""
    total = sum(entry.tokens for entry in replaced)
    quarter = (bank.max_size_tokens - 1) // 4 if bank.max_size_tokens else total // 4
    return max(1, min(max(quarter, SMALLEST_SUMMARY), total - 1))


def _replaces(told: Sequence[Entry], earlier: Entry | None) -> Replaces:
    """What the new summary stands for, that of the folded one included."""
    digest = hashlib.sha256()
    before = earlier.replaces if earlier else None
    if before:
        digest.update(before.sha256.encode())
    for entry in told:
        digest.update(f"{entry.internal_id}\0{entry.version}\0{entry.content}\0".encode())
    return Replaces(
        entries=len(told) + (before.entries if before else 0),
        from_id=before.from_id if before else told[0].id,
        through_id=told[-1].id,
        from_at=before.from_at if before else told[0].created_at,
        through_at=told[-1].created_at,
        sha256=digest.hexdigest(),
    )


def _commit(ports: Ports, bank: Bank, read: _Read, token: str, summary: Entry | None) -> None:
    """Step 6, and telling those who go on from there. A due mark stays for `_settle`, or else for the sweep."""
    now = ports.clock.now()
    head = read.head
    left = summary.tokens if summary else 0
    pieces = summary.chunks if summary else 0
    changes: dict[str, Any] = {"watermark": read.through, "compacted_at": now}
    removed = ["lease", "lease_until", "retry_at", "failures", "error"]
    if summary:
        changes["summary"] = summary.sort
    else:
        removed.append("summary")
    record = cleaning.of_range(bank, head.partition, read.through, now + CLEANUP_DELAY, ports.chance)
    actions: list[Action] = [
        Update(
            partitions.head_key(bank, head.partition),
            set=changes,
            add={
                "edits": 1,
                "entries": -sum(entry.kind == "entry" for entry in read.items),
                "tokens": left - sum(entry.tokens for entry in read.items),
                "chunks": pieces - sum(entry.chunks for entry in read.items),
            },
            remove=tuple(removed),
            when=(*deletion.unchanged(head), Is("lease", "=", token)),
        ),
        Check(
            banks.key_of(bank.account, bank.id),
            (Is("version", "=", bank.version), Is("generation", "=", bank.generation)),
        ),
        record,
    ]
    if summary:
        pk = partitions.partition_pk(bank, head.partition)
        item = entries.to_item(summary, pk) | due(summary.internal_id, now + writing.UNINDEXED_DUE)
        item |= {"account": bank.account} | partitions.age_attributes(bank, head.partition, summary.ulid)
        actions.append(Put(item, (Is("pk", "missing"),)))
    _repeat(ports, lambda: ports.table.transact(actions))
    cleaning.announce(ports, record, CLEANUP_DELAY // 1000)
    if summary:
        writing.announce(ports, bank, [summary])


# --------------------------------------------------------------------------------------------------------------------
# When it does not come to a commit


def _not_due(ports: Ports, bank: Bank, partition: str, token: str) -> Outcome:
    """Nothing to replace: not due until the next write."""
    release = Update(partitions.head_key(bank, partition), remove=("lease", "lease_until"), when=(Is("lease", "=", token),))
    try:
        _repeat(ports, lambda: ports.table.write(release))
    except ConditionFailed:
        return "busy"
    _settle(ports, bank, partition)
    return "nothing"


def _settle(ports: Ports, bank: Bank, partition: str) -> None:
    """Take the due mark away, or ask again when there is more to replace. Dying before leaves the mark to the sweep.

    The mark goes only if nobody asked, and no setting changed, since the counters were read. A compaction that has taken the
    lease meanwhile settles in its turn.
    """
    key = partitions.head_key(bank, partition)
    for _ in range(10):
        bank_item = _repeat(ports, lambda: ports.table.read([banks.key_of(bank.account, bank.id)]))[0]
        found = _repeat(ports, lambda: partitions.read_all(ports.table, bank, partition))
        if bank_item is None or found is None or bank_item["generation"] != bank.generation:
            return
        current, head = banks.from_item(bank_item), found[0]
        if head.lease is not None:
            return
        if _plan(ports, current, head, partitions.count(*found), forced=False):
            marks = due(partition, ports.clock.now() + ASKED_DUE)
            if _changed(ports, [Update(key, set=marks, when=(Is("pk", "exists"), Is("lease", "missing")))]):
                send(ports, [message_of(bank, partition)])
            return
        if head.due_at is None:
            return
        unasked = (Is("due_at", "=", head.due_at), Is("asked", "missing"), Is("lease", "missing"))
        same = (Is("version", "=", current.version), Is("generation", "=", current.generation))
        if _changed(ports, [Update(key, remove=DUE_ATTRIBUTES, when=unasked), Check(banks.key_of(bank.account, bank.id), same)]):
            return
        if head.asked:
            _changed(ports, [Update(key, remove=("asked",), when=(Is("pk", "exists"),))])


def _changed(ports: Ports, actions: Sequence[Action]) -> bool:
    """Whether the transaction's conditions held."""
    try:
        _repeat(ports, lambda: ports.table.transact(actions))
    except ConditionFailed:
        return False
    return True


def _fail(ports: Ports, bank: Bank, partition: str, token: str, reason: str, *, forced: bool) -> str:
    """Give the lease back and note the failure on the head: the first may be retried at once, repeated ones wait longer."""
    now = ports.clock.now()
    failed: Item | None = None

    def note() -> None:
        nonlocal failed
        item = ports.table.read([partitions.head_key(bank, partition)])[0]
        if item is None or item.get("lease") != token:
            return
        failures = item.get("failures", 0) + 1
        pause = 0 if failures == 1 else min(FIRST_BACKOFF << min(failures - 2, 12), LONGEST_BACKOFF)
        failed = ports.table.write(
            Update(
                partitions.head_key(bank, partition),
                set={"failures": failures, "retry_at": now + pause, "error": reason[:500]} | due(partition, now + pause),
                remove=("lease", "lease_until"),
                when=(Is("lease", "=", token),),
            )
        )

    with suppress(ConditionFailed, Contended):
        _repeat(ports, note)
    ports.metrics.count("CompactionFailures")
    if failed is not None and not forced:
        # On demand there is a job already.
        jobs.record_failure(ports, bank, "compaction", reason, key=failed["key"], partition=partition)
    return reason

"""Writing entries: durable before the caller is answered, in exact order, counted once, each id used once.

One strong batch read (bank, head, shard, and what makes the request unique), then one transaction for up to 100 actions:
the entries, and the shard's counters and floor on condition that every new id is above the floor. Dying before the
transaction commits leaves nothing; dying after it leaves a written entry whose ingestion the sweep starts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from . import bank as banks
from . import chunking, entries, homes, ids, partitions
from .bank import Bank
from .entries import Entry, NewEntry
from .errors import Conflict, DatabaseUnavailable, Invalid, NotFound
from .marking import due
from .partitions import Head
from .ports import (
    Action,
    ConditionFailed,
    Contended,
    Either,
    Is,
    Item,
    Key,
    Ports,
    Put,
    QueueUnavailable,
    TableUnavailable,
    Update,
)
from .remembering import Remembered
from .retrying import FIRST_PAUSE, LONGEST_PAUSE, Superseded

MAX_ACTIONS = 100
MAX_BYTES = 3_500_000
"""Of one transaction: DynamoDB takes 4 MB; the rest is for attribute names and encoding."""

UNINDEXED_DUE = 300_000
"""After how many ms the sweep looks at an entry that ingest has not confirmed."""

IDEMPOTENCY_SECONDS = 86_400

RECENT_TURNS = 20
"""How far back a reply chain is looked for."""


ALONG = 6
"""Actions that may go along with a write."""

Along = Callable[[Sequence[Entry]], Sequence[Action]]
"""What is to be done in the transaction that writes these entries."""


class Written(NamedTuple):
    """One entry of a write's answer; `existing` when the same id was there before."""

    entry: Entry
    existing: bool


@dataclass(frozen=True, slots=True)
class Idempotency:
    """An Idempotency-Key and the SHA-256 of the body it came with. It holds for 24 hours within the bank."""

    key: str
    body_sha256: str


class _Planned(NamedTuple):
    """An entry of the request that is still to be written."""

    position: int
    new: NewEntry
    partition: str


@dataclass
class _Progress:
    """What is known of the request's entries: by position, those that are in the table."""

    done: dict[int, Written]
    committed: int = 0


def write(
    ports: Ports,
    account: str,
    bank_id: str,
    new: Sequence[NewEntry],
    *,
    idempotency: Idempotency | None = None,
    along: Along | None = None,
    deadline: int,
) -> list[Written]:
    """Write entries, answered in their order. They must be valid but for what depends on the bank (speaker, key).

    `along` gives, for the entries of the last transaction, further actions of that transaction: keep the request so small that
    there is only one (`fit_together`), and what is done along happens exactly when the entries are written. `Superseded` when
    one of their conditions does not hold.

    Raises `NotFound` for the bank, `Invalid` (speaker, key, a key reused with another body), `Conflict` for a caller-given
    id that has other content, and `DatabaseUnavailable` with `written`, the number of entries that were committed before.
    """
    progress = _Progress({})
    pause = FIRST_PAUSE
    while True:
        try:
            return _attempt(ports, account, bank_id, new, idempotency, along, progress)
        except (Contended, ConditionFailed) as error:
            wait = ports.chance.random() * pause
            pause = min(pause * 2, LONGEST_PAUSE)
            if ports.clock.now() + wait * 1000 >= deadline:
                raise DatabaseUnavailable("the table stayed contended, try again", written=progress.committed) from error
            ports.clock.sleep(wait)
        except TableUnavailable as error:
            raise DatabaseUnavailable("the table can't be reached", written=progress.committed) from error


def _attempt(
    ports: Ports,
    account: str,
    bank_id: str,
    new: Sequence[NewEntry],
    idempotency: Idempotency | None,
    along: Along | None,
    progress: _Progress,
) -> list[Written]:
    """One try: read, then commit transaction after transaction. Whatever got in the way, the next try reads again."""
    state = _State.read(ports, account, bank_id, new, idempotency)
    bank = state.bank
    check_speakers(bank, new)
    _recall(state, new, idempotency, progress)
    planned = [_Planned(position, one, state.places[one.key]) for position, one in enumerate(new) if position not in progress.done]
    planned = [one for one in planned if not _is_known(state, one, new, progress)]
    if not planned:
        return [_answer(progress, new, position) for position in range(len(new))]
    if bank.strip_quoted_reply_chains and bank.conversation:
        planned = _without_quotes(ports, bank, planned)
    if bank.source_connection_id is None:
        ports.table.write(_provision_source(ports, bank))
    for transaction in _transactions(ports, state, planned, idempotency, progress):
        own = len(transaction.actions)
        if along is not None:
            transaction.actions += along([entry for _, entry in transaction.entries])
        try:
            _commit(ports, transaction)
        except ConditionFailed as failed:
            if any(position >= own for position in failed.failed):
                raise Superseded from failed
            raise
        for position, entry in transaction.entries:
            progress.done[position] = Written(entry, existing=False)
        progress.committed += len(transaction.entries)
        announce(ports, bank, [entry for _, entry in transaction.entries])
    return [_answer(progress, new, position) for position in range(len(new))]


def _without_quotes(ports: Ports, bank: Bank, planned: Sequence[_Planned]) -> list[_Planned]:
    """What users wrote without what it repeats of the thread's recent turns, those of this request included."""
    from . import loading, quoting

    recent: dict[str, list[str]] = {}
    stored = []
    for one in planned:
        if one.partition not in recent:
            newest = loading.load(ports, bank, loading.Load(key=one.new.key, order="desc", limit=RECENT_TURNS)).entries
            recent[one.partition] = [entry.content for entry in newest]
        if one.new.speaker == "user":
            content = quoting.stripped(one.new.content, recent[one.partition][-RECENT_TURNS:])
            stored.append(one._replace(new=replace(one.new, content=content, given_sha256=one.new.sha256)))
        else:
            stored.append(one)
        recent[one.partition].append(one.new.content)
    return stored


def _answer(progress: _Progress, new: Sequence[NewEntry], position: int) -> Written:
    """The entry at a position; one whose id stands earlier in the same request is that one."""
    if position in progress.done:
        return progress.done[position]
    first = next(other for other, one in enumerate(new) if one.id == new[position].id)
    return Written(progress.done[first].entry, existing=True)


def check_speakers(bank: Bank, new: Sequence[NewEntry]) -> None:
    """Raises `Invalid` where an entry does not fit the bank's type; `loc` is that of a batch."""
    for position, one in enumerate(new):
        loc = ("body", "entries", position)
        if bank.conversation:
            if one.speaker is None:
                raise Invalid(
                    (*loc, "speaker"), "required in a conversation bank: who said it (user, assistant, a name)", "missing"
                )
            if not one.key:
                raise Invalid((*loc, "key"), "required in a conversation bank: which conversation it belongs to", "missing")
        elif one.speaker is not None:
            raise Invalid((*loc, "speaker"), "a general bank has no speakers; leave it out", "extra_forbidden")


@dataclass
class _State:
    """What one strong batch read tells."""

    bank: Bank
    places: dict[str, str]
    """The partition where each key lives."""
    heads: dict[str, Head | None]
    """Of these partitions, and of those that the pointers lead to."""
    shards: dict[str, tuple[int, Item | None]]
    """By partition: the shard this write goes to."""
    pointers: dict[str, Item]
    free: dict[str, Item]
    """Pointers of callers' ids that may be given away anew: their entries were forgotten or are past the retention."""
    request: Item | None

    @classmethod
    def read(cls, ports: Ports, account: str, bank_id: str, new: Sequence[NewEntry], idempotency: Idempotency | None) -> _State:
        bank_key = banks.key_of(account, bank_id)
        guess = ports.chance.randrange(partitions.MAX_SHARDS)
        # The generation is part of every key, and only the bank's record tells it: a second read only after a deletion. Another
        # only for a key that was renamed, whose home tells where it lives.
        hint = _generations.get(ports.table, bank_id, ports.clock.now())
        generation = hint.value if hint else 1
        stand_in = banks.stand_in(account, bank_id, generation)
        places = homes.guess(stand_in, [one.key for one in new])
        while True:
            stand_in = banks.stand_in(account, bank_id, generation)
            names = list(dict.fromkeys(places.values()))
            elsewhere = [home for key in places if (home := homes.of(stand_in, key)) not in names]
            callers = list(dict.fromkeys(one.id for one in new if one.id is not None))
            request_keys = [request_key(stand_in, idempotency)] if idempotency else []
            wanted: list[Key] = [bank_key, *request_keys]
            wanted += [partitions.head_key(stand_in, name) for name in (*names, *elsewhere)]
            wanted += [partitions.shard_key(stand_in, name, shard) for name in names for shard in sorted({0, guess})]
            wanted += [partitions.pointer_key(stand_in, caller) for caller in callers]
            found = {key: item for key, item in zip(wanted, ports.table.read(wanted), strict=True) if item is not None}
            if bank_key not in found or found[bank_key].get("deleted"):
                raise NotFound("no such memory bank")
            bank = banks.from_item(found[bank_key])
            now = homes.corrected(bank, places, found) if bank.generation == generation else homes.guess(bank, list(places))
            if bank.generation == generation and now == places:
                break
            generation, places = bank.generation, now
            if generation > 1:
                _generations.put(ports.table, bank.id, generation, ports.clock.now())
        heads_found = {}
        shards = {}
        for name in names:
            item = found.get(partitions.head_key(bank, name))
            head = partitions.head_from(item) if item else None
            shard = guess if guess < (head.shards if head else banks.SHARDS[bank.type]) else 0
            heads_found[name] = head
            shards[name] = (shard, found.get(partitions.shard_key(bank, name, shard)))
        pointers = {caller: found[key] for caller in callers if (key := partitions.pointer_key(bank, caller)) in found}
        if pointers:
            heads_found |= _heads_of(ports, bank, {pointer["partition"] for pointer in pointers.values()} - set(heads_found))
        free = _free(ports, bank, pointers, heads_found) if pointers else {}
        pointers = {caller: pointer for caller, pointer in pointers.items() if caller not in free}
        request = found.get(request_keys[0]) if request_keys else None
        if request and request["ttl"] <= ports.clock.now() // 1000:
            request = None
        return cls(bank, places, heads_found, shards, pointers, free, request)


def _heads_of(ports: Ports, bank: Bank, others: Iterable[str]) -> dict[str, Head | None]:
    names = sorted(others)
    items = ports.table.read([partitions.head_key(bank, name) for name in names]) if names else []
    return {name: partitions.head_from(item) if item else None for name, item in zip(names, items, strict=True)}


def _free(ports: Ports, bank: Bank, pointers: Mapping[str, Item], heads: Mapping[str, Head | None]) -> dict[str, Item]:
    """The pointers whose entries are dead. One of a compacted entry is not free: importing it twice doubles nothing."""
    cutoff = bank.cutoff(ports.clock.now())
    free = {}
    for caller, pointer in pointers.items():
        head, sort = heads[pointer["partition"]], pointer["sort"]
        if head is None or sort <= head.forgotten or (cutoff is not None and ids.milliseconds_of(sort) <= cutoff):
            free[caller] = pointer
    return free


_generations = Remembered[int](banks.DAY)
"""Generations above 1 that this process has seen; only a hint that saves a second read."""


def request_key(bank: Bank, idempotency: Idempotency) -> Key:
    """Where the record of an Idempotency-Key is."""
    return Key(f"R#{bank.id}#{bank.generation}#{idempotency.key}", "request")


def _recall(state: _State, new: Sequence[NewEntry], idempotency: Idempotency | None, progress: _Progress) -> None:
    """What an earlier try of the same request has written, from its record."""
    if idempotency is None or state.request is None:
        return
    if state.request["body_sha256"] != idempotency.body_sha256:
        raise Invalid(("header", "Idempotency-Key"), "was used with another body in the last 24 hours", "idempotency_key_reused")
    for position, noted in state.request["written"].items():
        new_entry = new[int(position)]
        parsed = ids.parse(noted)
        # The sort position alone: in the home of the key, where it has been renamed since or not.
        partition, sort = (parsed.partition, parsed.sort) if parsed else (homes.of(state.bank, new_entry.key), noted)
        progress.done[int(position)] = Written(_entry(state.bank, new_entry, partition, sort), False)


def _is_known(state: _State, one: _Planned, new: Sequence[NewEntry], progress: _Progress) -> bool:
    """Whether the caller's id of this entry is in the table, or earlier in the request, with the same content."""
    if one.new.id is None:
        return False
    pointer = state.pointers.get(one.new.id)
    if pointer is not None:
        head = state.heads[pointer["partition"]]
        # What was written before its key was renamed is the same under the key's new name.
        before = head.names if head is not None and head.key == one.new.key else ()
        known = {one.new.sha256, *(replace(one.new, key=name).sha256 for name in before)}
        _same(one, pointer["sha256"], known, len(new))
        entry = _entry(state.bank, one.new, pointer["partition"], pointer["sort"])
        progress.done[one.position] = Written(entry, existing=True)
        return True
    first = next(position for position, other in enumerate(new) if other.id == one.new.id)
    if first < one.position:
        _same(one, new[first].sha256, {one.new.sha256}, len(new))
        return True
    return False


def _same(one: _Planned, sha256: str, known: set[str], count: int) -> None:
    if sha256 not in known:
        where = f"entries[{one.position}].id" if count > 1 else "id"
        raise Conflict(f"{where}: {one.new.id} is in this bank with other content", code="id_conflict")


def _provision_source(ports: Ports, bank: Bank) -> Update:
    """The next write after a source deletion gives the bank a new source."""
    import uuid

    fresh = str(uuid.UUID(int=ports.chance.getrandbits(128), version=4))
    key = banks.key_of(bank.account, bank.id)
    return Update(key, set={"source_connection_id": fresh}, when=(Is("source_connection_id", "missing"), Is("pk", "exists")))


@dataclass
class _Transaction:
    actions: list[Action]
    entries: list[tuple[int, Entry]]
    witness: Key
    """An entry of the transaction: it is in the table exactly when the transaction committed."""


def _transactions(
    ports: Ports, state: _State, planned: Sequence[_Planned], idempotency: Idempotency | None, progress: _Progress
) -> Iterator[_Transaction]:
    """The transactions that write these entries, each made just before it is committed (the floor of the last counts)."""
    bank = state.bank
    floors = {name: (item or {}).get("floor", ids.LOWEST) for name, (_, item) in state.shards.items()}
    known_heads = {name for name, head in state.heads.items() if head}
    recorded = state.request is not None
    queue = sorted(planned, key=lambda one: (list(state.heads).index(one.partition), one.position))
    while queue:
        taken: list[_Planned] = []
        actions = size = 0
        for one in queue:
            opens = one.partition not in {other.partition for other in taken}
            cost = 1 + (one.new.id is not None) + opens * (1 + (one.partition not in known_heads))
            weight = _weight(one.new)
            if taken and (actions + cost + (idempotency is not None) > MAX_ACTIONS or size + weight > MAX_BYTES):
                break
            taken.append(one)
            actions += cost
            size += weight
        queue = queue[len(taken) :]
        yield _transaction(ports, bank, state, taken, floors, known_heads, idempotency, recorded, progress)
        known_heads |= {one.partition for one in taken}
        recorded = True


def fit_together(new: Sequence[NewEntry]) -> int:
    """How many of these entries of one key, without ids of their caller's, one transaction holds, `along` included; at least 1."""
    size = 0
    for number, one in enumerate(new[: MAX_ACTIONS - ALONG - 2]):
        size += _weight(one)
        if number and size > MAX_BYTES - 400_000:
            return number
    return min(len(new), MAX_ACTIONS - ALONG - 2)


def _weight(new: NewEntry) -> int:
    """About how many bytes an entry takes in a transaction."""
    return len(new.content.encode()) + len(json.dumps(new.metadata).encode()) + 3_000


def _transaction(
    ports: Ports,
    bank: Bank,
    state: _State,
    taken: Sequence[_Planned],
    floors: dict[str, str],
    known_heads: set[str],
    idempotency: Idempotency | None,
    recorded: bool,
    progress: _Progress,
) -> _Transaction:
    now = ports.clock.now()
    actions: list[Action] = []
    made: list[tuple[int, Entry]] = []
    for name in dict.fromkeys(one.partition for one in taken):
        mine = [one for one in taken if one.partition == name]
        fresh = ids.ulids(now, floors[name], len(mine), ports.chance)
        here = [_entry(bank, one.new, name, ulid) for one, ulid in zip(mine, fresh, strict=True)]
        made += [(one.position, entry) for one, entry in zip(mine, here, strict=True)]
        if name not in known_heads:
            actions.append(Put(partitions.new_head(bank, name, mine[0].new.key), (Is("pk", "missing"),)))
        actions.append(_raise_shard(bank, name, state.shards[name][0], here))
        floors[name] = fresh[-1]
        for one, entry in zip(mine, here, strict=True):
            actions += _put_entry(bank, entry, one.new, now, state.free)
    if idempotency is not None:
        written = {str(position): _noted(bank, entry) for position, entry in made}
        before = {str(position): _noted(bank, one.entry) for position, one in progress.done.items() if not one.existing}
        actions.append(_record(bank, idempotency, before | written, len(before), recorded, now))
    first = made[0][1]
    return _Transaction(actions, made, partitions.entry_key(bank, first.partition, first.sort))


def _raise_shard(bank: Bank, partition: str, shard: int, here: Sequence[Entry]) -> Update:
    """Counters and floor of a shard, on condition that nothing took an id at or above the first new one meanwhile."""
    return Update(
        partitions.shard_key(bank, partition, shard),
        set={"floor": here[-1].ulid, "last_at": here[-1].created_at},
        add={
            "entries": len(here),
            "tokens": sum(entry.tokens for entry in here),
            "chunks": sum(entry.chunks for entry in here),
        },
        when=(Either((Is("floor", "missing"), Is("floor", "<", here[0].ulid))), Is("closed", "missing")),
    )


def _put_entry(bank: Bank, entry: Entry, new: NewEntry, now: int, free: Mapping[str, Item]) -> list[Action]:
    pk = partitions.partition_pk(bank, entry.partition)
    item = entries.to_item(entry, pk) | due(entry.internal_id, now + UNINDEXED_DUE) | {"account": bank.account}
    item |= partitions.age_attributes(bank, entry.partition, entry.ulid)
    actions: list[Action] = [Put(item, (Is("pk", "missing"),))]
    if new.id is not None:
        at = partitions.pointer_key(bank, new.id)
        pointer: Item = {"pk": at.pk, "sk": at.sk, "partition": entry.partition, "sort": entry.sort, "sha256": new.sha256}
        pointer |= partitions.age_attributes(bank, entry.partition, entry.ulid)
        before = free.get(new.id)
        actions.append(Put(pointer, (Is("sort", "=", before["sort"]) if before else Is("pk", "missing"),)))
    return actions


def _noted(bank: Bank, entry: Entry) -> str:
    """How the request's record names an entry: by its sort position or, outside of its key's home, by its whole id."""
    return entry.sort if entry.partition == homes.of(bank, entry.key) else entry.internal_id


def _record(bank: Bank, idempotency: Idempotency, written: Mapping[str, str], before: int, recorded: bool, now: int) -> Action:
    """The request's record: which positions are written under which ids. Another try in between fails its condition."""
    key = request_key(bank, idempotency)
    values: dict[str, Any] = {
        "body_sha256": idempotency.body_sha256,
        "written": dict(written),
        "count": len(written),
        "ttl": now // 1000 + IDEMPOTENCY_SECONDS,
    }
    if recorded:
        return Update(key, set=values, when=(Is("count", "=", before),))
    # An expired record stays until DynamoDB's own sweep takes it, up to two days later.
    return Put({"pk": key.pk, "sk": key.sk} | values, (Either((Is("pk", "missing"), Is("ttl", "<=", now // 1000))),))


def _entry(bank: Bank, new: NewEntry, partition: str, sort: str) -> Entry:
    occurred = new.occurred_at if new.occurred_at is not None else ids.milliseconds_of(sort)
    return Entry(
        sort=sort,
        partition=partition,
        key=new.key,
        content=new.content,
        speaker=new.speaker,
        tags=tuple(new.tags),
        metadata=new.metadata,
        occurred_at=occurred,
        caller_id=new.id,
        chunks=len(chunking.spans(new.content, bank.chunk_size, bank.chunk_overlap)),
    )


def _commit(ports: Ports, transaction: _Transaction) -> None:
    """Commit; when the answer was lost, look whether it took effect."""
    try:
        ports.table.transact(transaction.actions)
    except TableUnavailable as unanswered:
        try:
            there = ports.table.read([transaction.witness])[0] is not None
        except Contended:
            # Contention means that nothing was written; here nobody knows.
            raise unanswered from None
        if not there:
            raise


def announce(ports: Ports, bank: Bank, written: Sequence[Entry]) -> None:
    """Tell ingest, one message a partition. A queue that does not answer costs time, no memory: the sweep finds the entries."""
    messages = []
    for partition in dict.fromkeys(entry.partition for entry in written):
        sorts = [entry.sort for entry in written if entry.partition == partition]
        messages.append(message_of(bank, partition, sorts))
    try:
        ports.ingestion.send(messages)
    except QueueUnavailable:
        ports.metrics.count("IngestionMessagesLost", len(messages))


def message_of(bank: Bank, partition: str, sorts: Sequence[str]) -> dict[str, Any]:
    """The message that makes ingest index these entries."""
    return {
        "account": bank.account,
        "bank": bank.id,
        "generation": bank.generation,
        "partition": partition,
        "entries": list(sorts),
    }

"""Capturing runs: each is counted once, by its id, in the order of arrival, and its messages are durable when answered.

The bank and one strong batch read, then one transaction: the ledger with the next number, on condition that it was the next, the
run, its messages, and the job that will distil them where none waits. Dying before it commits leaves nothing; dying after it leaves
a run whose distillation the sweep starts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from .. import bank as banks
from .. import homes, ids, jobs, partitions
from ..bank import Bank
from ..errors import Conflict, NotFound
from ..ports import Action, Check, Is, Item, Key, Ports, Put, Update
from ..retrying import until_committed
from . import ledger as ledgers
from . import trigger
from .ledger import Ledger
from .message import Message


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message of a run, already validated. `occurred_at` in ms; None: when it is captured."""

    sender: str
    text: str
    id: str | None = None
    name: str | None = None
    occurred_at: int | None = None
    error: bool = False


@dataclass(frozen=True, slots=True)
class NewRun:
    """A finished run, already validated. Without an id it can't be told from another, and sending it twice counts twice."""

    key: str
    messages: tuple[NewMessage, ...]
    id: str | None = None
    user_id: str | None = None
    flow_id: str | None = None

    @property
    def sha256(self) -> str:
        """Hash of all but the id: tells the same run from another one under the same id."""
        told = [[one.sender, one.text, one.id, one.name, one.occurred_at, one.error] for one in self.messages]
        parts = [self.key, told, self.user_id, self.flow_id]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


class Captured(NamedTuple):
    """What became of a run: its number under its key, and how many are waiting there now."""

    run: str
    number: int
    messages: tuple[str, ...]
    """The ids of its messages, in order."""
    pending: int
    counted: bool
    """Whether it counts for the threshold; not while auto_capture is off."""
    existing: bool
    """Whether it was captured before."""
    job: str | None
    """The job that will distil it."""


def capture(ports: Ports, account: str, bank_id: str, new: NewRun, *, deadline: int) -> Captured:
    """Capture a run.

    Raises `NotFound` for the bank, `Conflict` where it captures nothing (`capture_off`), takes another flow's runs
    (`other_flow`), or where the id of the run or of a message is known with other content (`id_conflict`), and
    `DatabaseUnavailable`.
    """

    def attempt() -> tuple[Bank, Ledger, Captured]:
        return _attempt(ports, account, bank_id, new)

    bank, ledger, captured = until_committed(attempt, ports.clock, ports.chance, deadline)
    settings = bank.captures
    if settings is not None and not captured.existing:
        waits = trigger.wait(ledger, settings, ports.clock.now())
        if waits is not None:
            trigger.send(ports, [trigger.message_of(bank, ledger.partition, captured.number)], waits)
    return captured


def _attempt(ports: Ports, account: str, bank_id: str, new: NewRun) -> tuple[Bank, Ledger, Captured]:
    bank_item = ports.table.read([banks.key_of(account, bank_id)])[0]
    if bank_item is None or bank_item.get("deleted"):
        raise NotFound("There is no such memory bank.", code="memory_bank_not_found")
    bank = banks.from_item(bank_item)
    _check(bank, new)
    named = [one.id for one in new.messages if one.id is not None]
    run_id = new.id or f"{ports.chance.getrandbits(128):032x}"
    places = homes.guess(bank, [new.key])
    while True:
        partition = places[new.key]
        wanted = [
            ledgers.ledger_key(bank, partition),
            partitions.head_key(bank, partition),
            _counted_key(bank, partition, run_id),
            *(ledgers.name_key(bank, one) for one in named),
            *([homes.home_key(bank, new.key)] if partition != homes.of(bank, new.key) else []),
        ]
        found = dict(zip(wanted, ports.table.read(wanted), strict=True))
        now = homes.corrected(bank, places, found)
        if now == places:
            break
        places = now
    ledger_item, head_item, known, *names = (found[key] for key in wanted[: 3 + len(named)])
    ledger = ledgers.from_item(ledger_item) if ledger_item else Ledger(partition, new.key)
    cutoff = bank.cutoff(ports.clock.now())
    if known is not None and _counts(known, ledger, cutoff):
        before = head_item.get("names", ()) if head_item is not None else ()
        return bank, ledger, _captured_before(new, run_id, known, ledger, before)
    home = found[homes.home_key(bank, new.key)]
    for other, counted in _left(ports, bank, home, run_id) if new.id is not None else ():
        # A client sends a run again, and its key was renamed since: it is where the key's runs have gone.
        if _counts(counted, other, cutoff) and counted["sha256"] == new.sha256:
            return bank, other, _captured_before(new, run_id, counted, other)
    there = {one: item for one, item in zip(named, names, strict=True) if item is not None}
    free = {one for one, item in there.items() if _expired(item, cutoff) or _forgotten(item, ledger)}
    free |= _of_others(ports, bank, ledger, home, {one: item for one, item in there.items() if one not in free})
    plan = _Plan(ports, bank, ledger, new, run_id, there, free)
    actions: list[Action] = plan.actions(ledger_item is None, known)
    if head_item is None:
        actions.append(Put(partitions.new_head(bank, partition, new.key), (Is("pk", "missing"),)))
    elif ledger_item is None:
        # A rename changes the ledger's key as well, where there is a ledger.
        mine = (Is("key", "=", new.key), Is("closed", "missing"))
        actions.append(Check(partitions.head_key(bank, partition), mine))
    ports.table.transact(actions)
    after = plan.after
    return bank, after, Captured(run_id, after.runs, plan.messages, after.pending, plan.counted, False, after.job)


def _counted_key(bank: Bank, partition: str, run_id: str) -> Key:
    """Where it is noted that a run was counted."""
    return Key(ledgers.runs_pk(bank, partition), "I#" + run_id)


def _counts(known: Item, ledger: Ledger, cutoff: int | None) -> bool:
    """Whether a run that was counted is neither forgotten nor past the retention."""
    return known["number"] > ledger.forgotten and not _expired(known, cutoff)


def _captured_before(new: NewRun, run_id: str, known: Item, ledger: Ledger, names: Iterable[str] = ()) -> Captured:
    """What was answered then. `names`: keys that it may have been captured under. Raises `Conflict` for other content."""
    if known["sha256"] not in {new.sha256, *(replace(new, key=name).sha256 for name in names)}:
        raise Conflict(f"run_id: {new.id} was captured with other content", code="id_conflict")
    return Captured(run_id, known["number"], tuple(known["messages"]), ledger.pending, True, True, ledger.job)


def _left(ports: Ports, bank: Bank, home: Item | None, run_id: str) -> list[tuple[Ledger, Item]]:
    """This run where it was counted in partitions that are another key's by now, with their ledgers."""
    left = home.get("left", ()) if home is not None else ()
    wanted = [key for one in left for key in (ledgers.ledger_key(bank, one), _counted_key(bank, one, run_id))]
    found = ports.table.read(wanted) if wanted else []
    pairs = zip(found[::2], found[1::2], strict=True)
    return [(ledgers.from_item(ledger), counted) for ledger, counted in pairs if ledger is not None and counted is not None]


def _expired(item: Item, cutoff: int | None) -> bool:
    """Whether a run or message is past the retention, though not yet swept: its id may be given again."""
    return cutoff is not None and ids.milliseconds_of(item["age"]) <= cutoff


def _forgotten(name: Item, ledger: Ledger) -> bool:
    """Whether a message's key was forgotten, though the message is not yet swept."""
    return bool(name["partition"] == ledger.partition and int(name["place"][:12]) <= ledger.forgotten)


def _of_others(ports: Ports, bank: Bank, ledger: Ledger, home: Item | None, there: dict[str, Item]) -> set[str]:
    """Ids of messages under other keys, that may be given again because these were forgotten. Raises `Conflict` for others.

    Partitions that were this key's until it was renamed are no other key's: a client hands in its history again.
    """
    mine = {ledger.partition, *(home.get("left", ()) if home is not None else ())}
    others = {one: item["partition"] for one, item in there.items() if item["partition"] not in mine}
    named = sorted(set(others.values()))
    found = ports.table.read([ledgers.ledger_key(bank, name) for name in named]) if named else []
    read = {name: ledgers.from_item(item) for name, item in zip(named, found, strict=True) if item is not None}
    for one, name in others.items():
        if name in read and not _forgotten(there[one], read[name]):
            raise Conflict(
                f"messages: {one} is the id of a message under another key; ids are unique in a bank", code="id_conflict"
            )
    return set(others)


def _check(bank: Bank, new: NewRun) -> None:
    settings = bank.captures
    if settings is None:
        raise Conflict("The bank captures no runs; give it capture settings first.", code="capture_off")
    if settings.flow_id is not None and new.flow_id is not None and new.flow_id != settings.flow_id:
        raise Conflict(f"The bank takes the runs of flow {settings.flow_id} alone.", code="other_flow")


class _Plan:
    """The items of a run under its next number."""

    def __init__(
        self, ports: Ports, bank: Bank, ledger: Ledger, new: NewRun, run_id: str, there: dict[str, Item], free: set[str]
    ) -> None:
        self._ports, self._bank, self._ledger, self._new, self._run = ports, bank, ledger, new, run_id
        self._there, self._free = there, free
        settings = bank.captures
        self.counted = settings is not None and settings.auto_capture
        self._now = ports.clock.now()
        self._number = ledger.runs + 1
        self.messages = tuple(one.id or _message_id(ledger, self._number, n) for n, one in enumerate(new.messages))
        self.after = self._advance()

    def _advance(self) -> Ledger:
        before = self._ledger
        job = before.job
        self._job: Item | None = None
        if self.counted and job is None:
            self._job = jobs.new(self._ports, self._bank, "distillation")
            self._job |= {"key": self._new.key, "partition": before.partition}
            job = self._job["sk"]
        # A run that counts makes those count that were only stored before: auto_capture is on again.
        held = 0 if self.counted else before.held + 1
        first_at = before.first_at if before.pending and before.first_at else self._now
        return replace(before, runs=self._number, held=held, first_at=first_at, last_at=self._now, job=job)

    def actions(self, first: bool, known: Item | None) -> list[Action]:
        """The transaction."""
        bank, new, after = self._bank, self._new, self.after
        pk = ledgers.runs_pk(bank, after.partition)
        [ulid] = ids.ulids(self._now, ids.LOWEST, 1, self._ports.chance)
        age = partitions.age_attributes(bank, after.partition, ulid)
        values: dict[str, Any] = {"runs": after.runs, "held": after.held, "first_at": after.first_at, "last_at": after.last_at}
        values |= {"job": after.job} if after.job else {}
        settings = bank.captures
        waits = trigger.wait(after, settings, self._now) if settings else None
        if waits is not None:
            values |= trigger.marks(after.partition, waits, self._now)
        at = ledgers.ledger_key(bank, after.partition)
        if first:
            item: Item = {"pk": at.pk, "sk": at.sk, "account": bank.account, "key": new.key}
            actions: list[Action] = [Put(item | values, (Is("pk", "missing"),))]
        else:
            unchanged = (*ledgers.unchanged(self._ledger, "runs", "job", "held"), Is("closed", "missing"))
            actions = [Update(at, set=values, when=unchanged)]
        counted: Item = {"pk": pk, "sk": "I#" + self._run, "number": self._number, "sha256": new.sha256}
        counted |= {"messages": list(self.messages)}
        again = Is("number", "=", known["number"]) if known else Is("pk", "missing")
        actions.append(Put(counted | age, (again,)))
        run: Item = {"pk": pk, "sk": "N#" + ledgers.place_of(self._number), "run": self._run, "captured_at": self._now}
        run |= {name: value for name, value in (("user_id", new.user_id), ("flow_id", new.flow_id)) if value is not None}
        actions.append(Put(run | age))
        if self._job is not None:
            actions.append(Put(self._job))
        for index, one in enumerate(new.messages):
            actions += self._message(index, one, age)
        return actions

    def _message(self, index: int, new: NewMessage, age: dict[str, str]) -> list[Action]:
        bank, partition = self._bank, self.after.partition
        place = ledgers.place_of(self._number, index)
        message = Message(
            id=self.messages[index],
            run=self._run,
            sender=new.sender,
            text=new.text,
            occurred_at=new.occurred_at if new.occurred_at is not None else self._now,
            name=new.name,
            user_id=self._new.user_id,
            error=new.error,
        )
        before = self._there.get(new.id) if new.id is not None else None
        if before is not None and new.id not in self._free:
            self._same(new, before)
            return []
        actions: list[Action] = [Put(to_item(bank, partition, place, message, self._now) | age)]
        if new.id is not None:
            key = ledgers.name_key(bank, new.id)
            name: Item = {"pk": key.pk, "sk": key.sk, "partition": partition, "place": place, "sha256": _hash(new)}
            actions.append(Put(name | age, (Is("age", "=", before["age"]) if before else Is("pk", "missing"),)))
        return actions

    def _same(self, new: NewMessage, name: Item) -> None:
        """A message that was captured before, with an earlier run, is not captured twice."""
        if name["sha256"] != _hash(new):
            raise Conflict(f"messages: {new.id} was captured with other content; edit it with PATCH", code="id_conflict")


def _message_id(ledger: Ledger, number: int, index: int) -> str:
    """The id of a message whose caller gave none: it carries where the message is."""
    return ids.encode(number << 16 | index) + ledger.partition


def _hash(new: NewMessage) -> str:
    parts = [new.sender, new.text, new.name]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


def to_item(bank: Bank, partition: str, place: str, message: Message, captured_at: int) -> Item:
    """The table's form of a message."""
    item: Item = {
        "pk": ledgers.runs_pk(bank, partition),
        "sk": "N#" + place,
        "id": message.id,
        "run": message.run,
        "sender": message.sender,
        "text": message.text,
        "occurred_at": message.occurred_at,
        "captured_at": captured_at,
        "version": message.version,
    }
    item |= {"error": True} if message.error else {}
    return item | {name: value for name, value in (("name", message.name), ("user_id", message.user_id)) if value is not None}


def from_item(item: Item) -> Message:
    """A message from its item."""
    return Message(
        id=item["id"],
        run=item["run"],
        sender=item["sender"],
        text=item["text"],
        occurred_at=item["occurred_at"],
        name=item.get("name"),
        user_id=item.get("user_id"),
        error=item.get("error", False),
        version=item["version"],
    )

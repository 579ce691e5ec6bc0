"""The batches of one distillation, under its lease: read, distilled, committed, one after the other.

A batch is one transaction: the entries that were made, the record of what was made, the job's progress, and the ledger's
place. Documents are planned first: the plan is a record of its own under the ledger, so that a process that dies while it
writes them goes on where it was, and each is written once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

from .. import bank as banks
from .. import ids, jobs, writing
from ..bank import Bank
from ..capture import ledger as ledgers
from ..capture import made as records
from ..capture import owing
from ..capture.ledger import LEASE_MS, Ledger
from ..capture.made import Made
from ..capture.message import Message
from ..capture.owing import Owed
from ..capture.runs import from_item
from ..capture.settings import CaptureSettings
from ..entries import Entry, NewEntry
from ..ports import Action, ChatModel, Check, ConditionFailed, Is, Item, Key, ModelError, ModelUnavailable, Ports, Update
from ..retrying import Superseded, until_committed
from . import following, verbatim

MESSAGES = {"none": 90, "prompt": 500, "schemas": 500}
"""Messages of one batch at most: as entries they fit into one transaction, for a model into its window."""

AGAIN = 25
"""Messages of one batch of those that are tried again: each takes three more actions."""

PLAN_BYTES = 350_000
"""The longest plan of documents that an item holds."""

REASON = 500
"""Characters of the reason why a message is set aside, at most: a job names a hundred of them."""

COMMITS = 8
"""How often a commit is tried that other writers of the ledger got in the way of."""


class Stopped(Exception):
    """The job was cancelled, or removed."""


class _Waiting(NamedTuple):
    """A message with its place."""

    place: str
    message: Message


@dataclass(frozen=True)
class _Batch:
    """Some messages in order, and where the ledger is after them."""

    messages: tuple[_Waiting, ...]
    """All, the blank and the expired too."""
    told: tuple[_Waiting, ...]
    """Those with something to remember."""
    at: str
    owed: tuple[Owed, ...] = ()
    """Set when these are tried again: the ledger's place stays."""
    first: frozenset[str] = frozenset()
    """Of those that are tried again, the ones that were set aside: they are not counted as processed yet."""

    @property
    def processed(self) -> int:
        """How many messages are processed with it for the first time."""
        return sum(one.place in self.first for one in self.told) if self.owed else len(self.told)

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(one.place for one in self.messages)


class _Result(NamedTuple):
    """What a batch was made into."""

    entries: tuple[NewEntry, ...] = ()
    note: str | None = None
    aside: str | None = None
    """Why the only message of the batch is set aside."""


class Batches:
    """Works through what waits. `told` counts messages that were distilled; `aside` names those that were set aside."""

    def __init__(
        self, ports: Ports, bank: Bank, settings: CaptureSettings, ledger: Ledger, token: str, job: str, deadline: int
    ) -> None:
        self._ports, self._bank, self._settings = ports, bank, settings
        self._ledger, self._token, self._job, self._deadline = ledger, token, job, deadline
        self._partition = ledger.partition
        self._most = MESSAGES[settings.distillation]
        self._limit = self._most
        self._until = ledgers.end_of(ledger.runs - (0 if settings.auto_capture or ledger.whole else ledger.held))
        """What comes later waits for its own quiet time, and is the next job's."""
        job_item = self._read(jobs.key_of(bank.id, job)) or {}
        # What an earlier message of the same job has done.
        self.told: int = job_item.get("current", 0)
        self.aside: list[tuple[str, str]] = [(message, reason) for message, reason in job_item.get("set_aside", ())]
        self._just_read = not (self._ledger.reset or self._ledger.plan or self._ledger.owes)
        """Whether nothing was done yet since the ledger was read."""

    def work(self, *, takes: bool) -> bool:
        """Everything that is owed and, with `takes`, that waits; False when the deadline came first.

        Raises `Stopped`, `Superseded`, and what makes a pause: `ModelUnavailable`, `DatabaseUnavailable`, `Contended`,
        `IndexUnavailable`, `BlobsUnavailable`.
        """
        if self._ledger.reset is not None:
            if not following.reset(self._ports, self._bank, self._ledger, self._token, deadline=self._deadline):
                return False
            self._read()
            takes = True
        if self._ledger.plan is not None:
            self._write_documents()
        if self._ledger.owes:
            following.follow(self._ports, self._bank, self._ledger, deadline=self._deadline)
            while (batch := self._owed_batch()) is not None:
                if self._late():
                    return False
                self._one(batch)
            following.settled(self._ports, self._bank, self._ledger)
        while takes and (batch := self._next_batch()) is not None:
            if self._late():
                return False
            self._one(batch)
        return True

    def _late(self) -> bool:
        return self._ports.clock.now() >= self._deadline

    def _read(self, *more: Key) -> Item | None:
        """The ledger as it is now. Gives what else was to be read, if anything.

        Raises `Superseded` when the lease is another's, or the source was deleted.
        """
        named = [ledgers.ledger_key(self._bank, self._partition), banks.key_of(self._bank.account, self._bank.id)]
        item, bank, *others = self._ports.table.read([*named, *more])
        if item is None or item.get("lease") != self._token:
            raise Superseded
        if bank is None or bank["generation"] != self._bank.generation:
            raise Superseded
        self._ledger = ledgers.from_item(item)
        return others[0] if others else None

    # ----------------------------------------------------------------------------------------------------------------
    # Reading

    def _next_batch(self) -> _Batch | None:
        """What comes after the ledger's place; None when nothing does."""
        if not self._just_read:
            self._read()
        self._just_read = False
        ledger = self._ledger
        if ledger.at >= self._until:
            return None
        pk = ledgers.runs_pk(self._bank, self._partition)
        page = self._ports.table.query(pk, after="N#" + ledger.at, before="N#" + self._until, limit=2 * self._most)
        found = [_Waiting(item["sk"][2:], from_item(item)) for item in page.items if "text" in item]
        at = page.items[-1]["sk"][2:] if page.after is not None else self._until
        cutoff = self._bank.cutoff(self._ports.clock.now())
        captured = {item["sk"][2:]: item["captured_at"] for item in page.items if "text" in item}
        alive = [one for one in found if not one.message.blank and (cutoff is None or captured[one.place] > cutoff)]
        return self._cut(_Batch(tuple(found), tuple(alive), at))

    def _owed_batch(self) -> _Batch | None:
        """Messages that are tried again; None when there are none left."""
        self._read()
        owed = owing.listed(self._ports, self._bank, self._ledger, "distil", AGAIN)
        if not owed:
            return None
        pk = ledgers.runs_pk(self._bank, self._partition)
        items = self._ports.table.read([Key(pk, "N#" + one.place) for one in owed])
        cutoff = self._bank.cutoff(self._ports.clock.now())
        found = [_Waiting(item["sk"][2:], from_item(item)) for item in items if item is not None]
        fresh = {item["sk"][2:] for item in items if item is not None and (cutoff is None or item["captured_at"] > cutoff)}
        told = [one for one in found if one.place in fresh and not one.message.blank]
        aside = frozenset(item["sk"][2:] for item in items if item is not None and "failed" in item)
        batch = self._cut(_Batch(tuple(found), tuple(told), self._ledger.at, first=aside))
        kept = set(batch.places)
        there = {one.place for one in found}
        return replace(batch, owed=tuple(one for one in owed if one.place in kept or one.place not in there))

    def _cut(self, batch: _Batch) -> _Batch:
        """As much of it as one go takes: of one user for schemas, within the model's window, and what is left of a failure."""
        told = batch.told
        most = min(len(told), self._limit)
        if self._settings.distillation == "none":
            most = min(most, writing.fit_together([verbatim.entry_of(self._bank, self._ledger.key, one.message) for one in told]))
        elif told:
            if self._settings.distillation == "schemas":
                first = told[0].message.user_id
                most = min(most, next((n for n, one in enumerate(told) if one.message.user_id != first), most))
            most = max(1, min(most, self._fitting([one.message for one in told[:most]])))
        if most >= len(told):
            return batch
        end = told[most - 1].place
        kept = tuple(one for one in batch.messages if one.place <= end)
        return replace(batch, messages=kept, told=told[:most], at=end)

    def _fitting(self, told: Sequence[Message]) -> int:
        from . import prompting

        return prompting.fitting(self._chat, told, self._settings)

    @cached_property
    def _chat(self) -> ChatModel:
        return self._ports.chat_models(self._settings.model)

    # ----------------------------------------------------------------------------------------------------------------
    # Distilling

    def _one(self, batch: _Batch) -> None:
        """Distil a batch and commit it; one that fails is halved, and a message that fails alone is set aside."""
        try:
            if self._settings.distillation == "schemas" and batch.told:
                self._plan(batch)
                self._limit = min(self._most, self._limit * 2)
                return
            result = self._make(batch)
        except ModelUnavailable:
            raise
        except ModelError as error:
            if len(batch.told) > 1:
                self._limit = len(batch.told) // 2
                return
            result = _Result(aside=(str(error) or type(error).__name__)[:REASON])
        self._commit(batch, result)
        self._limit = min(self._most, self._limit * 2)

    def _make(self, batch: _Batch) -> _Result:
        told = [one.message for one in batch.told]
        key = self._ledger.key
        if not told:
            return _Result()
        if self._settings.distillation == "none":
            return _Result(tuple(verbatim.entry_of(self._bank, key, message) for message in told))
        from . import prompting

        prompted = prompting.distil(self._chat, told, self._settings, deadline=self._deadline, clock=self._ports.clock)
        made = tuple(verbatim.entry_from(self._bank, key, text, told) for text in prompted.texts)
        return _Result(made, prompted.note)

    # ----------------------------------------------------------------------------------------------------------------
    # Documents

    def _plan(self, batch: _Batch) -> None:
        """Plan a batch's documents, keep the plan, and write them."""
        from . import schemas

        told = [one.message for one in batch.told]
        user = told[0].user_id or self._ledger.key
        plan = schemas.plan(self._ports, self._bank.account, self._settings, self._chat, told, user, deadline=self._deadline)
        if not plan.edits:
            self._commit(batch, _Result(note=plan.note))
            return
        text = json.dumps([edit.to_json() for edit in plan.edits], ensure_ascii=False)
        if len(text.encode()) > PLAN_BYTES:
            raise ModelError(f"the documents planned have {len(text.encode()):,} bytes, {PLAN_BYTES:,} are possible at once")
        made = self._record(batch, _Result(note=plan.note), ())
        pending = {"plan": text, "written": 0, "at": batch.at, "owed": [[one.place, one.stamp] for one in batch.owed]}
        pending["first"] = sorted(batch.first)
        put = records.record(self._bank, self._partition, made, self._ulid(), pending)
        note = Update(
            ledgers.ledger_key(self._bank, self._partition), set={"plan": made.sk}, when=(self._leased(), *self._unedited())
        )
        try:
            self._transact([note, put, self._there()])
        except Superseded:
            # Edited meanwhile: the batch is read again, and planned as it is now. Or the lease is another's.
            self._read()
            return
        self._read()
        self._write_documents()

    def _write_documents(self) -> None:
        """Write what is planned, each document in one transaction with the count of those written; then commit the batch."""
        from . import schemas

        assert self._ledger.plan is not None
        key = records.key_of(self._bank, self._partition, self._ledger.plan)
        item = self._ports.table.read([key])[0]
        if item is None:
            # Past the retention, and swept.
            self._transact([Update(ledgers.ledger_key(self._bank, self._partition), remove=("plan",), when=(self._leased(),))])
            self._read()
            return
        edits = [schemas.Edit.from_json(one) for one in json.loads(item["plan"])]
        mine = Check(ledgers.ledger_key(self._bank, self._partition), (self._leased(),))
        for number in range(item["written"], len(edits)):
            count = Update(key, set={"written": number + 1}, when=(Is("written", "=", number),))
            try:
                schemas.apply(
                    self._ports, self._bank.account, edits[number], along=[count, mine, self._there()], deadline=self._deadline
                )
            except schemas.Outdated:
                # What it was planned on has changed too much: the batch is planned again, on what there is now.
                drop = Update(ledgers.ledger_key(self._bank, self._partition), remove=("plan",), when=(self._leased(),))
                self._transact([drop])
                self._read()
                return
            except Superseded:
                # Either the lease is another's, or this edit was written by a try whose answer was lost.
                self._read()
                self._write_documents()
                return
        made = records.from_item(item)
        batch = self._batch_of(item, made)
        self._commit(batch, _Result(note=made.note), planned=made.sk)

    def _batch_of(self, item: Item, made: Made) -> _Batch:
        """The batch that a plan was made for; its messages may have been edited since, which the commit finds out."""
        blank = Message(id="", run="", sender="", text="", occurred_at=0)
        told = tuple(_Waiting(place, blank) for place in made.told)
        messages = tuple(_Waiting(place, blank) for place in made.messages)
        owed = tuple(Owed(place, "distil", stamp, None) for place, stamp in item["owed"])
        return _Batch(messages, told, item["at"], owed, frozenset(item.get("first", ())))

    # ----------------------------------------------------------------------------------------------------------------
    # Committing

    def _commit(self, batch: _Batch, result: _Result, planned: str | None = None) -> None:
        """Step 5. What other writers of the ledger got in the way of is tried again; what they changed is read again."""
        deadline = self._ports.clock.now() + 30_000
        for _ in range(COMMITS):
            try:
                if result.entries:
                    writing.write(
                        self._ports,
                        self._bank.account,
                        self._bank.id,
                        result.entries,
                        along=partial(self._along, batch, result, planned=planned),
                        deadline=deadline,
                    )
                else:
                    self._transact(self._along(batch, result, (), planned=planned))
                break
            except Superseded:
                before = self._ledger
                self._read()
                if not jobs.goes_on(self._ports, self._bank.id, self._job):
                    raise Stopped from None
                batch = replace(batch, owed=self._still_owed(batch.owed)) if planned else batch
                if planned is None and (self._ledger.edits, self._ledger.at) != (before.edits, before.at):
                    # A message was edited or deleted: the batch is read again, and distilled as it is now.
                    return
        else:
            raise Superseded
        if result.aside is not None:
            self.aside.append((batch.told[0].message.id, result.aside))
            self._ports.metrics.count("MessagesSetAside")
        else:
            self.told += len(batch.told)

    def _still_owed(self, owed: Sequence[Owed]) -> tuple[Owed, ...]:
        """Those of these that were not owed again since."""
        pk = ledgers.runs_pk(self._bank, self._partition)
        items = self._ports.table.read([Key(pk, "A#" + one.place) for one in owed]) if owed else []
        return tuple(one for one, item in zip(owed, items, strict=True) if item is not None and item["stamp"] == one.stamp)

    def _along(self, batch: _Batch, result: _Result, made: Sequence[Entry], *, planned: str | None) -> list[Action]:
        """The ledger's, the job's and the record's part of a commit."""
        ledger, now = self._ledger, self._ports.clock.now()
        aside = result.aside is not None
        values: dict[str, Any] = {"synced_at": now, "lease_until": now + LEASE_MS}
        if not batch.owed:
            through = replace(ledger, at=batch.at).through
            values |= {"at": batch.at, "first_at": now}
            values |= {"held": min(ledger.held, max(ledger.runs - through, 0))} if ledger.held else {}
        # What is planned is partly written: it is done, and what was edited since is owed anyway.
        unedited = () if planned else self._unedited()
        move = Update(
            ledgers.ledger_key(self._bank, self._partition),
            set=values,
            add={"processed": 0 if aside else batch.processed},
            remove=("plan",) if planned else (),
            when=(self._leased(), *unedited, *ledgers.unchanged(ledger, "at", "held")),
        )
        record = self._record(batch, result, tuple(entry.sort for entry in made))
        if planned:
            # By the settings of then: they may have changed since.
            record = replace(record, sk=planned, kind="schemas")
        progress = {"current": self.told + (0 if aside else len(batch.told))}
        told_of: dict[str, Any] = {"note": result.note} if result.note else {}
        if aside:
            told_of["set_aside"] = [list(one) for one in (*self.aside, (batch.told[0].message.id, result.aside))][-100:]
        job = Update(
            jobs.key_of(self._bank.id, self._job), set=progress | told_of, when=(Is("pk", "exists"), Is("status", "=", "running"))
        )
        actions: list[Action] = [move, job, self._there()]
        if record.told:
            actions.append(records.record(self._bank, self._partition, record, self._ulid()))
        pk = ledgers.runs_pk(self._bank, self._partition)
        if aside:
            failed = Key(pk, "N#" + batch.told[0].place)
            actions.append(Update(failed, set={"failed": result.aside}, when=(Is("pk", "exists"),)))
        actions += [owing.done(self._bank, self._partition, one) for one in batch.owed]
        if batch.owed and not aside:
            told = set(record.told)
            actions += [
                Update(Key(pk, "N#" + place), set={"made": record.sk}, remove=("failed", "emptied"), when=(Is("pk", "exists"),))
                for place in batch.places
                if place in told
            ]
        return actions

    def _record(self, batch: _Batch, result: _Result, entries: tuple[str, ...]) -> Made:
        sk = f"Q#{self._ulid()}" if batch.owed else records.sk_of(batch.places) if batch.places else ""
        told = () if result.aside is not None else tuple(one.place for one in batch.told)
        kind = self._settings.distillation
        return Made(sk, kind, batch.places, told, entries, result.note)

    def _leased(self) -> Is:
        return Is("lease", "=", self._token)

    def _there(self) -> Check:
        """That the source was not deleted meanwhile: entries would be written into what came after it."""
        return Check(banks.key_of(self._bank.account, self._bank.id), (Is("generation", "=", self._bank.generation),))

    def _unedited(self) -> tuple[Any, ...]:
        return ledgers.unchanged(self._ledger, "edits")

    def _ulid(self) -> str:
        return ids.ulids(self._ports.clock.now(), ids.LOWEST, 1, self._ports.chance)[0]

    def _transact(self, actions: Sequence[Action]) -> None:
        """One transaction, tried again while it is contended. Raises `Superseded` when a condition does not hold."""

        def attempt() -> bool:
            try:
                self._ports.table.transact(actions)
            except ConditionFailed:
                return False
            return True

        deadline = self._ports.clock.now() + 30_000
        if not until_committed(attempt, self._ports.clock, self._ports.chance, deadline):
            raise Superseded

"""Random lives of one key that is captured: everything a caller may ask for, in any order, also while a model thinks, with models
that fail and a table that is throttled, settings that change, and the key renamed and forgotten.

In the end each message that is there is remembered exactly once, as it was last edited, in entries or, where a summary was made
of them, in that; nothing of what was deleted or forgotten is; and no work, job or mark is left.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from memory_banks import banks, deletion, jobs, renaming
from memory_banks.bank import Bank
from memory_banks.capture import listing, messages, mismatch, runs, trigger
from memory_banks.capture.runs import NewMessage, NewRun
from memory_banks.distillation import distilling
from memory_banks.errors import Conflict, DatabaseUnavailable, Invalid, NotFound
from memory_banks.ports import Action, Contended, Item, ModelError, ModelUnavailable
from memory_banks.requests import CreateBank, UpdateBank

from tests.doubles.world import LATEST, World
from tests.faults.capturing import NOTE, TellingChat

pytestmark = pytest.mark.faults

LIVES = int(os.environ.get("MEMORY_BANKS_RANDOM_LIVES", "400"))

VERBS = ("run", "edit", "flush", "quiet")
"""These come more often."""
RARE = ("remove", "empty", "regenerate", "cancel", "retry", "auto", "kind", "off", "forget", "rename", "hour", "no_time")
WAITING = ("quiet", "hour", "no_time")
"""What does not happen while a model thinks: there is one function at work."""


class Life:
    """A bank, its key, and what is to be remembered of it: the text's note by the message's id, None for an emptied one."""

    def __init__(self, seed: int, **settings: Any) -> None:
        self.chance = random.Random(seed)
        self.world = World(chat=TellingChat(), chance=random.Random(seed + 1))
        capture = {"threshold": self.chance.choice([1, 3, 50]), "distillation": self._kind()}
        made = CreateBank(name="captured", capture=capture, **settings)
        self._id = banks.create(self.world, "acme", made, LATEST).id
        self.healthy = False
        self._fail_at = self.chance.choice([0, 0.2]), self.chance.choice([0, 0.2]), self.chance.choice([0, 0, 0.1])
        self._harm()
        self.key = "k"
        self.told: dict[str, str | None] = {}
        self.touched: set[str] = set()
        self.log: list[str] = []
        self._notes = 0

    @property
    def bank(self) -> Bank:
        return banks.get(self.world, "acme", self._id)

    # ----------------------------------------------------------------------------------------------------------------
    # What goes wrong

    def _harm(self) -> None:
        """Let the model fail, and act while it thinks, and the table be throttled."""
        world, complete = self.world, self.world.chat.complete
        transact, write = world.table.transact, world.table.write
        acting = False

        def thinking(system: str, told: Sequence[Any], **rest: Any) -> str:
            nonlocal acting
            unavailable, poison, _ = self._fail_at
            if not (acting or self.healthy) and self.chance.random() < 0.3:
                acting = True
                self.act(self.chance.choice([one for one in (*VERBS, *RARE) if one not in WAITING]))
                acting = False
            if self.chance.random() < unavailable:
                raise ModelUnavailable("down")
            if self.chance.random() < poison:
                raise ModelError("can't read it")
            if "Keep all." in system:
                # What is shown twice is told twice: nothing that was doubled gets lost in a summary.
                return "The user said: " + ", ".join(NOTE.findall("\n".join(one.content for one in told)))
            return str(complete(system, told, **rest))

        def throttle() -> None:
            if self.chance.random() < self._fail_at[2]:
                raise Contended("throttled")

        def throttled_transact(actions: Sequence[Action]) -> None:
            throttle()
            transact(actions)

        def throttled_write(action: Any) -> Item:
            throttle()
            return write(action)

        world.chat.complete = thinking
        world.table.transact, world.table.write = throttled_transact, throttled_write

    def heal(self) -> None:
        """Nothing fails any more, and all that waits may be distilled."""
        self.healthy = True
        self._fail_at = 0, 0, 0
        if self.bank.capture is None:
            self._change(distillation="none")
        self._change(auto_capture=True)

    # ----------------------------------------------------------------------------------------------------------------
    # What may happen

    def live(self) -> None:
        for _ in range(self.chance.randint(5, 40)):
            self.act(self.chance.choice(VERBS * 3 + RARE))

    def act(self, verb: str) -> None:
        self.log.append(verb)
        # Jobs and deletions of the same millisecond can't be told apart.
        self.world.clock.advance(0.01)
        with suppress(Conflict, Invalid, NotFound, Contended):
            getattr(self, verb)()

    def run(self) -> None:
        notes = [self._note() for _ in range(self.chance.randint(1, 3))]
        new = NewRun(self.key, tuple(NewMessage("user", self._text(note), id=f"m-{note}") for note in notes), id=f"r-{notes[0]}")
        runs.capture(self.world, "acme", self._id, new, deadline=self.world.deadline())
        self.told |= {f"m-{note}": note for note in notes}

    def edit(self) -> None:
        note = self._note()
        messages.edit(self.world, self.bank, message := self._one(), self._text(note), deadline=self.world.deadline())
        self.told[message] = note

    def empty(self) -> None:
        messages.edit(self.world, self.bank, message := self._one(), " ", deadline=self.world.deadline())
        self.told[message] = None

    def remove(self) -> None:
        messages.delete(self.world, self.bank, message := self._one(), deadline=self.world.deadline())
        del self.told[message]

    def flush(self) -> None:
        trigger.flush(self.world, self.bank, self.key, deadline=self.world.deadline())

    def regenerate(self) -> None:
        trigger.regenerate(self.world, self.bank, self.key, deadline=self.world.deadline())

    def cancel(self) -> None:
        job = jobs.cancel(self.world, self.bank, self.chance.choice(self._jobs()[:3] or [{"sk": "none"}])["sk"])
        trigger.cancelled(self.world, self.bank, job)

    def retry(self) -> None:
        job = self.chance.choice(self._jobs()[:5] or [{"sk": "none"}])
        messages.retry(self.world, self.bank, job["sk"], deadline=self.world.deadline())

    def auto(self) -> None:
        if self.bank.capture is not None:
            self._change(auto_capture=self.chance.random() < 0.5)

    def kind(self) -> None:
        self._change(distillation=self._kind())

    def off(self) -> None:
        change = UpdateBank(capture=None)
        banks.update(self.world, "acme", self._id, change, LATEST, deadline=self.world.deadline())

    def forget(self) -> None:
        if self.chance.random() < 0.3:
            deletion.forget_key(self.world, self.bank, self.key, deadline=self.world.deadline())
            self.told.clear()

    def rename(self) -> None:
        to = self.chance.choice("klm")
        renaming.rename(self.world, self.bank, self.key, to, deadline=self.world.deadline())
        self.key = to

    def quiet(self) -> None:
        self.world.clock.advance(self.chance.choice([1, 16, 40]))
        self._drain()

    def hour(self) -> None:
        for _ in range(4):
            self.world.clock.advance(900)
            self._drain()
        self.world.sweep()
        self._drain()

    def no_time(self) -> None:
        """A function whose time is over before it begins a batch."""
        for message in self.world.distillation.take()[:2]:
            self._handle(message, 0)

    # ----------------------------------------------------------------------------------------------------------------

    def _change(self, **capture: Any) -> None:
        banks.update(self.world, "acme", self._id, UpdateBank(capture=capture), LATEST, deadline=self.world.deadline())

    def _kind(self) -> str:
        return self.chance.choice(["none", "prompt"])

    def _note(self) -> str:
        self._notes += 1
        return f"note{self._notes}"

    def _text(self, note: str) -> str:
        return f"{note} was said" + " as it was told" * 12

    def _one(self) -> str:
        if not self.told:
            raise NotFound("There is no message.")
        message = self.chance.choice(sorted(self.told))
        self.touched.add(message)
        return message

    def _jobs(self) -> list[Any]:
        return [job for job in jobs.listed(self.world, self.bank)[0] if job["kind"] == "distillation"]

    def _handle(self, message: dict[str, Any], milliseconds: int) -> None:
        try:
            distilling.handle(self.world, message, deadline=self.world.clock.now() + milliseconds)
        except (Contended, DatabaseUnavailable):
            # The queue hands it out again.
            self.world.distillation.sent.append(message)

    def _drain(self) -> None:
        queue = self.world.distillation
        queue.sent, queue.delayed = queue.sent + queue.delayed, []
        for _ in range(2_000):
            if not queue.sent:
                break
            for message in queue.take():
                self._handle(message, 270_000)
        else:
            raise AssertionError("distilling does not end")
        healthy, fail_at = self.healthy, self._fail_at
        self.healthy, self._fail_at = True, (0, 0, 0)
        self.world.drain()
        self.healthy, self._fail_at = healthy, fail_at

    def end(self) -> None:
        """Let all that waits be done, and what was set aside be tried again."""
        self.heal()
        for _ in range(3):
            self.hour()
        self.flush()
        for _ in range(12):
            self.hour()
        for job in self._jobs():
            if job.get("set_aside"):
                with suppress(Conflict):
                    messages.retry(self.world, self.bank, job["sk"], deadline=self.world.deadline())
        for _ in range(3):
            self.hour()

    def remembered(self) -> Counter[str]:
        return Counter(note for text in self.world.texts(self.bank, self.key) for note in NOTE.findall(text))

    def check_nothing_is_left(self) -> None:
        ledger = listing.get(self.world, self.bank, self.key)
        work = (ledger.lease, ledger.running, ledger.plan, ledger.reset, ledger.reset_at, ledger.owes, ledger.asked)
        assert (ledger.pending, *work) == (0, None, None, None, None, None, False, False)
        assert {job["status"] for job in self._jobs()} <= {"completed", "failed", "cancelled"}
        assert not mismatch.check(self.world, self.bank, self.key)["mismatch"]
        self.world.clock.advance(7_200)
        assert self.world.sweep().ledgers == 0


@pytest.mark.parametrize("first", range(0, LIVES, 50))
def test_each_message_is_remembered_once_whatever_is_done(first: int) -> None:
    for seed in range(first, first + 50):
        life = Life(seed)
        try:
            life.live()
            life.end()
            assert life.remembered() == Counter(note for note in life.told.values() if note)
            life.check_nothing_is_left()
        except BaseException as error:
            error.add_note(f"life {seed}: {' '.join(life.log)}")
            raise


@pytest.mark.parametrize("first", range(0, LIVES, 50))
def test_each_message_is_remembered_once_where_entries_are_compacted(first: int) -> None:
    """An edit does not reach into a summary: of messages that were edited, either wording, and no two of one."""
    for seed in range(first, first + 50):
        life = Life(seed, max_turns=random.Random(seed).choice([3, 6]), compaction_prompt="Keep all.")
        life.forget = lambda: None  # type: ignore[method-assign]
        try:
            life.live()
            life.end()
            found = life.remembered()
            untouched = {note for message, note in life.told.items() if note and message not in life.touched}
            assert untouched <= set(found) and max(found.values(), default=0) <= 1
            life.check_nothing_is_left()
        except BaseException as error:
            error.add_note(f"life {seed}: {' '.join(life.log)}")
            raise

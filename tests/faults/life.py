"""The life of a service under faults, and the model it is held against.

A `Life` is a whole service in one process whose every port call passes a gate. Its verbs are what clients, queues and schedules
do; each runs as a process of its own, so a death ends the verb and nothing else. What was acknowledged goes into `Expected`.
"""

from __future__ import annotations

import copy
import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_banks import banks, compaction, corrections, deletion, ingestion, loading, sweeping, writing
from memory_banks.bank import Bank
from memory_banks.distillation import distilling
from memory_banks.entries import Entry, NewEntry
from memory_banks.errors import Conflict, Gone, Invalid, MemoryBanksError, NotFound
from memory_banks.ports import Contended, IndexUnavailable, ModelError, QueueUnavailable, TableUnavailable
from memory_banks.requests import CreateBank, UpdateBank

from tests.doubles.clock import ManualClock
from tests.doubles.embedding import HashedEmbedders
from tests.doubles.memory_index import MemoryIndex
from tests.doubles.memory_table import LaggingTable
from tests.doubles.world import LATEST, Counts
from tests.faults.gate import INDEX, TABLE, Death, EmbeddersThrough, Gate, Through

VISIBILITY = 180
"""Seconds after which a message comes back that was not handled."""

RECEIVES = 8
"""How often a message comes before it is set aside."""

FAILURES = (MemoryBanksError, Contended, TableUnavailable, QueueUnavailable, IndexUnavailable, ModelError)
"""What a verb may raise: the errors a caller may see, and the ports' own."""

FILLER = " and some more words, so that a summary of it can be smaller"
LONG = FILLER * 6


class FoldingChat:
    """A chat model that tells the numbers of all notes it is given, those of an earlier summary too: `told 1-5 8`."""

    model = "double/folding"
    window = 100_000

    def __init__(self) -> None:
        self.calls = 0
        self.during: Callable[[], object] | None = None
        """What happens, once, while it thinks."""

    def complete(self, system: str, messages: Sequence[Any], *, max_tokens: int, timeout_seconds: float) -> str:
        self.calls += 1
        during, self.during = self.during, None
        if during:
            during()
        return tell(told_in("\n".join(message.content for message in messages)))


def tell(notes: Iterable[int]) -> str:
    """The notes as ranges."""
    ranges: list[list[int]] = []
    for number in sorted(notes):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return "told " + " ".join(f"{first}-{last}" if first < last else str(first) for first, last in ranges)


def told_in(text: str) -> list[int]:
    """The numbers of the notes in a text, each as often as it is there."""
    found = [int(number) for number in re.findall(r"\bnote(\d+)\b", text)]
    for ranges in re.findall(r"\btold ((?:\d+(?:-\d+)?[ \n]?)+)", text):
        for one in ranges.split():
            first, _, last = one.partition("-")
            found += range(int(first), int(last or first) + 1)
    return found


class SkewedClock:
    """A host's clock that is off by so many ms."""

    def __init__(self, clock: Any, skew: int) -> None:
        self._clock, self._skew = clock, skew

    def now(self) -> int:
        return int(self._clock.now()) + self._skew

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


class TimedMessages:
    """A queue whose messages have a time at which they are visible, and come back until they are handled."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.waiting: list[tuple[int, int, dict[str, Any]]] = []
        """(visible at, times received, message)"""
        self.set_aside: list[dict[str, Any]] = []

    def send(self, messages: Sequence[Any], delay_seconds: int = 0) -> None:
        self.waiting += [(self._clock.now() + delay_seconds * 1000, 0, dict(one)) for one in messages]

    def take(self, choose: Callable[[int], int] = lambda count: 0) -> tuple[int, dict[str, Any]] | None:
        """One visible message and how often it has come before."""
        visible = [one for one in self.waiting if one[0] <= self._clock.now()]
        if not visible:
            return None
        one = visible[choose(len(visible))]
        self.waiting.remove(one)
        return one[1], one[2]

    def give_back(self, received: int, message: dict[str, Any]) -> None:
        if received + 1 >= RECEIVES:
            self.set_aside.append(message)
        else:
            self.waiting.append((self._clock.now() + VISIBILITY * 1000, received + 1, message))


@dataclass
class Note:
    """What is known of one text that a client wrote, or corrected another to."""

    key: str
    created_at: int
    entry: str | None = None
    """The id of the entry that has, or had, this text."""
    version: int = 1
    doubts: int = 0
    """Requests under way, or failed, that may have made it, or may have removed it."""
    gone: bool = False
    pending: bool = False
    """Whether it is a correction under way, or one whose answer was lost."""


@dataclass
class Expected:
    """The model: what a bank must remember. What was acknowledged is certain; a failed request leaves its notes in doubt."""

    notes: dict[int, Note] = field(default_factory=dict)
    batches: list[list[int]] = field(default_factory=list)
    """Notes of one transaction each: all of them are there, or none, until one is changed."""
    deleting: Counter[str] = field(default_factory=Counter)
    """How many requests to delete an entry are under way, by its id."""

    def doubt(self, numbers: Iterable[int]) -> list[int]:
        """A request begins that may remove these notes."""
        doubted = list(numbers)
        for number in doubted:
            self.notes[number].doubts += 1
        self.batches = [batch for batch in self.batches if not set(batch) & set(doubted)]
        return doubted

    def certain(self, numbers: Iterable[int], *, gone: bool) -> None:
        """A request was answered: these notes are gone, or it has not touched them."""
        for number in numbers:
            self.notes[number].doubts -= 1
            self.notes[number].gone |= gone

    def of(self, entry: str | None) -> list[int]:
        return [number for number, note in self.notes.items() if note.entry == entry and entry is not None]

    def under(self, key: str | None) -> list[int]:
        return [number for number, note in self.notes.items() if key in (None, note.key) and not note.gone]


@dataclass
class Life:
    """All ports behind one gate, one bank, and the verbs of clients, queues and schedules."""

    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    clock: Any = field(default_factory=ManualClock)
    ordered: bool = True
    """Whether one client writes after the other, so that the notes' numbers tell their order."""

    def __post_init__(self) -> None:
        self.gate = Gate()
        self.chance: Any = random.Random(self.seed)
        self.queues = {name: TimedMessages(self.clock) for name in ("ingestion", "compaction", "distillation")}
        self.memory_table = LaggingTable()
        self.memory_index = MemoryIndex()
        self.model = FoldingChat()
        self.table: Any = Through(self.gate, "table", self.memory_table, TABLE)
        self.index: Any = Through(self.gate, "index", self.memory_index, INDEX)
        self.ingestion: Any = Through(self.gate, "queue", self.queues["ingestion"], {"send"})
        self.compaction: Any = Through(self.gate, "queue", self.queues["compaction"], {"send"})
        self.distillation: Any = Through(self.gate, "queue", self.queues["distillation"], {"send"})
        self.embedders: Any = EmbeddersThrough(self.gate, HashedEmbedders())
        self.chat: Any = Through(self.gate, "chat", self.model, {"complete"})
        self.chat_models: Any = lambda model: self.chat
        self.reranker: Any = None
        self.metrics: Any = Counts()
        self.blobs: Any = None
        wanted = {"mode": "custom", "embedding_model": "hashed/small", "chunk_size": 100, "retention_days": 0} | self.settings
        self.bank = banks.create(self, "acme", CreateBank(name="bank", **wanted), LATEST)
        self.expected = Expected()
        self.numbers = itertools.count()
        self.sheds = self.bank.compacts and self.bank.compaction_prompt is None
        """Whether the bank ever had a threshold without a prompt: then its oldest notes may be gone."""

    def host(self, skew: int) -> Life:
        """The same service on a host whose clock is off by so many ms."""
        other = copy.copy(self)
        other.clock = SkewedClock(self.clock, skew)
        return other

    # -- running processes ------------------------------------------------------------------------------------------

    def process(self, body: Callable[[], Any]) -> tuple[bool, Any]:
        """Run one process: (it ended well, its answer or what ended it). Other errors than the known ones are bugs."""
        try:
            return True, body()
        except Death as death:
            return False, death
        except FAILURES as error:
            return False, error

    def deadline(self) -> int:
        return int(self.clock.now()) + 25_000

    def current(self) -> Bank:
        """The bank as a request reads it first. It may have been deleted."""
        return banks.get(self, "acme", self.bank.id)

    # -- clients ----------------------------------------------------------------------------------------------------

    def write(self, key: str = "k", count: int = 1, *, text: str = FILLER, ids: bool = False, once: str | None = None) -> bool:
        """Write some notes in one request. `once`: with this Idempotency-Key."""
        return self.send([next(self.numbers) for _ in range(count)], key, text, ids, once)

    def send(self, numbers: list[int], key: str = "k", text: str = FILLER, ids: bool = True, once: str | None = None) -> bool:
        """Send a write request; notes with ids may be sent again. What can be repeated safely is tried three times."""
        speaker = "user" if self.bank.conversation else None
        new = [NewEntry(f"note{n}{text}", key=key, speaker=speaker, id=f"id-{n}" if ids else None) for n in numbers]
        idempotency = writing.Idempotency(once, f"{numbers}") if once else None
        for number in numbers:
            self.expected.notes[number] = Note(key, self.clock.now(), doubts=1)
        if len(numbers) > 1:
            self.expected.batches.append(numbers)
        for _ in range(3 if once or ids else 1):
            well, answer = self.process(
                lambda: writing.write(self, "acme", self.bank.id, new, idempotency=idempotency, deadline=self.deadline())
            )
            if well:
                for number, written in zip(numbers, answer, strict=True):
                    note = self.expected.notes[number]
                    note.entry, note.created_at = written.entry.id, written.entry.created_at
                self.expected.certain(numbers, gone=False)
                return True
        if isinstance(answer, Invalid | Conflict):
            raise answer
        return False

    def correct(self, number: int, text: str = FILLER) -> None:
        old = self.expected.notes[number]
        if old.entry is None:
            return
        new = next(self.numbers)
        doubted = self.expected.doubt(self.expected.of(old.entry))
        self.expected.notes[new] = Note(old.key, old.created_at, old.entry, old.version + 1, doubts=1, pending=True)
        well, answer = self.process(
            lambda: corrections.correct(self, self.current(), old.entry, content=f"note{new}{text}", deadline=self.deadline())
        )
        if isinstance(answer, Gone | NotFound):
            self.expected.certain(doubted, gone=False)
            self.expected.certain([new], gone=True)
        elif well:
            self.expected.notes[new].version = answer.version
            self.expected.notes[new].pending = False
            self.expected.certain([*doubted, new], gone=False)
            mine = [self.expected.notes[other] for other in self.expected.of(old.entry)]
            newest = max(note.version for note in mine if not note.pending)
            for note in mine:
                note.gone |= not note.pending and note.version < newest
            if any(note.pending and not note.gone for note in mine) or self.expected.deleting[old.entry]:
                # Another correction, under way or unanswered, or a deletion may have followed this one.
                self.expected.doubt([new])

    def delete(self, number: int) -> None:
        entry = self.expected.notes[number].entry
        if entry is None:
            return
        doubted = self.expected.doubt(self.expected.of(entry))
        self.expected.deleting[entry] += 1
        well, answer = self.process(lambda: deletion.delete_entry(self, self.current(), entry, deadline=self.deadline()))
        self.expected.deleting[entry] -= 1
        if isinstance(answer, Gone | NotFound):
            self.expected.certain(doubted, gone=False)
        elif well:
            self.expected.certain(doubted, gone=True)
            for other in self.expected.of(entry):
                self.expected.notes[other].gone = True

    def delete_summary(self, key: str = "k") -> None:
        """Delete the living summary of a key, if there is one, and with it what it retells."""
        for summary in [entry for entry in self.load(key) if entry.kind == "summary"]:
            doubted = self.expected.doubt(told_in(summary.content))
            well, answer = self.process(
                lambda id=summary.id: deletion.delete_entry(self, self.current(), id, deadline=self.deadline())  # type: ignore[misc]
            )
            if well or isinstance(answer, Gone | NotFound):
                self.expected.certain(doubted, gone=well)

    def forget(self, key: str = "k") -> None:
        self._forget_all(key, lambda: deletion.forget_key(self, self.current(), key, deadline=self.deadline()))

    def delete_source(self) -> None:
        self._forget_all(None, lambda: deletion.delete_source(self, self.current(), deadline=self.deadline()))

    def delete_bank(self) -> None:
        self._forget_all(None, lambda: deletion.delete_bank(self, self.current(), deadline=self.deadline()))

    def _forget_all(self, key: str | None, request: Callable[[], Any]) -> None:
        """A request that forgets what was written before it began, and perhaps what is written meanwhile."""
        settled = [number for number in self.expected.under(key) if not self.expected.notes[number].doubts]
        doubted = self.expected.doubt(self.expected.under(key))
        well, _ = self.process(request)
        if well:
            self.expected.certain(settled, gone=True)
            self.expected.doubt(number for number in self.expected.under(key) if number not in doubted)

    def change(self, **settings: Any) -> None:
        """Change settings. What is past the retention now may be removed already, or come back."""
        self.sheds |= "compaction_prompt" in settings and settings["compaction_prompt"] is None
        with self.gate.open():
            cutoff = self.current().cutoff(self.clock.now())
        if "retention_days" in settings and cutoff is not None:
            self.expected.doubt(number for number, note in self.expected.notes.items() if note.created_at <= cutoff)
        self.process(lambda: banks.update(self, "acme", self.bank.id, UpdateBank(**settings), LATEST, deadline=self.deadline()))

    def ask_for_compaction(self, key: str | None = None) -> None:
        self.process(lambda: compaction.request(self, self.current(), key))

    # -- queues and schedules ---------------------------------------------------------------------------------------

    def handle(self, queue: str, choose: Callable[[int], int] = lambda count: 0) -> bool:
        """Handle one visible message; False when there is none."""
        taken = self.queues[queue].take(choose)
        if taken is None:
            return False
        received, message = taken
        if queue == "ingestion":
            well, _ = self.process(lambda: ingestion.ingest(self, message))
        elif queue == "distillation":
            well, _ = self.process(lambda: distilling.handle(self, message, deadline=self.clock.now() + 270_000))
        else:
            well, _ = self.process(lambda: compaction.handle(self, message, deadline=self.clock.now() + 120_000))
        if not well:
            self.queues[queue].give_back(received, message)
        return True

    def work(self) -> None:
        """Handle what is visible in the queues, and what comes of it."""
        while self.handle("ingestion") or self.handle("compaction") or self.handle("distillation"):
            pass

    def sweep(self) -> None:
        for schedule in ("compaction", "retention"):
            self.process(lambda schedule=schedule: sweeping.sweep(self, schedule, deadline=self.clock.now() + 600_000))  # type: ignore[misc]

    def settle(self, hours: int = 6) -> None:
        """Nothing fails any more, and the schedules run for some hours."""
        self.gate.decide = None
        for _ in range(hours):
            for _ in range(3):
                self.work()
                self.clock.advance(1200)
            self.sweep()
        self.work()

    # -- looking ----------------------------------------------------------------------------------------------------

    def load(self, key: str = "k") -> list[Entry]:
        """All that a key shows, with nothing failing."""
        found: list[Entry] = []
        cursor = None
        with self.gate.open():
            while True:
                page = loading.load(self, self.current(), loading.Load(key=key, limit=40, cursor=cursor))
                found += page.entries
                cursor = page.next_cursor
                if cursor is None:
                    return found

"""The life of a service under faults, and the model it is held against.

A `Life` is a whole service in one process whose every port call passes a gate. Its verbs are what clients, queues and schedules
do; each runs as a process of its own, so a death ends the verb and nothing else. What was acknowledged goes into `Expected`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from memory_banks import banks, compaction, corrections, deletion, ingestion, sweeping, writing
from memory_banks.bank import Bank
from memory_banks.entries import Entry, NewEntry
from memory_banks.errors import Conflict, Gone, Invalid, MemoryBanksError, NotFound
from memory_banks.ports import Contended, IndexUnavailable, ModelError, QueueUnavailable, TableUnavailable
from memory_banks.requests import CreateBank, UpdateBank

from tests.doubles.clock import ManualClock
from tests.doubles.embedding import HashedEmbedders
from tests.doubles.memory_index import MemoryIndex
from tests.doubles.memory_table import MemoryTable
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

State = Literal["kept", "perhaps", "gone"]


class FoldingChat:
    """A chat model that tells the numbers of all notes it is given, those of an earlier summary too: `told 1-5 8`."""

    model = "double/folding"
    window = 100_000

    def __init__(self) -> None:
        self.calls = 0

    def complete(self, system: str, messages: Sequence[Any], *, max_tokens: int, timeout_seconds: float) -> str:
        self.calls += 1
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
    state: State
    created_at: int
    shed: bool = False
    """Whether a compaction without a summary may have dropped it."""


@dataclass
class Expected:
    """The model: what a bank must remember. An acknowledged note is kept, a failed request leaves it in doubt."""

    notes: dict[int, Note] = field(default_factory=dict)
    batches: list[list[int]] = field(default_factory=list)
    """Notes of one transaction each: all of them are there, or none, until one is changed."""

    def wrote(self, key: str, numbers: Sequence[int], state: State, at: int) -> None:
        for number in numbers:
            self.notes[number] = Note(key, state, at)
        if len(numbers) > 1:
            self.batches.append(list(numbers))

    def deleted(self, numbers: Iterable[int], certain: bool) -> None:
        for number in numbers:
            note = self.notes[number]
            if certain:
                note.state = "gone"
            elif note.state == "kept":
                note.state = "perhaps"
            self.batches = [batch for batch in self.batches if number not in batch]

    def corrected(self, old: int, new: int, certain: bool) -> None:
        self.notes[new] = replace(self.notes[old], state="kept" if certain else "perhaps")
        self.deleted([old], certain)

    def under(self, key: str | None) -> list[int]:
        return [number for number, note in self.notes.items() if key in (None, note.key)]


@dataclass
class Life:
    """All ports behind one gate, one bank, and the verbs of clients, queues and schedules."""

    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        self.gate = Gate()
        self.clock: Any = ManualClock()
        self.chance: Any = random.Random(self.seed)
        self.queues = {name: TimedMessages(self.clock) for name in ("ingestion", "compaction")}
        self.memory_table = MemoryTable()
        self.memory_index = MemoryIndex()
        self.model = FoldingChat()
        self.table: Any = Through(self.gate, "table", self.memory_table, TABLE)
        self.index: Any = Through(self.gate, "index", self.memory_index, INDEX)
        self.ingestion: Any = Through(self.gate, "queue", self.queues["ingestion"], {"send"})
        self.compaction: Any = Through(self.gate, "queue", self.queues["compaction"], {"send"})
        self.embedders: Any = EmbeddersThrough(self.gate, HashedEmbedders())
        self.chat: Any = Through(self.gate, "chat", self.model, {"complete"})
        self.metrics: Any = Counts()
        self.blobs: Any = None
        wanted = {"mode": "custom", "embedding_model": "hashed/small", "chunk_size": 100, "retention_days": 0} | self.settings
        self.bank = banks.create(self, "acme", CreateBank(name="bank", **wanted), LATEST)
        self.old_banks: list[Bank] = []
        self.expected = Expected()
        self.entries: dict[int, str] = {}
        """The id of each note that was acknowledged."""
        self.named = 0

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

    def new(self, count: int, key: str, text: str, ids: bool) -> tuple[list[int], list[NewEntry]]:
        numbers = list(range(self.named, self.named + count))
        self.named += count
        speaker = "user" if self.bank.conversation else None
        return numbers, [NewEntry(f"note{n}{text}", key=key, speaker=speaker, id=f"id-{n}" if ids else None) for n in numbers]

    def write(self, key: str = "k", count: int = 1, *, text: str = FILLER, ids: bool = False, once: str | None = None) -> bool:
        """Write some notes in one request. `once`: with this Idempotency-Key, and again until it is acknowledged."""
        numbers, new = self.new(count, key, text, ids)
        return self.send(numbers, new, once)

    def write_again(self, numbers: list[int], key: str = "k", text: str = FILLER) -> bool:
        """Import notes again that were written with ids of their own."""
        speaker = "user" if self.bank.conversation else None
        return self.send(numbers, [NewEntry(f"note{n}{text}", key=key, speaker=speaker, id=f"id-{n}") for n in numbers])

    def send(self, numbers: list[int], new: list[NewEntry], once: str | None = None) -> bool:
        """Send a write request; with an Idempotency-Key or ids of its own a client may repeat it."""
        idempotency = writing.Idempotency(once, f"{numbers}") if once else None
        began = int(self.clock.now())
        key = new[0].key
        for _ in range(3 if once or new[0].id else 1):
            well, answer = self.process(
                lambda: writing.write(self, "acme", self.bank.id, new, idempotency=idempotency, deadline=self.deadline())
            )
            if well:
                self.expected.wrote(key, numbers, "kept", began)
                for number, written in zip(numbers, answer, strict=True):
                    self.entries[number] = written.entry.id
                return True
        if isinstance(answer, Invalid | Conflict):
            raise answer
        self.expected.wrote(key, numbers, "perhaps", began)
        return False

    def correct(self, number: int, text: str = FILLER) -> None:
        [new], [entry] = self.new(1, "", text, False)
        well, answer = self.process(
            lambda: corrections.correct(self, self.current(), self.entries[number], content=entry.content, deadline=self.deadline())
        )
        if isinstance(answer, Gone | NotFound):
            return
        self.expected.corrected(number, new, well)
        self.entries[new] = self.entries[number]

    def delete(self, number: int) -> None:
        well, answer = self.process(
            lambda: deletion.delete_entry(self, self.current(), self.entries[number], deadline=self.deadline())
        )
        if not isinstance(answer, Gone | NotFound):
            self.expected.deleted([number], well)

    def delete_summary(self, key: str = "k") -> None:
        """Delete the living summary of a key, and with it what it retells."""
        [summary] = [entry for entry in self.load(key) if entry.kind == "summary"]
        well, answer = self.process(lambda: deletion.delete_entry(self, self.current(), summary.id, deadline=self.deadline()))
        if not isinstance(answer, Gone | NotFound):
            self.expected.deleted(told_in(summary.content), well)

    def forget(self, key: str = "k") -> None:
        well, _ = self.process(lambda: deletion.forget_key(self, self.current(), key, deadline=self.deadline()))
        self.expected.deleted(self.expected.under(key), well)

    def delete_source(self) -> None:
        self.old_banks.append(self.bank)
        well, _ = self.process(lambda: deletion.delete_source(self, self.current(), deadline=self.deadline()))
        self.expected.deleted(self.expected.under(None), well)

    def delete_bank(self) -> None:
        well, answer = self.process(lambda: deletion.delete_bank(self, self.current(), deadline=self.deadline()))
        self.expected.deleted(self.expected.under(None), well or isinstance(answer, NotFound))

    def change(self, **settings: Any) -> None:
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
        else:
            well, _ = self.process(lambda: compaction.handle(self, message, deadline=self.clock.now() + 120_000))
        if not well:
            self.queues[queue].give_back(received, message)
        return True

    def work(self) -> None:
        """Handle what is visible in both queues, and what comes of it."""
        while self.handle("ingestion") or self.handle("compaction"):
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
        from memory_banks import loading

        decide, self.gate.decide = self.gate.decide, None
        found: list[Entry] = []
        cursor = None
        while True:
            page = loading.load(self, self.current(), loading.Load(key=key, limit=40, cursor=cursor))
            found += page.entries
            cursor = page.next_cursor
            if cursor is None:
                break
        self.gate.decide = decide
        return found

"""A whole memory service in one process: the real domain over doubles of our own ports, driven step by step by a test."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_banks import banks, compaction, ingestion, loading, sweeping, writing
from memory_banks.adapters.embedded.index import EmbeddedIndex
from memory_banks.bank import Bank
from memory_banks.capture import runs
from memory_banks.capture.runs import Captured, NewMessage, NewRun
from memory_banks.distillation import distilling
from memory_banks.entries import Entry, NewEntry
from memory_banks.marking import Schedule
from memory_banks.ports import UnknownModel
from memory_banks.requests import CreateBank

from tests.doubles.clock import ManualClock
from tests.doubles.embedding import HashedEmbedders
from tests.doubles.memory_blobs import MemoryBlobs
from tests.doubles.memory_table import MemoryTable

LATEST = "2026-10-21"
MINUTE = 60_000


class Messages:
    """A queue that keeps what it was sent until a test takes it; delayed messages stand aside."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.delayed: list[dict[str, Any]] = []

    def send(self, messages: Sequence[Mapping[str, Any]], delay_seconds: int = 0) -> None:
        (self.delayed if delay_seconds else self.sent).extend(dict(message) for message in messages)

    def take(self) -> list[dict[str, Any]]:
        taken, self.sent = self.sent, []
        return taken


class Counts:
    """Metrics that are only counted."""

    def __init__(self) -> None:
        self.counted: dict[str, int] = {}

    def count(self, name: str, value: int = 1, **dimensions: str) -> None:
        self.counted[name] = self.counted.get(name, 0) + value


class ShortChat:
    """A chat model whose summary names what it was told, shortly, so that a test sees what was folded in."""

    model = "double/short"
    window = 100_000

    def __init__(self) -> None:
        self.calls = 0

    def complete(self, system: str, messages: Sequence[Any], *, max_tokens: int, timeout_seconds: float) -> str:
        self.calls += 1
        return f"summary {self.calls}"


@dataclass
class World:
    """All ports of one test and the verbs of the service."""

    clock: Any = field(default_factory=ManualClock)
    chance: Any = field(default_factory=lambda: random.Random(0))
    table: Any = field(default_factory=MemoryTable)
    ingestion: Any = field(default_factory=Messages)
    compaction: Any = field(default_factory=Messages)
    exports: Any = field(default_factory=Messages)
    distillation: Any = field(default_factory=Messages)
    index: Any = field(default_factory=lambda: EmbeddedIndex(":memory:"))
    embedders: Any = field(default_factory=HashedEmbedders)
    metrics: Any = field(default_factory=Counts)
    chat: Any = field(default_factory=ShortChat)
    reranker: Any = None
    blobs: Any = field(default_factory=MemoryBlobs)
    others: dict[str, Any] = field(default_factory=dict)
    """Chat models besides the service's, by name."""

    def chat_models(self, model: str | None) -> Any:
        if model in (None, self.chat.model):
            return self.chat
        if model not in self.others:
            raise UnknownModel(f"Unknown model {model!r}: one of {', '.join([self.chat.model, *self.others])}.")
        return self.others[model]

    def deadline(self) -> int:
        return int(self.clock.now()) + 25_000

    def bank(self, **settings: Any) -> Bank:
        return banks.create(self, "acme", CreateBank(name="bank", **settings), LATEST)

    def again(self, bank: Bank) -> Bank:
        """The bank as it is now."""
        return banks.get(self, bank.account, bank.id)

    def write(self, bank: Bank, *texts: str, key: str = "k", speaker: str | None = "user", **rest: Any) -> list[Entry]:
        speaker = speaker if bank.conversation else None
        new = [NewEntry(text, key=key, speaker=speaker, **rest) for text in texts]
        return [one.entry for one in writing.write(self, bank.account, bank.id, new, deadline=self.deadline())]

    def load(self, bank: Bank, key: str = "k", **request: Any) -> list[Entry]:
        return loading.load(self, self.again(bank), loading.Load(key=key, **request)).entries

    def texts(self, bank: Bank, key: str = "k") -> list[str]:
        return [entry.content for entry in self.load(bank, key, limit=1000)]

    def drain(self) -> None:
        """Handle every message of the queues, and those that come of it."""
        while self.ingestion.sent or self.compaction.sent or self.distillation.sent:
            for message in self.distillation.take():
                distilling.handle(self, message, deadline=self.clock.now() + 270_000)
            for message in self.ingestion.take():
                ingestion.ingest(self, message)
            for message in self.compaction.take():
                compaction.handle(self, message, deadline=self.clock.now() + 120_000)

    def capture(self, bank: Bank, *texts: str, key: str = "k", sender: str = "user", **rest: Any) -> Captured:
        """A run of one message a text."""
        messages = tuple(NewMessage(sender, text) for text in texts)
        return runs.capture(self, bank.account, bank.id, NewRun(key, messages, **rest), deadline=self.deadline())

    def quiet(self, seconds: int = 15) -> None:
        """Let so much time go by, hand out the delayed messages of the distillation queue, and handle them all."""
        self.clock.advance(seconds)
        late, self.distillation.delayed = self.distillation.delayed, []
        self.distillation.sent += late
        self.drain()

    def sweep(self, schedule: Schedule = "compaction") -> sweeping.Swept:
        return sweeping.sweep(self, schedule, deadline=self.clock.now() + 600_000)

    def settle(self, hours: int = 3) -> None:
        """Let the schedules run for some hours."""
        for _ in range(hours):
            self.drain()
            self.clock.advance(3600)
            self.sweep("compaction")
            self.sweep("retention")
        self.drain()

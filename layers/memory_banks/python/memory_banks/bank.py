"""A bank: its settings, where its entries and vectors are, and its record in the table."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from .clock import iso
from .ports import Item, Key

if TYPE_CHECKING:
    from .capture.settings import CaptureSettings

BankType = Literal["conversation", "general"]
Mode = Literal["fast_and_cheap", "balanced", "slow_and_thorough", "custom"]

SHARDS = {"conversation": 1, "general": 8}
"""Shards of a partition: one keeps a conversation in exact order, eight take more writes at once."""

DAY = 86_400_000


@dataclass(frozen=True, slots=True)
class Target:
    """An index and the embedding that fills it."""

    model: str
    dimensions: int

    @property
    def index(self) -> str:
        """The index's name: one per (model, dimensions), shared by banks."""
        return f"memory-banks-{re.sub('[^a-z0-9]+', '-', self.model.lower()).strip('-')}-{self.dimensions}"


@dataclass(frozen=True, slots=True)
class Bank:
    """A bank's record. Times are ms; `version` counts settings changes, `generation` deletions of the source."""

    account: str
    id: str
    name: str
    type: BankType
    mode: Mode
    created_at: int
    updated_at: int
    embedding_model: str
    dimensions: int
    chunk_size: int
    chunk_overlap: int
    secret: str
    """Signs this bank's cursors."""
    description: str | None = None
    compaction_prompt: str | None = None
    max_turns: int | None = None
    max_size_tokens: int | None = None
    max_age_days: int | None = None
    retention_days: int | None = None
    strip_quoted_reply_chains: bool = False
    source_connection_id: str | None = None
    version: int = 1
    generation: int = 1
    status: Literal["empty", "ready"] = "empty"
    also_model: str | None = None
    """During a rebuild: the second index that is also written."""
    also_dimensions: int | None = None
    capture: dict[str, Any] | None = None
    """What is done with captured runs, as `CaptureSettings` gives it; None captures nothing."""

    @property
    def captures(self) -> CaptureSettings | None:
        """What is done with captured runs."""
        if self.capture is None:
            return None
        # Imported here: most requests have nothing to do with runs.
        from .capture.settings import CaptureSettings

        return CaptureSettings.model_validate(self.capture)

    @property
    def conversation(self) -> bool:
        """Whether entries have a speaker and an exact order."""
        return self.type == "conversation"

    @property
    def reads(self) -> Target:
        """The index that searches use."""
        return Target(self.embedding_model, self.dimensions)

    @property
    def writes(self) -> tuple[Target, ...]:
        """The indexes that ingest fills."""
        if self.also_model and self.also_dimensions:
            return (self.reads, Target(self.also_model, self.also_dimensions))
        return (self.reads,)

    @property
    def compacts(self) -> bool:
        """Whether a threshold is set."""
        return bool(self.max_turns or self.max_size_tokens)

    def cutoff(self, now: int) -> int | None:
        """Entries created at or before this moment (ms) are past the retention; None keeps them for good."""
        return now - self.retention_days * DAY if self.retention_days else None

    def shown(self) -> dict[str, Any]:
        """As the API shows it (`max_age_days` is subject to a version gate)."""
        hidden = {"account", "secret", "version", "generation", "also_model", "also_dimensions"}
        shown = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in hidden}
        return shown | {"created_at": iso(self.created_at), "updated_at": iso(self.updated_at)}


def key_of(account: str, bank: str) -> Key:
    """Where a bank's record is."""
    return Key(f"B#{account}", bank)


def stand_in(account: str, bank_id: str, generation: int) -> Bank:
    """A bank that is good for naming the keys of a generation, and nothing else."""
    return Bank(
        account=account,
        id=bank_id,
        name="",
        type="general",
        mode="custom",
        created_at=0,
        updated_at=0,
        embedding_model="",
        dimensions=0,
        chunk_size=0,
        chunk_overlap=0,
        secret="",
        generation=generation,
    )


def stand_in_of(account: str, kind: BankType) -> Bank:
    """A bank without a record, to try something on: no thresholds, chunks of a usual size."""
    return replace(stand_in(account, "", 0), type=kind, chunk_size=1_200, chunk_overlap=150)


def to_item(bank: Bank) -> Item:
    """The table's form of a bank."""
    values = {f.name: getattr(bank, f.name) for f in fields(bank)}
    key = key_of(bank.account, bank.id)
    return {"pk": key.pk, "sk": key.sk} | {name: value for name, value in values.items() if value is not None}


def from_item(item: Item) -> Bank:
    """A bank from its item; attributes it does not know are the table's own (due marks)."""
    known = {f.name for f in fields(Bank)}
    return Bank(**{name: value for name, value in item.items() if name in known})

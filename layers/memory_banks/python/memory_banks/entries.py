"""Entries: what a caller writes, what is stored, what is shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from . import ids, tokens
from .clock import iso
from .ports import Item

SUMMARY_TAG = "compaction-summary"
"""Reserved: only compaction sets it."""


@dataclass(frozen=True, slots=True)
class NewEntry:
    """One text to remember, already validated (see `limits`)."""

    content: str
    key: str = ""
    speaker: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    occurred_at: int | None = None
    """Milliseconds; None means when it is written."""
    id: str | None = None
    """Caller-given id, unique in the bank."""
    given_sha256: str | None = None
    """The hash of what the caller gave, where what is stored differs from it."""

    @property
    def sha256(self) -> str:
        """Hash of all that the caller gave except the id: tells the same entry from another one under the same id."""
        if self.given_sha256 is not None:
            return self.given_sha256
        parts = [self.content, self.key, self.speaker, sorted(self.tags), self.metadata, self.occurred_at]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Replaces:
    """What a summary stands for. `entries` counts original entries, those of folded summaries included."""

    entries: int
    from_id: str
    through_id: str
    from_at: int
    through_at: int
    sha256: str

    def shown(self) -> dict[str, Any]:
        """As the API shows it."""
        return {
            "entries": self.entries,
            "from_id": self.from_id,
            "through_id": self.through_id,
            "from_at": iso(self.from_at),
            "through_at": iso(self.through_at),
            "sha256": self.sha256,
        }


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored entry of a partition."""

    sort: str
    """Place in the partition: its ULID, plus `S` for a summary."""
    partition: str
    key: str
    content: str
    kind: Literal["entry", "summary"] = "entry"
    speaker: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    occurred_at: int = 0
    version: int = 1
    """Counts corrections, from 1."""
    indexed_version: int = 0
    """The version that is searchable; 0 before the first."""
    caller_id: str | None = None
    chunks: int = 1
    indexed_chunks: int = 0
    """The most chunks that the index may hold of earlier versions; 0 before the first correction."""
    replaces: Replaces | None = None

    @property
    def internal_id(self) -> str:
        """The id that carries the partition; the index knows the entry by it."""
        return self.ulid + self.partition + self.sort[ids.ULID_LENGTH :]

    @property
    def id(self) -> str:
        """The id that callers see: their own if they gave one."""
        return self.caller_id or self.internal_id

    @property
    def ulid(self) -> str:
        """The ULID alone."""
        return self.sort[: ids.ULID_LENGTH]

    @property
    def created_at(self) -> int:
        """When it was written, ms; a summary is as old as the newest entry it replaces."""
        return ids.milliseconds_of(self.sort)

    @property
    def tokens(self) -> int:
        """Tokens of the content."""
        return tokens.count(self.content)

    @property
    def indexed(self) -> bool:
        """Whether search can find this version."""
        return self.indexed_version == self.version

    def shown(self) -> dict[str, Any]:
        """As the API shows it."""
        shown = {
            "id": self.id,
            "key": self.key,
            "kind": self.kind,
            "speaker": self.speaker,
            "content": self.content,
            "tags": list(self.tags),
            "metadata": dict(self.metadata),
            "occurred_at": iso(self.occurred_at),
            "created_at": iso(self.created_at),
            "tokens": self.tokens,
            "indexed": self.indexed,
            "version": self.version,
        }
        if self.replaces:
            shown["replaces"] = self.replaces.shown()
        return shown


def to_item(entry: Entry, pk: str) -> Item:
    """The table's form of an entry. Metadata is kept as JSON text, so every JSON number comes back as it was."""
    item: Item = {
        "pk": pk,
        "sk": "E#" + entry.sort,
        "partition": entry.partition,
        "key": entry.key,
        "content": entry.content,
        "kind": entry.kind,
        "occurred_at": entry.occurred_at,
        "version": entry.version,
        "indexed_version": entry.indexed_version,
        "chunks": entry.chunks,
        "tokens": entry.tokens,
    }
    if entry.speaker is not None:
        item["speaker"] = entry.speaker
    if entry.tags:
        item["tags"] = list(entry.tags)
    if entry.metadata:
        item["metadata"] = json.dumps(entry.metadata, ensure_ascii=False)
    if entry.caller_id:
        item["caller_id"] = entry.caller_id
    if entry.replaces:
        replaces = entry.replaces
        item["replaces"] = {name: getattr(replaces, name) for name in Replaces.__slots__}
    return item


def from_item(item: Item, key: str | None = None) -> Entry:
    """An entry from its item. `key`: what its partition's head says; the item has the key under which it was written."""
    replaces = item.get("replaces")
    return Entry(
        sort=item["sk"].removeprefix("E#"),
        partition=item["partition"],
        key=item["key"] if key is None else key,
        content=item["content"],
        kind=item["kind"],
        speaker=item.get("speaker"),
        tags=tuple(item.get("tags", ())),
        metadata=json.loads(item["metadata"]) if "metadata" in item else {},
        occurred_at=item["occurred_at"],
        version=item["version"],
        indexed_version=item.get("indexed_version", 0),
        caller_id=item.get("caller_id"),
        chunks=item["chunks"],
        indexed_chunks=item.get("indexed_chunks", 0),
        replaces=Replaces(**replaces) if replaces else None,
    )

"""Contents: a bank's entries as the published API shows those of a source, page by page and one by one.

A content's id is the bank's and the entry's in one, so that it alone finds the entry; callers take it as it is.

Listing goes by the `age` index, which follows the table within a second, and reads no entry but those it shows. The total is
that of the counters. Dying changes nothing: deleting is `deletion.delete_entry`.
"""

from __future__ import annotations

import heapq
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

from . import banks, deletion, documents, entries, exports, ids, loading, partitions
from .bank import Bank
from .clock import iso
from .entries import Entry
from .errors import BadRequest, NotFound
from .ports import Aged, Item, Key, ModelUnavailable, Ports

Status = Literal["pending", "fetching", "transcribing", "scanning", "indexing", "completed", "failed"]
"""The published ones; ours are the last three."""

LOOKED_AT = 10_000
"""Entries of a bank that can be sorted by title or status, or filtered by status: each of them is read for it."""

TITLE_LENGTH = 80
DIGITS = 9
"""Significant digits of a vector's numbers: as many as a float of 32 bits has."""

TOGETHER = 10
"""Pieces of an entry that are embedded at once, between two looks at the clock."""

_BATCH = 1_000
_BANK_LENGTH = ids.ULID_LENGTH


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which contents, in which order. `only`: just those of these ids."""

    page: int = 1
    limit: int = 20
    sort: Literal["created_at", "title", "status"] = "created_at"
    order: Literal["asc", "desc"] = "desc"
    status: Status | None = None
    only: Sequence[str] | None = None


class ContentPage(NamedTuple):
    """Some contents as the API shows them, and how many there are in all."""

    contents: list[dict[str, Any]]
    total: int


# --------------------------------------------------------------------------------------------------------------------
# Ids


def id_of(bank_id: str, internal_id: str) -> str:
    """The id of the content that an entry is."""
    return ids.encode(uuid.UUID(bank_id).int) + internal_id


def parse(content_id: str) -> tuple[str, ids.EntryId] | None:
    """The bank's id and the parts of the entry's; None when the text is no content's id."""
    bank, entry = content_id[:_BANK_LENGTH], ids.parse(content_id[_BANK_LENGTH:])
    if entry is None or not set(bank) <= set(ids.ALPHABET) or bank[0] > "7":
        return None
    return str(uuid.UUID(int=ids.decode(bank))), entry


def locate(ports: Ports, account: str, content_id: str) -> tuple[Bank, Entry]:
    """The bank and the living entry of an id, among the account's own.

    Raises `NotFound`, or `Gone` ("compacted") when a summary has replaced the entry.
    """
    parsed = parse(content_id)
    if parsed is not None:
        try:
            bank = banks.get(ports, account, parsed[0])
            return bank, loading.get(ports, bank, str(parsed[1]))
        except NotFound:
            pass
    raise NotFound("There is no such content.", code="content_not_found")


# --------------------------------------------------------------------------------------------------------------------
# Many


def listed(ports: Ports, bank: Bank, wanted: Wanted, *, deadline: int) -> ContentPage:
    """A page of the bank's contents.

    Raises `BadRequest` ("too_many_contents") when sorting or filtering would have to read more than `LOOKED_AT` entries, or
    is not through at the deadline (ms).
    """
    start = (wanted.page - 1) * wanted.limit
    reverse = wanted.order == "desc"
    if wanted.only is None and wanted.status is None and wanted.sort == "created_at":
        view = _View.of(ports, bank)
        total = view.total - sum(1 for _ in view.expired(ports))
        keys = islice(view.keys(ports, reverse, start + wanted.limit), start, start + wanted.limit) if start < total else ()
        return ContentPage([_row(bank, item) for item in ports.table.read(list(keys)) if item is not None], total)
    rows = _all_rows(ports, bank, deadline) if wanted.only is None else _named(ports, bank, wanted.only)
    rows = [row for row in rows if wanted.status in {None, row["content_status"]}]
    names = {"created_at": "pulled_at", "title": "title", "status": "content_status"}
    rows.sort(key=lambda row: (row[names[wanted.sort]] or "", row["pulled_at"], row["content_version_id"]), reverse=reverse)
    return ContentPage(rows[start : start + wanted.limit], len(rows))


def _named(ports: Ports, bank: Bank, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of those of these contents that live in the bank."""
    parsed = {one for text in wanted if (one := parse(text)) and one[0] == bank.id}
    found = sorted(entry for _, entry in parsed)
    heads = ports.table.read([partitions.head_key(bank, entry.partition) for entry in found])
    items = ports.table.read([partitions.entry_key(bank, entry.partition, entry.sort) for entry in found])
    cutoff = bank.cutoff(ports.clock.now())
    return [
        _row(bank, item)
        for head, item in zip(heads, items, strict=True)
        if head is not None and item is not None
        if partitions.alive(partitions.head_from(head), entries.from_item(item), cutoff)
    ]


def _all_rows(ports: Ports, bank: Bank, deadline: int) -> list[dict[str, Any]]:
    view = _View.of(ports, bank)
    keys = list(islice(view.keys(ports, True, LOOKED_AT), LOOKED_AT + 1))
    rows: list[dict[str, Any]] = []
    for start in range(0, len(keys), 100):
        if len(keys) > LOOKED_AT or ports.clock.now() >= deadline:
            message = (
                f"Only up to {LOOKED_AT:,} entries can be sorted by title or status or filtered by status; this bank has more."
            )
            raise BadRequest(message, code="too_many_contents")
        rows += [_row(bank, item) for item in ports.table.read(keys[start : start + 100]) if item is not None]
    return rows


@dataclass(frozen=True, slots=True)
class _View:
    """What lives in a bank, by its heads."""

    bank: Bank
    watermarks: Mapping[str, str]
    """By partition."""
    total: int
    """What is past the retention and not yet swept among it."""
    cutoff: int | None

    @classmethod
    def of(cls, ports: Ports, bank: Bank) -> _View:
        """From all heads and shards."""
        watermarks: dict[str, str] = {}
        total = 0
        heads = partitions.heads(ports.table, bank, limit=_BATCH)
        while batch := list(islice(heads, 100)):
            watermarks |= {head.partition: head.watermark for head in batch}
            total += exports.count(ports, bank, batch).entries
        return cls(bank, watermarks, total, bank.cutoff(ports.clock.now()))

    def keys(self, ports: Ports, reverse: bool, wanted: int) -> Iterator[Key]:
        """The entries, by age, of which so many may be wanted."""
        after = None if self.cutoff is None else ids.at(self.cutoff + 1)
        return self._walk(ports, after, None, reverse, wanted)

    def expired(self, ports: Ports) -> Iterator[Key]:
        """What the counters have and the retention hides."""
        if self.cutoff is None:
            return iter(())
        return self._walk(ports, None, ids.at(self.cutoff + 1), False, _BATCH)

    def _walk(self, ports: Ports, after: str | None, before: str | None, reverse: bool, wanted: int) -> Iterator[Key]:
        groups = [_aged(ports, self.bank, group, after, before, reverse, wanted) for group in range(partitions.HEAD_GROUPS)]
        for key, _ in heapq.merge(*groups, key=lambda one: (one.age, one.key.sk), reverse=reverse):
            watermark = self.watermarks.get(key.pk.rpartition("#")[2])
            # Beside entries the index has pointers and traces; beside the living ones those replaced a moment ago.
            if key.sk.startswith("E#") and watermark is not None and key.sk[2:] > watermark:
                yield key


def _aged(
    ports: Ports, bank: Bank, group: int, after: str | None, before: str | None, reverse: bool, wanted: int
) -> Iterator[Aged]:
    """All of a group between two ages. Several items may have one age: a batch that may be cut gives none of its last.

    The first batch is no longer than what is wanted, in all, with its pointers.
    """
    pk = partitions.age_pk(bank, group)
    size = min(_BATCH, 2 * wanted + 20)
    while found := ports.table.aged(pk, after=after, before=before, limit=size, reverse=reverse):
        whole = [one for one in found if one.age != found[-1].age]
        ends = len(found) < size // 2 or not whole
        yield from sorted(found if ends else whole, key=lambda one: (one.age, one.key.sk), reverse=reverse)
        if ends and whole:
            return
        last, size = (found if ends else whole)[-1].age, _BATCH
        after, before = (after, last) if reverse else (last, before)


# --------------------------------------------------------------------------------------------------------------------
# One


def status(ports: Ports, bank: Bank, content_id: str) -> dict[str, Any]:
    """One row of the list. Raises `NotFound`."""
    found = _named(ports, bank, [content_id])
    if not found:
        raise NotFound("There is no such content.", code="content_not_found")
    return found[0]


def detail(ports: Ports, account: str, content_id: str, start: int, end: int) -> dict[str, Any]:
    """A content with the characters from `start` up to `end` of its text. Raises as `locate`."""
    bank, entry = locate(ports, account, content_id)
    item = ports.table.read([partitions.entry_key(bank, entry.partition, entry.sort)])[0]
    row = _row(bank, item) if item is not None else _row(bank, entries.to_item(entry, ""))
    start, end = min(start, len(entry.content)), min(end, len(entry.content))
    same = ("content_status", "content_type", "content_url", "content_word_count", "error", "published_at", "pulled_at", "title")
    return {name: row[name] for name in same} | {
        "id": content_id,
        "source_connection_content_version_id": content_id,
        "source_connection_id": bank.source_connection_id or "",
        "source_name": bank.name,
        "source_type": "memory_bank",
        "content_type_display": "Text",
        "content_duration": None,
        "content_duration_display": None,
        "description": None,
        "metadata": _metadata(entry),
        "text_content": entry.content[start:end],
        "text_content_start": start,
        "text_content_end": end,
        "text_content_total_length": len(entry.content),
        "memory_bank_id": bank.id,
        "entry_id": entry.id,
    }


def embeddings(
    ports: Ports, account: str, content_id: str, *, page: int, limit: int, deadline: int
) -> tuple[list[dict[str, Any]], int]:
    """A page of an entry's chunks with their vectors, and how many chunks there are.

    No index gives vectors back (its source leaves them out), so they are made again: by the bank's model, from the text
    that was indexed. Raises as `locate`, `ModelError`, and `ModelUnavailable` when it takes until the deadline (ms).
    """
    bank, entry = locate(ports, account, content_id)
    made = documents.chunks(bank, entry, None)
    start = (page - 1) * limit
    chosen = made[start : start + limit]
    embedder = ports.embedders(bank.reads.model, bank.reads.dimensions)
    rows: list[dict[str, Any]] = []
    for first in range(0, len(chosen), TOGETHER):
        batch = chosen[first : first + TOGETHER]
        began = ports.clock.now()
        if began >= deadline:
            raise ModelUnavailable(f"{len(rows)} of {len(chosen)} pieces took all the time; ask for fewer (limit)")
        vectors = embedder.embed([one.text for one in batch])
        seconds = (ports.clock.now() - began) / 1_000
        rows += [
            {
                "id": f"{content_id}-{start + first + place}",
                "text": entry.content[one.start : one.end],
                "text_start": one.start,
                "text_end": one.end,
                "vector": [float(f"{value:.{DIGITS}g}") for value in vector],
                "batch_size": len(batch),
                "batch_duration": seconds,
            }
            for place, (one, vector) in enumerate(zip(batch, vectors, strict=True))
        ]
    return rows, len(made)


def delete(ports: Ports, account: str, content_id: str, *, deadline: int) -> None:
    """Forget the entry that a content is. Raises as `locate`, and `DatabaseUnavailable`."""
    bank, entry = locate(ports, account, content_id)
    try:
        deletion.delete_entry(ports, bank, entry.internal_id, deadline=deadline)
    except NotFound:
        raise NotFound("There is no such content.", code="content_not_found") from None


def _metadata(entry: Entry) -> list[dict[str, str]]:
    """What is known of an entry besides its text, as names and values."""
    known: dict[str, str | None] = {"key": entry.key, "kind": entry.kind, "speaker": entry.speaker, "tags": ",".join(entry.tags)}
    own = {
        f"metadata.{name}": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in entry.metadata.items()
    }
    return [{"name": name, "value": value} for name, value in (known | own).items() if value]


def _row(bank: Bank, item: Item) -> dict[str, Any]:
    """An entry as a list of contents shows it."""
    entry = entries.from_item(item)
    content_id = id_of(bank.id, entry.internal_id)
    state = "completed" if entry.indexed else "failed" if item.get("index_failed") else "indexing"
    return {
        "content_version_id": content_id,
        "source_connection_content_version_id": content_id if entry.indexed else None,
        "content_status": state,
        "content_type": "text",
        "content_url": f"memory-bank://{bank.id}/entries/{entry.internal_id}",
        "content_token_count": entry.tokens,
        "content_word_count": len(entry.content.split()),
        "error": item.get("index_error") if state == "failed" else None,
        "indexed_at": iso(item["indexed_at"]) if entry.indexed and "indexed_at" in item else None,
        "mime_type": "text/plain",
        "published_at": iso(entry.occurred_at),
        "pulled_at": iso(entry.created_at),
        "title": _title(entry.content),
        "entry_id": entry.id,
    }


def _title(content: str) -> str | None:
    """The first line that says something, cut."""
    line = next((line.strip() for line in content.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"

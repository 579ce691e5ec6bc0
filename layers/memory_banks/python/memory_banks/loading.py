"""Loading: one entry by its id, or the entries of a key in the order they were written, strongly consistent.

A Load keeps the view of the head it read: its cursor carries the watermark, and compaction leaves the replaced entries in
the table until every cursor over them has run out (`VIEW_LIFE`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from . import cursors, entries, homes, ids, partitions
from .bank import Bank
from .entries import Entry
from .errors import Gone, Invalid, NotFound
from .partitions import Head
from .ports import IndexUnavailable, Key, Ports

VIEW_LIFE = 300_000
"""How long, in ms, a cursor goes on with the view it began with."""

PAGE_BYTES = 5_000_000
"""UTF-8 bytes of the entries of one page as JSON; the whole answer stays under Lambda's 6 MB."""

MAX_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Load:
    """What to load. `since` (inclusive) and `until` (exclusive) compare `occurred_at`, in ms; `tags` must all be there.

    `max_tokens`: only the newest entries that fit the budget together, in `order`; not combined with a cursor.
    """

    key: str
    order: Literal["asc", "desc"] = "asc"
    limit: int = 100
    cursor: str | None = None
    max_tokens: int | None = None
    speakers: Sequence[str] = ()
    tags: Sequence[str] = ()
    since: int | None = None
    until: int | None = None

    def wants(self, entry: Entry) -> bool:
        """Whether an entry passes the filters."""
        return (
            (not self.speakers or entry.speaker in self.speakers)
            and set(self.tags) <= set(entry.tags)
            and (self.since is None or entry.occurred_at >= self.since)
            and (self.until is None or entry.occurred_at < self.until)
        )

    @property
    def filters(self) -> bool:
        """Whether anything may be left out."""
        return bool(self.speakers or self.tags or self.since is not None or self.until is not None)

    @property
    def purpose(self) -> str:
        """What a cursor of this load is good for: the same listing, whatever its page size."""
        parts = [self.key, self.order, sorted(self.speakers), sorted(self.tags), self.since, self.until]
        return "load " + hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class LoadPage(NamedTuple):
    """Some entries in order and, when there may be more, the cursor to go on with."""

    entries: list[Entry]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class _View:
    """What a Load sees: the state of the head when it began, less what was erased since."""

    watermark: str
    lowest: str
    """Nothing at or below it is shown: the watermark, or what was forgotten meanwhile."""
    cutoff: int | None
    began: int
    key: str
    """What the partition's entries are under now."""

    def shows(self, entry: Entry) -> bool:
        """Whether an entry belongs to the view. A summary made after the view began would tell what it still shows."""
        if entry.kind == "summary" and entry.ulid != self.watermark:
            return False
        return entry.sort > self.lowest and (self.cutoff is None or entry.created_at > self.cutoff)


def get(ports: Ports, bank: Bank, entry_id: str) -> Entry:
    """The entry of an id. Raises `NotFound`, or `Gone` ("compacted") when a summary has replaced it."""
    return locate(ports, bank, entry_id)[1]


def locate(ports: Ports, bank: Bank, entry_id: str) -> tuple[Head, Entry]:
    """The living entry of an internal or a caller-given id, with its head. Raises as `get`."""
    parsed = ids.parse(entry_id)
    keys: list[Key] = [partitions.pointer_key(bank, entry_id)]
    if parsed:
        keys += [partitions.head_key(bank, parsed.partition), partitions.entry_key(bank, parsed.partition, parsed.sort)]
    pointer, *found = ports.table.read(keys)
    if pointer is not None:
        partition, sort = pointer["partition"], pointer["sort"]
        found = ports.table.read([partitions.head_key(bank, partition), partitions.entry_key(bank, partition, sort)])
    elif parsed:
        sort = parsed.sort
    else:
        raise NotFound("no such entry")
    head_item, item = found
    if head_item is None:
        raise NotFound("no such entry")
    head = partitions.head_from(head_item)
    if head.forgotten < sort <= head.watermark:
        summary = head.summary and str(ids.EntryId(head.summary[: ids.ULID_LENGTH], head.partition, summary=True))
        raise Gone("the entry was compacted", code="compacted", summary_id=summary)
    entry = entries.from_item(item, head.key) if item else None
    if entry is None or not partitions.alive(head, entry, bank.cutoff(ports.clock.now())):
        raise NotFound("no such entry")
    return head, entry


def load(ports: Ports, bank: Bank, request: Load) -> LoadPage:
    """Entries of a key. One strong read of the head and ceil(bytes / 1 MB) queries; a key never written to has none.

    Raises `Invalid` for a cursor of another listing, and `Gone` ("compacted") for one that is older than five minutes
    when a compaction came in between, or ("renamed") when the key was renamed.
    """
    if request.cursor is not None and request.max_tokens is not None:
        raise Invalid(("query", "cursor"), "not together with max_tokens, which gives the newest entries in one page")
    now = ports.clock.now()
    carried = cursors.read(bank.secret, request.cursor, request.purpose) if request.cursor is not None else None
    partition, item = homes.find(ports.table, bank, request.key)
    if carried is not None and carried["generation"] == bank.generation and carried.get("partition", partition) != partition:
        raise Gone("the key was renamed since this listing began", code="renamed")
    if item is None:
        return LoadPage([], None)
    head = partitions.head_from(item)
    view = _View(head.watermark, head.watermark, bank.cutoff(now), now, head.key)
    position: str | None = None
    if carried is not None:
        if carried["generation"] != bank.generation:
            raise Gone("the source was deleted since this listing began", code="deleted")
        lowest = max(carried["watermark"], head.forgotten)
        view = _View(carried["watermark"], lowest, view.cutoff, carried["began"], head.key)
        if head.watermark != view.watermark and now > view.began + VIEW_LIFE:
            raise Gone("entries of this listing were compacted since it began; start again", code="compacted")
        position = carried["position"]
    if request.max_tokens is not None:
        return LoadPage(_newest(ports, bank, partition, request, view, request.max_tokens), None)
    return _page(ports, bank, partition, request, view, position)


def newest(ports: Ports, bank: Bank, key: str, max_tokens: int) -> list[Entry]:
    """The newest entries of a key that fit a budget together, oldest first; the summary among them if it still fits."""
    return load(ports, bank, Load(key=key, limit=MAX_PAGE, max_tokens=max_tokens)).entries


def _newest(ports: Ports, bank: Bank, partition: str, request: Load, view: _View, budget: int) -> list[Entry]:
    taken: list[Entry] = []
    size = 0
    for entry in _entries(ports, bank, partition, view, reverse=True, position=None, limit=None):
        if not request.wants(entry):
            continue
        budget -= entry.tokens
        size += json_bytes(entry)
        if budget < 0 or len(taken) == request.limit or size > PAGE_BYTES:
            break
        taken.append(entry)
    return taken if request.order == "desc" else taken[::-1]


def _page(ports: Ports, bank: Bank, partition: str, request: Load, view: _View, position: str | None) -> LoadPage:
    taken: list[Entry] = []
    size = 0
    limit = None if request.filters else request.limit + 1
    for entry in _entries(ports, bank, partition, view, reverse=request.order == "desc", position=position, limit=limit):
        if not request.wants(entry):
            continue
        size += json_bytes(entry)
        if len(taken) == request.limit or (taken and size > PAGE_BYTES):
            carried = {
                "position": taken[-1].sort,
                "watermark": view.watermark,
                "began": view.began,
                "generation": bank.generation,
                "partition": partition,
            }
            return LoadPage(taken, cursors.write(bank.secret, request.purpose, carried))
        taken.append(entry)
    return LoadPage(taken, None)


def _entries(
    ports: Ports, bank: Bank, partition: str, view: _View, *, reverse: bool, position: str | None, limit: int | None
) -> Iterator[Entry]:
    """The entries of a view in order, page after page of the table."""
    pk = partitions.partition_pk(bank, partition)
    low, high = "E#" + view.lowest, "E~"
    if position is not None:
        low, high = (low, "E#" + position) if reverse else (max(low, "E#" + position), high)
    while True:
        page = ports.table.query(pk, after=low, before=high, reverse=reverse, limit=limit)
        for item in page.items:
            entry = entries.from_item(item, view.key)
            if view.shows(entry):
                yield entry
        if page.after is None:
            return
        low, high = (low, page.after) if reverse else (page.after, high)


def json_bytes(entry: Entry) -> int:
    """About how many bytes an entry takes in an answer."""
    return len(json.dumps(entry.shown(), ensure_ascii=False).encode()) + 2


def wait_until_indexed(ports: Ports, bank: Bank, written: Sequence[Entry], deadline: int) -> list[Entry]:
    """The entries as they are when search can find all of them, or at the deadline (ms), whichever is first.

    An index shows what was written to it with its next refresh, so a caller who waits asks for one.
    """
    keys = [partitions.entry_key(bank, entry.partition, entry.sort) for entry in written]
    while True:
        items = ports.table.read(keys)
        now = [entries.from_item(item) if item else entry for item, entry in zip(items, written, strict=True)]
        if all(item is None or entry.indexed for item, entry in zip(items, now, strict=True)):
            with contextlib.suppress(IndexUnavailable):  # it refreshes by itself, a second later
                ports.index.refresh(bank.reads.index)
            return now
        if ports.clock.now() >= deadline:
            return now
        ports.clock.sleep(0.1)

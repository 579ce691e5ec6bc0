"""The work of an export: every living entry once, key after key, written to the bucket piece by piece.

Each attempt begins anew, under a number of its own that its every later step requires: of two functions that got the same
message, the earlier stops at its next page. What dies is found by the sweep; the third attempt that dies is the last.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from . import bank as banks
from . import entries, exports, jobs, loading, partitions
from .bank import Bank
from .entries import Entry
from .export_formats import Sink, writer
from .marking import due
from .partitions import Head
from .ports import BlobsUnavailable, ConditionFailed, Contended, Is, Item, Ports, TableUnavailable, Update

MARGIN_MS = 30_000
"""Before the deadline an export gives up, so that it can say why."""

PAGE = 1_000

LOOK_MS, LOOK_ENTRIES = 2_000, 100
"""How often the progress is noted, and whether to go on is looked up: every other second, and after every page of some size."""

logger = logging.getLogger(__name__)


class Superseded(Exception):
    """The export was cancelled or deleted, or another attempt has begun."""


class Hopeless(Exception):
    """The export can't be made; the message says why."""


def handle(ports: Ports, message: Mapping[str, Any], *, deadline: int) -> None:
    """Make the export that a message names. One that has ended is left alone.

    Raises what makes the message come back: `TableUnavailable`, `Contended`, `BlobsUnavailable`.
    """
    named = banks.stand_in(message["account"], message["bank"], message["generation"])
    key = jobs.key_of(named.id, message["export"])
    item = ports.table.read([key])[0]
    if item is None or item["status"] in jobs.FINAL:
        return
    now = ports.clock.now()
    if item["status"] == "running" and now < item["started_at"] + exports.RUNS_MS:
        return
    if item["attempts"] >= exports.ATTEMPTS:
        _fail(ports, item, f"it was cut off {exports.ATTEMPTS} times; try again, perhaps with fewer entries (date_from, date_to)")
        return
    try:
        begun = {"status": "running", "attempts": item["attempts"] + 1, "started_at": now, "current": 0}
        item = _step(ports, item, begun | due(item["sk"], now + exports.STALLED_MS))
        _make(ports, named, item, deadline)
    except Superseded:
        return
    except Hopeless as reason:
        _fail(ports, item, str(reason))
    except (TableUnavailable, Contended, BlobsUnavailable):
        raise
    except Exception as error:
        logger.exception("export %s failed", item["sk"])
        _fail(ports, item, f"something went wrong on our side ({type(error).__name__}); the log says what")


def _make(ports: Ports, named: Bank, item: Item, deadline: int) -> None:
    bank = _living(ports, named)
    file = exports.file_of(bank.account, bank.id, item["sk"], item["attempts"], item["format"])
    upload = ports.blobs.upload(file, exports.CONTENT_TYPES[item["format"]])
    sink = Sink(upload)
    try:
        total = _count(ports, bank)
        item = _step(ports, item, {"total": total})
        made = writer(item["format"], sink, bank, ports.clock.now(), neutralise=item["neutralise"])
        seen = written = 0
        test, looked_at = _test(item), ports.clock.now()
        for head in partitions.heads(ports.table, bank):
            for page in _pages(ports, bank, head):
                chosen = [entry for entry in page if test(entry)]
                made.add(chosen)
                seen += len(page)
                written += len(chosen)
                now = ports.clock.now()
                if now > deadline - MARGIN_MS:
                    raise Hopeless(f"it took too long: {seen:,} of about {total:,} entries; narrow date_from and date_to")
                if now >= looked_at + LOOK_MS or len(page) > LOOK_ENTRIES:
                    looked_at = now
                    item = _step(ports, item, {"current": seen, "total": max(total, seen)})
                    bank = _living(ports, named)
        made.close()
        upload.finish()
    except BaseException:
        upload.abort()
        raise
    now = ports.clock.now()
    done = {"status": "completed", "finished_at": now, "expires_at": now + exports.KEPT_MS, "current": seen, "total": seen}
    try:
        _step(ports, item, done | {"items": written, "size": sink.size, "file": file})
    except Superseded:
        ports.blobs.delete([file])
        raise


def _living(ports: Ports, named: Bank) -> Bank:
    """The bank as it is now. Raises `Hopeless` when this generation of it is gone."""
    item = ports.table.read([banks.key_of(named.account, named.id)])[0]
    if item is None or item.get("deleted") or item["generation"] != named.generation:
        raise Hopeless("the source was deleted")
    return banks.from_item(item)


def _count(ports: Ports, bank: Bank) -> int:
    """How many entries and summaries there are, by the counters of the keys."""
    heads = partitions.heads(ports.table, bank)
    total = 0
    while batch := list(islice(heads, 100)):
        total += exports.count(ports, bank, batch).entries
    return total


def _pages(ports: Ports, bank: Bank, head: Head) -> Iterator[list[Entry]]:
    """The living entries of a key in the view of this head, which was just read; what is forgotten meanwhile is left out."""
    key = partitions.head_key(bank, head.partition)
    cutoff = bank.cutoff(ports.clock.now())
    began = ports.clock.now()
    position = "E#" + head.watermark
    while True:
        page = ports.table.query(partitions.partition_pk(bank, head.partition), after=position, before="E~", limit=PAGE)
        found = (entries.from_item(one, head.key) for one in page.items)
        yield [entry for entry in found if _shows(entry, head, cutoff)]
        if page.after is None:
            return
        head_item = ports.table.read([key])[0]
        if head_item is None:
            return
        now = partitions.head_from(head_item)
        if now.watermark != head.watermark and ports.clock.now() > began + loading.VIEW_LIFE:
            raise Hopeless("entries were compacted while they were exported; try again")
        position = max(page.after, "E#" + now.forgotten)


def _shows(entry: Entry, view: Head, cutoff: int | None) -> bool:
    """Whether an entry belongs to the view; a summary made later retells what the view still shows."""
    if entry.kind == "summary" and entry.ulid != view.watermark:
        return False
    return cutoff is None or entry.created_at > cutoff


def _test(item: Item) -> Any:
    """Whether an entry passes the filters of an export."""
    since, until, text = item.get("since"), item.get("until"), item.get("text", "").casefold()
    metadata = json.loads(item["metadata"]) if "metadata" in item else {}

    def passes(entry: Entry) -> bool:
        return (
            (since is None or entry.occurred_at >= since)
            and (until is None or entry.occurred_at < until)
            and text in entry.content.casefold()
            and contains(entry.metadata, metadata)
        )

    return passes


def contains(value: Any, wanted: Any) -> bool:
    """Whether a JSON value contains another: an object all its fields, a list all its elements in any order."""
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and all(name in value and contains(value[name], one) for name, one in wanted.items())
    if isinstance(wanted, list):
        return isinstance(value, list) and all(any(contains(one, each) for one in value) for each in wanted)
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


def _step(ports: Ports, item: Item, changes: Mapping[str, Any]) -> Item:
    """Note a step of this attempt. Raises `Superseded` when it is not this attempt's any more."""
    alive = tuple(Is("status", "<>", status) for status in jobs.FINAL)
    mine = Is("attempts", "=", item["attempts"])
    key = jobs.key_of(item["bank"], item["sk"])
    try:
        when = (Is("pk", "exists"), mine, *alive)
        return ports.table.write(Update(key, set={"updated_at": ports.clock.now()} | dict(changes), when=when))
    except ConditionFailed:
        raise Superseded from None


def _fail(ports: Ports, item: Item, reason: str) -> None:
    try:
        _step(ports, item, {"status": "failed", "error": reason[:1000], "finished_at": ports.clock.now()})
    except Superseded:
        return

"""Exports: a bank's entries as a file, made by a queue's function, kept for seven days.

An export is a job (`jobs`) with a file. Its record is due until nothing is left of it: while it waits or runs, so that the
sweep sends another message when one was lost or the function died; when it has ended, so that its files go.

Files are named by export and attempt, so that two attempts never write to one name.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from . import bank as banks
from . import jobs, partitions
from .bank import DAY, Bank
from .clock import iso
from .errors import Conflict, Gone, Invalid, NotFound, TooLarge
from .marking import DUE_ATTRIBUTES, due
from .ports import ConditionFailed, Delete, Is, Item, Key, Ports, Put, QueueUnavailable, Update

Format = Literal["jsonl", "csv", "parquet", "zip", "json"]

CONTENT_TYPES: Mapping[Format, str] = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "zip": "application/zip",
    "json": "application/json",
}

KEPT_MS = 7 * DAY
"""How long a file can be fetched."""

STALLED_MS = 1_200_000
"""After how many ms without an end the sweep sends another message; longer than the function may run."""

RUNS_MS = 960_000
"""How long a function that has begun may still be at it; another message for the same export does nothing meanwhile."""

ATTEMPTS = 3
"""How often an export is begun at most."""

ANSWERED_BYTES = 4_000_000
"""Up to so many bytes a download is the answer itself; base64 and all it stays under Lambda's 6 MB."""

LINK_SECONDS = 900
"""How long the link to a longer file works."""

_PER_ENTRY = 330
"""About how many bytes an entry takes besides its content."""
_SHARE: Mapping[Format, float] = {"jsonl": 1, "json": 1, "csv": 0.6, "parquet": 0.4, "zip": 0.35}
"""About how long a file is, compared with JSON lines."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to export, in which format. Times compare `occurred_at` (ms): `since` inclusive, `until` exclusive."""

    format: Format
    since: int | None = None
    until: int | None = None
    text: str | None = None
    """Entries whose content has it, whatever the case."""
    metadata: Mapping[str, Any] | None = None
    """Entries whose metadata contains it."""
    neutralise_formulas: bool = False
    """In CSV, what a spreadsheet would take for a formula gets an apostrophe before it."""


class ExportPage(NamedTuple):
    """Some exports, newest first, and how many there are in all."""

    exports: list[Item]
    total: int


# --------------------------------------------------------------------------------------------------------------------
# Asking for one


def create(ports: Ports, bank: Bank, wanted: Wanted, requested_by: str | None) -> Item:
    """Begin an export; gives its record. Raises `Invalid` for a format that is not available here.

    Dying after the record leaves it due: the sweep sends the message.
    """
    available(wanted.format)
    now = ports.clock.now()
    item = jobs.new(ports, bank, "export")
    item |= {
        "account": bank.account,
        "bank": bank.id,
        "generation": bank.generation,
        "source": bank.source_connection_id,
        "format": wanted.format,
        "neutralise": wanted.neutralise_formulas,
        "attempts": 0,
        "estimated": estimate(ports, bank, wanted.format),
        "updated_at": now,
        **due(item["sk"], now + STALLED_MS),
    }
    values = {"since": wanted.since, "until": wanted.until, "text": wanted.text, "requested_by": requested_by}
    item |= {name: value for name, value in values.items() if value is not None}
    if wanted.metadata is not None:
        item["metadata"] = json.dumps(dict(wanted.metadata), ensure_ascii=False)
    ports.table.write(Put(item))
    announce(ports, item)
    return item


def available(format: Format) -> None:
    """Raises `Invalid` for a format that needs what is not installed."""
    if format == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise Invalid(("body", "format"), "parquet is not available here: pyarrow is not installed", "not_available")


def estimate(ports: Ports, bank: Bank, format: Format) -> int:
    """About how many bytes an export of everything has, by the counters of the keys."""
    size = 0
    batch: list[partitions.Head] = []
    for head in partitions.heads(ports.table, bank):
        batch.append(head)
        if len(batch) == 100:
            size += _bytes(ports, bank, batch)
            batch = []
    return round((size + _bytes(ports, bank, batch)) * _SHARE[format])


def count(ports: Ports, bank: Bank, heads: Sequence[partitions.Head]) -> partitions.Counters:
    """What lives under these keys, summaries among the entries."""
    wanted = [key for head in heads for key in partitions.shard_keys(bank, head)]
    shards = dict(zip(wanted, ports.table.read(wanted), strict=True)) if wanted else {}
    each = [partitions.count(head, [shards[key] for key in partitions.shard_keys(bank, head)]) for head in heads]
    summaries = sum(head.summary is not None for head in heads)
    return partitions.Counters(
        sum(one.entries for one in each) + summaries, sum(one.tokens for one in each), sum(one.chunks for one in each)
    )


def _bytes(ports: Ports, bank: Bank, heads: Sequence[partitions.Head]) -> int:
    counted = count(ports, bank, heads)
    return counted.tokens * 4 + counted.entries * _PER_ENTRY


def announce(ports: Ports, item: Item) -> None:
    """Send the message; without it the sweep does, when the record is due."""
    with suppress(QueueUnavailable):
        ports.exports.send([{name: item[name] for name in ("account", "bank", "generation")} | {"export": item["sk"]}])


# --------------------------------------------------------------------------------------------------------------------
# Looking at them


def get(ports: Ports, bank: Bank, export_id: str) -> Item:
    """An export of the bank's source. Raises `NotFound`."""
    item = ports.table.read([jobs.key_of(bank.id, export_id)])[0]
    if item is None or not _of(item, bank):
        raise NotFound("There is no such export.", code="export_not_found")
    return item


def listed(ports: Ports, bank: Bank, *, page: int, limit: int) -> ExportPage:
    """A page of the source's exports."""
    found = [item for item in _all(ports, bank.id) if _of(item, bank)][::-1]
    return ExportPage(found[(page - 1) * limit : page * limit], len(found))


def _of(item: Item, bank: Bank) -> bool:
    return bool(item["kind"] == "export" and item["generation"] == bank.generation)


def _all(ports: Ports, bank_id: str) -> list[Item]:
    found: list[Item] = []
    after: str | None = ""
    while after is not None:
        page = ports.table.query(jobs.key_of(bank_id, "").pk, after=after or None)
        found += [item for item in page.items if item["kind"] == "export"]
        after = page.after
    return found


def shown(item: Item) -> dict[str, Any]:
    """An export as the API shows it."""
    times = {name: iso(item[at]) if at in item else None for name, at in _TIMES.items()}
    return {
        "id": item["sk"],
        "source_connection_id": item["source"],
        "account_id": item["account"],
        "format": item["format"],
        "destination": "download",
        "status": item["status"],
        "progress_current": item["current"],
        "progress_total": item.get("total"),
        "item_count": item.get("items"),
        "file_size_bytes": item.get("size"),
        "estimated_size_bytes": item["estimated"],
        "error": item.get("error"),
        "storage_key": item.get("file"),
        "requested_by_user_id": item.get("requested_by"),
        "requested_by_user_name": None,
        "neutralise_formulas": item["neutralise"],
        **times,
        "date_from": iso(item["since"]) if "since" in item else None,
        "date_to": iso(item["until"] - 1) if "until" in item else None,
        "query_filter": item.get("text"),
        "metadata_filter": json.loads(item["metadata"]) if "metadata" in item else None,
    }


_TIMES = {
    "created_at": "created_at",
    "updated_at": "updated_at",
    "started_at": "started_at",
    "completed_at": "finished_at",
    "expires_at": "expires_at",
}


def download(ports: Ports, bank: Bank, export_id: str) -> tuple[Item, bytes]:
    """The record and the file.

    Raises `NotFound`; `Conflict` ("export_not_ready") while there is no file yet, or never will be; `Gone` ("export_expired");
    `TooLarge` ("download_elsewhere"), whose `url` works for a quarter of an hour.
    """
    item = get(ports, bank, export_id)
    if item["status"] != "completed":
        raise Conflict(f"The export is {item['status']}; only a completed one can be downloaded.", code="export_not_ready")
    if ports.clock.now() >= item["expires_at"]:
        raise Gone("The export has expired; make another one.", code="export_expired")
    if item["size"] > ANSWERED_BYTES:
        url = ports.blobs.link(item["file"], LINK_SECONDS, name_of(item))
        message = f"The file has {item['size']:,} bytes, more than an answer may have; fetch it from {url}"
        raise TooLarge(message, code="download_elsewhere", url=url, expires_in_seconds=LINK_SECONDS)
    body = ports.blobs.get(item["file"])
    if body is None:
        raise Gone("The export is gone; make another one.", code="export_expired")
    return item, body


def name_of(item: Item) -> str:
    """The file's name for who downloads it."""
    return f"memory-bank-{item['bank']}-{item['sk']}.{item['format']}"


# --------------------------------------------------------------------------------------------------------------------
# Ending and removing them


def cancel(ports: Ports, bank: Bank, export_id: str) -> Item:
    """Cancel an export that has not ended; one that has stays as it is. Its function stops at the next page of entries."""
    get(ports, bank, export_id)
    jobs.finish(ports, bank.id, export_id, "cancelled")
    return get(ports, bank, export_id)


def delete(ports: Ports, bank: Bank, export_id: str) -> None:
    """Remove an export with its file. Dying half way leaves the record, and the same call removes the rest."""
    item = get(ports, bank, export_id)
    jobs.finish(ports, bank.id, export_id, "cancelled")
    _remove(ports, item)


def _remove(ports: Ports, item: Item) -> None:
    ports.blobs.delete(files_of(item))
    ports.table.write(Delete(Key(item["pk"], item["sk"])))


def file_of(account: str, bank_id: str, export_id: str, attempt: int, format: Format) -> str:
    """The name of an attempt's file in the bucket."""
    return f"exports/{account}/{bank_id}/{export_id}-{attempt}.{format}"


def files_of(item: Item) -> list[str]:
    """The names of the files that there may be; of the attempt that may be starting now, too."""
    attempts = range(1, min(item["attempts"] + 1, ATTEMPTS) + 1)
    return [file_of(item["account"], item["bank"], item["sk"], attempt, item["format"]) for attempt in attempts]


def clear(ports: Ports, bank: Bank) -> None:
    """Remove all exports of a generation that is gone."""
    for item in _all(ports, bank.id):
        if item["generation"] <= bank.generation:
            _remove(ports, item)


def take_up(ports: Ports, key: Key) -> bool:
    """What is due of an export: another message when it has stalled, its files when it has ended or expired."""
    item = ports.table.read([key])[0]
    now = ports.clock.now()
    if item is None or "due_at" not in item or item["due_at"] > now:
        return True
    ended = item["status"] in jobs.FINAL
    if not ended:
        with suppress(ConditionFailed):
            _mark(ports, item, due(item["sk"], now + STALLED_MS))
            announce(ports, item)
    elif item["status"] == "completed" and now < item["expires_at"]:
        with suppress(ConditionFailed):
            _mark(ports, item, due(item["sk"], item["expires_at"]))
    else:
        ports.blobs.delete(files_of(item))
        with suppress(ConditionFailed):
            ports.table.write(Update(key, remove=DUE_ATTRIBUTES, when=(Is("due_at", "=", item["due_at"]),)))
    return True


def _mark(ports: Ports, item: Item, mark: Mapping[str, Any]) -> None:
    ports.table.write(Update(Key(item["pk"], item["sk"]), set=mark, when=(Is("due_at", "=", item["due_at"]),)))


def bank_of_source(ports: Ports, account: str, source_id: str) -> Bank:
    """The bank whose source has this id, among the account's own. Raises `NotFound`."""
    after: str | None = ""
    while after is not None:
        page = ports.table.query(banks.key_of(account, "").pk, after=after or None)
        for item in page.items:
            if item.get("source_connection_id") == source_id and not item.get("deleted"):
                return banks.from_item(item)
        after = page.after
    raise NotFound("There is no such source.", code="source_not_found")

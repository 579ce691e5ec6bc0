"""Correcting an entry: its content, tags or metadata change; its place and `created_at` stay.

One transaction on the entry and the head: it holds only while the entry is above the watermark, and adds one to `edits`, so
a compaction that read the old text can't commit. Dying before it commits changes nothing; after it, the sweep re-indexes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from . import chunking, entries, loading, partitions, writing
from .bank import Bank
from .entries import SUMMARY_TAG, Entry
from .errors import PreconditionFailed
from .marking import due
from .partitions import Head
from .ports import Either, Is, Ports, Update
from .retrying import until_committed


def correct(
    ports: Ports,
    bank: Bank,
    entry_id: str,
    *,
    content: str | None = None,
    tags: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    if_match: int | None = None,
    deadline: int,
) -> Entry:
    """The corrected entry; None leaves a field as it is. Two corrections at once follow each other, whole.

    Raises `NotFound`, `Gone` ("compacted"), `PreconditionFailed` when `if_match` is not the current version, and
    `DatabaseUnavailable`.
    """

    def attempt() -> Entry:
        head, before = loading.locate(ports, bank, entry_id)
        if if_match is not None and if_match != before.version:
            raise PreconditionFailed(f"the entry is at version {before.version}, not {if_match}", code="version_mismatch")
        after = _changed(bank, before, content, tags, metadata)
        item = entries.to_item(after, "")
        changes = {name: item[name] for name in ("content", "chunks", "tokens", "version")}
        changes |= {name: item[name] for name in ("tags", "metadata") if name in item}
        changes["indexed_chunks"] = max(before.indexed_chunks, before.chunks)
        ports.table.transact(
            [
                Update(
                    partitions.entry_key(bank, before.partition, before.sort),
                    set=changes | due(before.internal_id, ports.clock.now() + writing.UNINDEXED_DUE),
                    remove=("attempts", "index_failed", *(name for name in ("tags", "metadata") if name not in item)),
                    when=(Is("version", "=", before.version),),
                ),
                edit_head(bank, head, before.sort, tokens=after.tokens - before.tokens, chunks=after.chunks - before.chunks),
            ]
        )
        return after

    after = until_committed(attempt, ports.clock, ports.chance, deadline)
    writing.announce(ports, bank, [after])
    return after


def _changed(
    bank: Bank, before: Entry, content: str | None, tags: Sequence[str] | None, metadata: Mapping[str, Any] | None
) -> Entry:
    after = replace(before, version=before.version + 1)
    if content is not None:
        pieces = len(chunking.spans(content, bank.chunk_size, bank.chunk_overlap))
        after = replace(after, content=content, chunks=pieces)
    if tags is not None:
        reserved = (SUMMARY_TAG,) if before.kind == "summary" else ()
        after = replace(after, tags=(*reserved, *tags))
    if metadata is not None:
        after = replace(after, metadata=metadata)
    return after


def edit_head(bank: Bank, head: Head, lowest: str, *, entries: int = 0, tokens: int = 0, chunks: int = 0) -> Update:
    """The head's part of an edit of entries that all sort at or above `lowest`: one more edit, and the counters' correction."""
    return Update(
        partitions.head_key(bank, head.partition),
        add={"edits": 1, "entries": entries, "tokens": tokens, "chunks": chunks},
        when=(Is("pk", "exists"), Either((Is("watermark", "missing"), Is("watermark", "<", lowest)))),
    )

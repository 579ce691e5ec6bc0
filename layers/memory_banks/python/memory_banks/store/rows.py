"""Rows: an account's documents in the order of their last write, once for each prefix of a namespace.

A listing under any prefix reads the rows it shows and nothing else. A row names its document and, as long as it stays
within one write unit of 1 KB, holds a copy of it; of a longer document a listing reads the row and the item.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ports import Delete, Item, Key, Ports, Put
from . import document, namespaces, values
from .document import Document
from .namespaces import Namespace

ROW_BYTES = 1_000
"""The longest row that holds a copy, in bytes of its names and values: DynamoDB counts writes by 1 KB."""
PAGE = 200
"""Rows a query looks through for those that pass a filter."""


def rows_pk(account: str, prefix: Namespace) -> str:
    """The table partition of everything under a prefix, oldest write first."""
    return f"U#{account}#{namespaces.encoded(prefix)}"


def row_key(account: str, prefix: Namespace, version: str) -> Key:
    """Where a version's row under a prefix is."""
    return Key(rows_pk(account, prefix), version)


def puts(account: str, namespace: Namespace, item: Item) -> list[Put]:
    """The rows of a document, given by its new item."""
    shared: Item = {"place": item["sk"]}
    copied: Item = {name: item[name] for name in ("created_at", "value", "ttl", "expires_at") if name in item}
    longest = rows_pk(account, namespace)
    if "value" in item and _size({"pk": longest, "sk": item["version"]} | shared | copied) <= ROW_BYTES:
        shared |= copied
    return [Put({"pk": rows_pk(account, prefix), "sk": item["version"]} | shared) for prefix in namespaces.prefixes(namespace)]


def deletes(account: str, namespace: Namespace, version: str) -> list[Delete]:
    """The removal of a version's rows."""
    return [Delete(row_key(account, prefix, version)) for prefix in namespaces.prefixes(namespace)]


def _size(item: Item) -> int:
    return sum(len(name) + (len(value.encode()) if isinstance(value, str) else 21) for name, value in item.items())


def walk(ports: Ports, account: str, prefix: Namespace, *, page: int) -> Iterator[Document]:
    """The living documents under a prefix, newest first. Reads `page` rows at a time, and no row before it is needed.

    A document that is written meanwhile comes once, or in its place at the top, which is past already.
    """
    shown: set[str] = set()
    before: str | None = None
    while True:
        found = ports.table.query(rows_pk(account, prefix), before=before, reverse=True, limit=page)
        for one in resolved(ports, account, found.items):
            if one is not None and one.place not in shown:
                shown.add(one.place)
                yield one
        if found.after is None:
            return
        before = found.after


def resolved(ports: Ports, account: str, items: Sequence[Item | None]) -> list[Document | None]:
    """The living documents that rows name, in their order; None for one that has gone.

    What a row copies is true as long as the row is there, but for the time of expiry, which reads only ever put off.
    """
    now = ports.clock.now()
    doubtful = [position for position, item in enumerate(items) if item and not ("value" in item and document.alive(item, now))]
    current = ports.table.read([document.key_of(account, items[position]["place"]) for position in doubtful]) if doubtful else []  # type: ignore[index]
    found: list[Document | None] = [document.from_item(item, item["value"]) if item and "value" in item else None for item in items]
    for position, item in zip(doubtful, current, strict=True):
        found[position] = values.read(ports, item) if item and document.alive(item, now) else None
    return found

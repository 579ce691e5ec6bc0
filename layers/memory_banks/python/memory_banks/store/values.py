"""Values: in the document's item, or, when they are too long for one, in a blob that the item names.

A blob is written before its item and removed after it; each write has its own, so a reader never sees half of another's.
"""

from __future__ import annotations

from ..ports import Item, Key, Ports
from . import document
from .document import INLINE_BYTES, Document

_TRIES = 5


def blob_name(account: str, version: str) -> str:
    """The blob of a version."""
    return f"store/{account}/{version}.json"


def is_long(text: str) -> bool:
    """Whether a value's JSON needs a blob."""
    return len(text.encode()) > INLINE_BYTES


def read(ports: Ports, item: Item) -> Document | None:
    """The document of an item; None when it was deleted meanwhile."""
    current: Item | None = item
    for _ in range(_TRIES):
        if current is None:
            return None
        if "value" in current:
            return document.from_item(current, current["value"])
        body = ports.blobs.get(current["blob"])
        if body is not None:
            return document.from_item(current, body.decode())
        # Written anew since the item was read: the blob of that version is gone.
        [current] = ports.table.read([Key(item["pk"], item["sk"])])
    raise RuntimeError(f"the blob of {item['sk']!r} is missing")

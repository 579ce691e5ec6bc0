"""A document: a JSON object at (namespace, item key) of an account. What it is, and its item in the table.

    D#{account} / {namespace}␀{item key}       the document, found by its name
    U#{account}#{prefix} / {version}           a row for each prefix of its namespace, newest last (see `rows`)
    Y#{account} / {version}                    what a version still has to clear away (see `leavings`)
    T#{account} / store                        which model embeds the account's documents (see `indexing`)

`version` is a ULID: unique to one write, so that comparing it can't be fooled by a delete in between, and the time of that
write, so that rows sorted by it are sorted by `updated_at`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import ids
from ..clock import iso
from ..errors import Invalid, TooLarge
from ..limits import walk
from ..ports import Item, Key
from . import namespaces
from .namespaces import Namespace

VALUE_BYTES = 1_048_576
"""1 MiB of JSON."""
INLINE_BYTES = 380_000
"""The longest JSON that a DynamoDB item (400 KB) holds beside its other attributes; a longer one is a blob."""
DEPTH = 100
"""Levels of nesting of a value."""

MINUTE = 60_000
LONGEST_TTL = 1_000_000_000.0
"""Minutes: some 1,900 years."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it is now. Times are ms; `ttl` is minutes from the last access."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    version: str
    created_at: int
    ttl: float | None = None
    expires_at: int | None = None

    @property
    def updated_at(self) -> int:
        """When its value was last written, ms. Reading changes nothing here."""
        return ids.milliseconds_of(self.version)

    @property
    def place(self) -> str:
        """Its sort key."""
        return namespaces.place(self.namespace, self.key)

    def shown(self) -> dict[str, Any]:
        """As the API shows it."""
        return {
            "namespace": list(self.namespace),
            "key": self.key,
            "value": self.value,
            "created_at": iso(self.created_at),
            "updated_at": iso(self.updated_at),
            "version": self.version,
        }


def documents_pk(account: str) -> str:
    """The table partition of an account's documents, sorted by namespace and item key."""
    return f"D#{account}"


def key_of(account: str, place: str) -> Key:
    """Where a document is."""
    return Key(documents_pk(account), place)


def alive(item: Item | None, now: int) -> bool:
    """Whether an item, a document's or a row's, is there and not past its time."""
    return item is not None and ("expires_at" not in item or item["expires_at"] > now)


def from_item(item: Item, value: str) -> Document:
    """A document from its item, or from a row with a copy of it, and the JSON text of its value."""
    place: str = item["place"] if "place" in item else item["sk"]
    namespace, key = namespaces.split(place)
    return Document(
        namespace=namespace,
        key=key,
        value=json.loads(value),
        version=item["version"] if "version" in item else item["sk"],
        created_at=item["created_at"],
        ttl=item["ttl"] / MINUTE if "ttl" in item else None,
        expires_at=item.get("expires_at"),
    )


def checked_ttl(ttl: Any, loc: tuple[str | int, ...]) -> int | None:
    """The life after an access in ms, from minutes. Raises `Invalid`."""
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl <= LONGEST_TTL:
        raise Invalid(loc, f"must be a number of minutes above 0, at most {LONGEST_TTL:,.0f}; left out, the item does not expire")
    return max(round(ttl * MINUTE), 1)


def checked_value(value: Any, loc: tuple[str | int, ...]) -> str:
    """The JSON text of a value. Raises `Invalid` for what JSON can't hold, `TooLarge` beyond the limit."""
    if not isinstance(value, Mapping):
        raise Invalid(loc, "must be an object", "object_type")
    for path, part, depth in walk(value):
        if depth > DEPTH:
            raise Invalid((*loc, *path[:3]), f"is nested deeper than {DEPTH} levels", "too_deep")
        if isinstance(part, dict) and not all(isinstance(name, str) for name in part):
            raise Invalid((*loc, *path), "names must be texts", "string_type")
        if isinstance(part, float) and not math.isfinite(part):
            raise Invalid((*loc, *path), "must be a finite number", "not_finite")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Invalid(loc, "must be valid Unicode: it contains a lone surrogate", "invalid_text") from None
    except (TypeError, ValueError) as error:
        raise Invalid(loc, f"must be JSON: {error}", "not_json") from None
    if size > VALUE_BYTES:
        raise TooLarge(f"value: at most {VALUE_BYTES:,} bytes of JSON are allowed, these are {size:,}", code="value_too_large")
    return text

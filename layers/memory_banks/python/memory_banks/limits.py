"""The documented limits of what a caller may send, and the types that enforce them with a message naming what is allowed.

Each type is an annotation for the pydantic models in `requests`; a violation becomes a 422 that names the field, except
where the whole request is too big (`errors.TooLarge`, 413).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from . import ids
from .entries import SUMMARY_TAG

REQUEST_BYTES = 2_621_440
"""2.5 MiB of body."""
ENTRIES = 100
"""Entries a request."""
CONTENT_BYTES = 262_144
"""256 KiB of UTF-8."""
KEY_BYTES = 512
SPEAKER_LENGTH = 128
TAGS = 20
TAG_LENGTH = 128
METADATA_BYTES = 16_384
METADATA_DEPTH = 16
BODY_DEPTH = 32
"""Levels of nesting of a whole body."""
NAME_LENGTH = 255
DESCRIPTION_LENGTH = 1_000
PROMPT_LENGTH = 20_000
QUERY_BYTES = 8_192
SAMPLE_LENGTH = 20_000
TOP_K = 100
LOAD_LIMIT = 1_000
NEIGHBORS = 10
KEYS = 100
"""Keys one search may name."""
CONTEXT_TOKENS = 100_000
METADATA_TESTS = 20
"""Conditions on metadata in one search."""
IDEMPOTENCY_KEY_LENGTH = 255
RUN_MESSAGES = 40
"""Messages of one captured run: they fit into one transaction."""
COUNT = 1_000_000_000
"""The largest threshold or number of days."""
CHUNK_SIZE = (50, 20_000)
"""Characters a chunk may have in a custom bank; the overlap is at most half of it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST = datetime(1000, 1, 1, tzinfo=UTC)
_LATEST = datetime(9999, 12, 30, tzinfo=UTC)


def _wrong(kind: str, message: str) -> PydanticCustomError:
    return PydanticCustomError(kind, message)


def flaw(text: str) -> str | None:
    """What keeps a text from being stored and given back byte for byte, or None when nothing does."""
    if "\0" in text:
        return "must not contain NUL characters (U+0000)"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "must be valid Unicode: it contains a lone surrogate"
    return None


def _clean(value: Any) -> Any:
    if isinstance(value, str) and (found := flaw(value)):
        raise _wrong("invalid_text", found)
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise _wrong("blank", "must not be empty or blank")
    return value


def at_most_bytes(limit: int) -> AfterValidator:
    def check(value: str) -> str:
        size = len(value.encode())
        if size > limit:
            raise _wrong("too_long", f"at most {limit:,} bytes of UTF-8 are allowed, these are {size:,}")
        return value

    return AfterValidator(check)


def _tags(value: list[str]) -> list[str]:
    for tag in value:
        if not tag.strip():
            raise _wrong("blank", "a tag must not be empty or blank")
        if "," in tag:
            raise _wrong("comma", "a tag must not contain a comma")
        if len(tag) > TAG_LENGTH:
            raise _wrong("too_long", f"a tag has at most {TAG_LENGTH} characters")
    tags = list(dict.fromkeys(value))
    if len(tags) > TAGS:
        raise _wrong("too_many", f"at most {TAGS} tags are allowed")
    return tags


def _no_summary_tag(value: list[str]) -> list[str]:
    if SUMMARY_TAG in value:
        raise _wrong("reserved", f"the tag {SUMMARY_TAG} is reserved for summaries")
    return value


def _metadata(value: dict[str, Any]) -> dict[str, Any]:
    for where, part, depth in walk(value):
        if depth > METADATA_DEPTH:
            raise _wrong("too_deep", f"at most {METADATA_DEPTH} levels of nesting are allowed")
        if isinstance(part, str) and (found := flaw(part)):
            raise _wrong("invalid_text", f"{'.'.join(map(str, where)) or 'a name'} {found}")
        if isinstance(part, float) and not math.isfinite(part):
            raise _wrong("not_finite", f"{'.'.join(map(str, where))} must be a finite number")
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    if size > METADATA_BYTES:
        raise _wrong("too_long", f"at most {METADATA_BYTES:,} bytes of JSON are allowed, these are {size:,}")
    return value


def walk(value: Any) -> Iterator[tuple[tuple[str | int, ...], Any, int]]:
    """Every part of a JSON value with path and depth, without recursion; names of an object come with their own path."""
    waiting: list[tuple[tuple[str | int, ...], Any, int]] = [((), value, 1)]
    while waiting:
        path, part, depth = waiting.pop()
        yield path, part, depth
        if isinstance(part, dict):
            for name, inner in part.items():
                yield path, name, depth
                waiting.append(((*path, name), inner, depth + 1))
        elif isinstance(part, list):
            waiting.extend(((*path, number), inner, depth + 1) for number, inner in enumerate(part))


LATEST = (_LATEST - _EPOCH) // timedelta(milliseconds=1)
"""The last time that is understood, ms."""


def milliseconds(value: Any) -> int:
    """A time given as ISO 8601 with an offset, in ms since the epoch; finer parts are cut off. Raises a validation error."""
    if not isinstance(value, str):
        raise _wrong("time", "must be a time in ISO 8601 with an offset, such as 2026-11-30T12:00:00Z")
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        raise _wrong("time", "must be a time in ISO 8601 with an offset, such as 2026-11-30T12:00:00Z") from None
    if time.tzinfo is None:
        raise _wrong("time", "the time needs an offset from UTC, such as Z or +01:00")
    if not _EARLIEST <= time <= _LATEST:
        raise _wrong("time", "the year must be between 1000 and 9999")
    return (time - _EPOCH) // timedelta(milliseconds=1)


def _entry_id(value: str) -> str:
    if not ids.CALLER_ID.fullmatch(value) or value in {".", ".."}:
        raise _wrong("id", "an id has 1 to 128 characters of A-Z, a-z, 0-9, '.', '_' and '-'")
    if ids.parse(value):
        raise _wrong("id", "an id must not look like one that the service gives out")
    return value


CLEAN = BeforeValidator(_clean)
"""Refuses what can't come back byte for byte; after a `Field`, whose limits the OpenAPI document would lose otherwise."""
Text = Annotated[str, CLEAN]
"""Any text that comes back byte for byte."""
Content = Annotated[
    Text,
    AfterValidator(_not_blank),
    at_most_bytes(CONTENT_BYTES),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": CONTENT_BYTES,
            "pattern": r"\S",
            "description": f"Not blank; at most {CONTENT_BYTES:,} bytes of UTF-8",
        }
    ),
]
EntryKey = Annotated[
    Text,
    at_most_bytes(KEY_BYTES),
    WithJsonSchema({"type": "string", "maxLength": KEY_BYTES, "description": f"At most {KEY_BYTES} bytes of UTF-8"}),
]
Speaker = Annotated[
    Text,
    AfterValidator(_not_blank),
    Field(max_length=SPEAKER_LENGTH),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": SPEAKER_LENGTH, "pattern": r"\S"}),
]
_TAGS_SCHEMA = {
    "type": "array",
    "maxItems": TAGS,
    "items": {"type": "string", "minLength": 1, "maxLength": TAG_LENGTH, "pattern": r"^[^,]*[^,\s][^,]*$"},
}
FilterTags = Annotated[list[Text], AfterValidator(_tags), WithJsonSchema(_TAGS_SCHEMA)]
Tags = Annotated[list[Text], AfterValidator(_tags), AfterValidator(_no_summary_tag), WithJsonSchema(_TAGS_SCHEMA)]
Metadata = Annotated[
    dict[str, Any],
    AfterValidator(_metadata),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": True,
            "description": f"At most {METADATA_BYTES:,} bytes of JSON, {METADATA_DEPTH} levels",
        }
    ),
]
Time = Annotated[int, BeforeValidator(milliseconds), WithJsonSchema({"type": "string", "format": "date-time"})]
EntryId = Annotated[Text, AfterValidator(_entry_id), WithJsonSchema({"type": "string", "pattern": r"^[A-Za-z0-9._-]{1,128}$"})]
QueryText = Annotated[
    Text,
    AfterValidator(_not_blank),
    at_most_bytes(QUERY_BYTES),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": QUERY_BYTES, "pattern": r"\S"}),
]

"""What every form of history is read into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Turn:
    """One text of a history. Values are as found: the service judges them."""

    where: str
    """For people: `line 12`, `message 3`."""
    content: Any
    speaker: Any = None
    key: Any = None
    """None: the import's own key."""
    occurred_at: Any = None
    tags: Any = ()
    metadata: Any = field(default_factory=dict)
    id: Any = None
    """Chosen by the history's author, unique in the bank."""
    source_id: str | None = None
    """What the history itself calls it; only helps to tell turns apart."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A piece of a history that is no turn, and why."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings that a bank is made with, when there is none yet."""

    settings: dict[str, Any]


Piece = Turn | Unreadable | Configuration


class WrongForm(Exception):
    """The file as a whole is not of the form; the message says what was expected."""


def time_of(value: Any) -> Any:
    """Seconds since the epoch as ISO 8601; anything else as it is."""
    from datetime import UTC, datetime

    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        except (OverflowError, ValueError, OSError):
            return str(value)
    return value


def first(record: Mapping[str, Any], *names: str) -> Any:
    """The first of these fields that is there and not null."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def text_of(content: Any) -> Any:
    """The text of a content that is a string or a list of parts (OpenAI's form); None when a list has no text."""
    if not isinstance(content, list):
        return content
    texts = [part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, str | dict)]
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip()) or None

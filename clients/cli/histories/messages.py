"""Chat messages: an array of `{"role": "user", "content": "…"}`, or an object that holds it under `messages`.

`name` stands for `role` when it is there; `content` may be a list of parts, of which the texts count; `timestamp` or
`created_at` says when.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clients.cli.histories.turn import Piece, Turn, Unreadable, WrongForm, first, text_of, time_of


def read(document: Any) -> Iterator[Piece]:
    """The turns of the messages, in order. Raises `WrongForm`."""
    messages = document.get("messages") if isinstance(document, dict) else document
    if not isinstance(messages, list):
        raise WrongForm('a JSON array of {"role", "content"} objects was expected')
    for number, message in enumerate(messages, 1):
        where = f"message {number}"
        if not isinstance(message, dict):
            yield Unreadable(where, "no JSON object")
            continue
        content = text_of(message.get("content"))
        if content is None:
            yield Unreadable(where, "no text")
            continue
        occurred_at = time_of(first(message, "timestamp", "created_at", "occurred_at"))
        yield Turn(where, content=content, speaker=first(message, "name", "role"), occurred_at=occurred_at)

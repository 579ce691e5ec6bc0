"""Distillation `none`: each message is an entry as it is."""

from __future__ import annotations

from typing import Any

from ..bank import Bank
from ..capture.message import Message
from ..entries import NewEntry

CAPTURED = "captured"
"""The tag of what was made of captured messages."""


def entry_of(bank: Bank, key: str, message: Message) -> NewEntry:
    """A message as an entry; who sent it is the speaker, or in a general bank metadata."""
    metadata: dict[str, Any] = {"run_id": message.run, "message_id": message.id}
    metadata |= {name: value for name, value in (("name", message.name), ("user_id", message.user_id)) if value}
    if not bank.conversation:
        metadata["sender"] = message.sender
    return NewEntry(
        content=message.text,
        key=key,
        speaker=message.sender if bank.conversation else None,
        tags=(CAPTURED,),
        metadata=metadata,
        occurred_at=message.occurred_at,
    )


def entry_from(bank: Bank, key: str, text: str, told: list[Message]) -> NewEntry:
    """What a prompt made of some messages, as an entry that names its sources."""
    runs = list(dict.fromkeys(message.run for message in told))
    metadata: dict[str, Any] = {"runs": runs[:20], "messages": len(told)}
    users = {message.user_id for message in told if message.user_id}
    if len(users) == 1:
        metadata["user_id"] = users.pop()
    return NewEntry(
        content=text,
        key=key,
        speaker="system" if bank.conversation else None,
        tags=(CAPTURED, "distilled"),
        metadata=metadata,
        occurred_at=max(message.occurred_at for message in told),
    )

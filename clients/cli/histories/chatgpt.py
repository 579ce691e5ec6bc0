"""A ChatGPT export (`conversations.json`): conversations as trees of messages.

An edited or regenerated message is a fork; what counts is the branch that ends at the conversation's current message, as its
owner sees it. Each conversation is a key of its own, its id. System, tool and hidden messages are not part of the talk
and are passed over; so are parts that are no text, as images.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clients.cli.histories.turn import Piece, Turn, Unreadable, WrongForm, text_of, time_of

TALKING = frozenset({"user", "assistant"})
TEXT = frozenset({"text", "multimodal_text"})


def read(document: Any) -> Iterator[Piece]:
    """The turns of all conversations, each in order. Raises `WrongForm`."""
    conversations = document if isinstance(document, list) else [document]
    if not all(isinstance(one, dict) and isinstance(one.get("mapping"), dict) for one in conversations):
        raise WrongForm("a ChatGPT export was expected: an array of conversations that each have a `mapping`")
    for number, conversation in enumerate(conversations, 1):
        title = conversation.get("title") or f"conversation {number}"
        key = conversation.get("conversation_id") or conversation.get("id") or str(title)
        for position, message in enumerate(_branch(conversation), 1):
            where = f"{title!r}, message {position}"
            try:
                turn = _turn(where, key, message)
            except (AttributeError, TypeError):
                yield Unreadable(where, "not a message as ChatGPT exports them")
                continue
            if turn:
                yield turn


def _branch(conversation: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages from the first to the current one; without a current one, to the newest that has no answer."""
    mapping = conversation["mapping"]
    node = conversation.get("current_node")
    if node not in mapping:
        leaves = [name for name, one in mapping.items() if not one.get("children")]
        node = max(leaves, key=lambda name: (mapping[name].get("message") or {}).get("create_time") or 0, default=None)
    branch: list[dict[str, Any]] = []
    seen: set[Any] = set()
    while node in mapping and node not in seen:
        seen.add(node)
        if mapping[node].get("message"):
            branch.append(mapping[node]["message"])
        node = mapping[node].get("parent")
    return branch[::-1]


def _turn(where: str, key: str, message: dict[str, Any]) -> Turn | None:
    author = message.get("author") or {}
    content = message.get("content") or {}
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    # A message to a tool (`recipient`) is the assistant's own work, not talk.
    if author.get("role") not in TALKING or content.get("content_type") not in TEXT or hidden:
        return None
    if message.get("recipient", "all") != "all":
        return None
    text = text_of(content.get("parts") or [])
    if not text:
        return None
    speaker = author["role"]
    return Turn(where, text, speaker, key, time_of(message.get("create_time")), source_id=message.get("id"))

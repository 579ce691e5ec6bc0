"""LangGraph's items with the version of their last write, for `put_if`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from langgraph.store.base import Item, SearchItem


class StoredItem(Item):
    """An item that was read by name."""

    __slots__ = ("version",)

    def __init__(self, shown: Mapping[str, Any]) -> None:
        super().__init__(
            value=shown["value"],
            key=shown["key"],
            namespace=tuple(shown["namespace"]),
            created_at=datetime.fromisoformat(shown["created_at"]),
            updated_at=datetime.fromisoformat(shown["updated_at"]),
        )
        self.version: str = shown["version"]


class FoundItem(SearchItem):
    """An item that a search found. `score` is the cosine of its nearest text, None without a query or without vectors."""

    __slots__ = ("version",)

    def __init__(self, shown: Mapping[str, Any]) -> None:
        super().__init__(
            namespace=tuple(shown["namespace"]),
            key=shown["key"],
            value=shown["value"],
            created_at=datetime.fromisoformat(shown["created_at"]),
            updated_at=datetime.fromisoformat(shown["updated_at"]),
            score=shown["score"],
        )
        self.version: str = shown["version"]

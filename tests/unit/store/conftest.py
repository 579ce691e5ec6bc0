"""A store over doubles of our own ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from memory_banks.store.store import Store

from tests.doubles.world import World


class Shelf:
    """The store of one account, with verbs as short as a test wants them."""

    def __init__(self, world: World, account: str = "acme", **rest: Any) -> None:
        self.world = world
        self.store = Store(world, account, **rest)

    def put(self, namespace: Sequence[str], key: str, value: Mapping[str, Any] | None = None, **rest: Any) -> Any:
        return self.store.put(namespace, key, {"text": key} if value is None else value, deadline=self.world.deadline(), **rest)

    def delete(self, namespace: Sequence[str], key: str, **rest: Any) -> None:
        self.store.delete(namespace, key, deadline=self.world.deadline(), **rest)

    def get(self, namespace: Sequence[str], key: str, **rest: Any) -> Any:
        return self.store.get(namespace, key, **rest)

    def value(self, namespace: Sequence[str], key: str) -> Any:
        found = self.store.get(namespace, key)
        return found and found.value

    def keys(self, prefix: Sequence[str] = (), **rest: Any) -> list[str]:
        return [one.document.key for one in self.store.search(prefix, **rest)]

    def names(self, **rest: Any) -> list[tuple[str, ...]]:
        return self.store.list_namespaces(**rest)

    def batch(self, *operations: Any) -> list[Any]:
        return self.store.batch(operations, deadline=self.world.deadline())

    def outside(self) -> tuple[int, int]:
        """How many vectors and blobs there are."""
        index = self.world.index
        name = "memory-banks-hashed-words-512"
        return len(list(index.scan(name, "store-acme", 1))), len(self.world.blobs.kept)

    def records(self) -> list[Any]:
        """What still has to be cleared away."""
        return [item for item in self.world.table.everything() if item["pk"].startswith("Y#")]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def shelf(world: World) -> Shelf:
    return Shelf(world)

"""Whoever waits until a write is searchable can search it, also where an index shows writes a second late."""

from __future__ import annotations

from typing import Any

from memory_banks import loading
from memory_banks.adapters.embedded.index import EmbeddedIndex
from memory_banks.ports import IndexDocument, IndexUnavailable, Outcome
from memory_banks.search import SearchRequest, search

from tests.doubles.world import World


class LateIndex(EmbeddedIndex):
    """Shows what was written only after a refresh, as OpenSearch does."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.waiting: list[tuple[Any, ...]] = []
        self.down = False

    def write(self, name: str, documents: Any, dimensions: int) -> list[Outcome]:
        written: list[IndexDocument] = list(documents)
        self.waiting.append((name, written, dimensions))
        return [Outcome(document.id, "written") for document in written]

    def refresh(self, name: str) -> None:
        if self.down:
            raise IndexUnavailable("down")
        for waiting in self.waiting:
            super().write(*waiting)
        self.waiting.clear()


def test_what_was_waited_for_is_found() -> None:
    world = World(index=LateIndex())
    bank = world.bank(type="conversation")
    written = world.write(bank, "the red bicycle")
    world.drain()
    bank = world.again(bank)
    assert search(world, bank, SearchRequest("bicycle")) == []
    (entry,) = loading.wait_until_indexed(world, bank, written, world.deadline())
    assert entry.indexed
    assert [found.entry.content for found in search(world, bank, SearchRequest("bicycle"))] == ["the red bicycle"]


def test_an_index_that_went_down_meanwhile_does_not_fail_the_write() -> None:
    world = World(index=LateIndex())
    bank = world.bank(type="conversation")
    written = world.write(bank, "the red bicycle")
    world.drain()
    world.index.down = True
    (entry,) = loading.wait_until_indexed(world, bank, written, world.deadline())
    assert entry.indexed

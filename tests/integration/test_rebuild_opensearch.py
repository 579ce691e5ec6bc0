"""Rebuilding on a real OpenSearch node: the same tests as on the embedded index, and answers that stay nearly the same."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from memory_banks import rebuild
from memory_banks.adapters.opensearch import OpenSearchIndex
from memory_banks.ports import Filter, Form, IndexDocument, Indexed, Outcome, Ranking

from tests.doubles.world import World
from tests.faults.gate import INDEX, Death, Gate, Through
from tests.unit.test_rebuild import (  # noqa: F401
    begin,
    filled,
    go_on,
    held,
    job,
    sentence,
    test_a_bank_moves_to_another_mode_while_it_is_used,
    test_a_bank_that_shares_the_indexes_is_untouched,
    test_a_rebuild_in_the_same_index_drops_what_does_not_belong,
    test_an_entry_that_dies_while_it_is_backfilled_does_not_come_back,
    test_an_entry_written_between_backfill_and_swap_is_found,
    test_documents_of_keys_that_the_table_does_not_know_are_removed,
    test_reconciling_indexes_stale_versions_again,
    test_reconciling_mends_both_ways_and_only_what_differs,
    test_what_is_deleted_or_corrected_meanwhile_is_not_found_in_its_old_wording,
    texts_found,
    wanted,
)

pytestmark = pytest.mark.opensearch


class TestIndexes:
    """The adapter under index names of this test alone; what was written is visible at once."""

    __test__ = False

    def __init__(self, index: OpenSearchIndex) -> None:
        self._index = index
        self._prefix = f"memory-banks-test-{random.SystemRandom().getrandbits(48):x}-"

    def write(self, name: str, documents: Sequence[IndexDocument], dimensions: int) -> list[Outcome]:
        return self._index.write(self._prefix + name, documents, dimensions)

    def search(self, name: str, filter: Filter, *, forms: Sequence[Form], **rest: Any) -> list[Ranking]:
        self._index.refresh(self._prefix + name)
        return self._index.search(self._prefix + name, filter, forms=forms, **rest)

    def scan(self, name: str, *where: Any) -> Iterator[Indexed]:
        return self._index.scan(self._prefix + name, *where)

    def delete(self, name: str, *what: Any) -> None:
        self._index.delete(self._prefix + name, *what)

    def delete_entries(self, name: str, *what: Any) -> None:
        self._index.delete_entries(self._prefix + name, *what)

    def delete_partition(self, name: str, *what: Any) -> None:
        self._index.delete_partition(self._prefix + name, *what)

    def refresh(self, name: str) -> None:
        self._index.refresh(self._prefix + name)


@pytest.fixture
def world(opensearch_index: OpenSearchIndex) -> World:
    return World(index=TestIndexes(opensearch_index))


def test_the_top_ten_stay_after_the_index_was_dropped(world: World) -> None:
    one = filled(world, 60)
    queries = [sentence(number) for number in range(0, 60, 3)]
    before = [set(texts_found(world, one, query, top_k=10)) for query in queries]
    world.index.delete_partition(one.reads.index, one.id, one.generation, None)
    assert texts_found(world, one, queries[0]) == []
    job_id = begin(world, one)
    world.drain()
    assert job(world, one, job_id)["status"] == "completed"
    same = [len(was & set(texts_found(world, one, query, top_k=10))) / 10 for was, query in zip(before, queries, strict=True)]
    assert sum(same) / len(same) >= 0.95
    assert held(world, one) == wanted(world, one)


@pytest.mark.parametrize("when", ["dead before", "dead after"])
def test_a_kill_at_every_call_of_the_index(world: World, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One rebuild that dies at each of its calls, and goes on with the repetition of the message."""
    monkeypatch.setattr("memory_banks.backfill.BATCH", 10)
    one = filled(world)
    gate = Gate()
    real = world.index
    world.index = Through(gate, "index", real, INDEX)
    job_id = begin(world, one, mode="balanced")
    world.clock.advance(361)
    world.compaction.take()
    message = {"account": one.account, "bank": one.id, "rebuild": job_id, "hop": 0}
    died: set[str] = set()

    def decide(call: Any) -> str | None:
        """Each kind of call dies the first time it is made at a position of the record."""
        [record] = world.table.read([rebuild.key_of(one.id)])
        place = f"{call.method} {record['step']} {record['moves']}" if record else call.method
        if place in died:
            return None
        died.add(place)
        return when

    gate.decide = decide
    for _ in range(60):
        try:
            rebuild.handle(world, message, deadline=world.clock.now() + 300_000)
        except Death:
            continue
        if not world.table.read([rebuild.key_of(one.id)])[0]:
            break
        world.clock.advance(361)
        world.compaction.take()
        world.compaction.delayed.clear()
    gate.decide = None
    assert len(died) >= 6 and world.again(one).dimensions == 512
    assert held(world, one) == wanted(world, one) and not held(world, one, one.reads)

"""How many calls an operation makes, counted by the real client's event hooks on the emulator."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from memory_banks import loading, search
from memory_banks.adapters.dynamodb import DynamoTable
from memory_banks.clock import SystemClock

from tests.doubles.world import World

pytestmark = pytest.mark.emulator


@pytest.fixture
def calls() -> Counter[str]:
    """Calls that went out, by operation."""
    return Counter()


@pytest.fixture
def world(emulator: Any, calls: Counter[str]) -> Iterator[World]:
    client = emulator.client("dynamodb")
    name = f"calls-{random.SystemRandom().getrandbits(48):x}"
    resources = emulator.create(name)

    def counted(event_name: str, **_: Any) -> None:
        calls[event_name.rsplit(".", 1)[1]] += 1

    client.meta.events.register("before-send.dynamodb", counted)
    yield World(clock=SystemClock(), table=DynamoTable(client, resources.table, SystemClock(), random.Random(0)))
    client.meta.events.unregister("before-send.dynamodb", counted)


def test_a_write_is_one_strong_batch_read_and_one_transaction(world: World, calls: Counter[str]) -> None:
    bank = world.bank()
    calls.clear()
    world.write(bank, "the first of its key")
    assert calls == {"BatchGetItem": 1, "TransactWriteItems": 1}
    calls.clear()
    world.write(bank, "the next")
    assert calls == {"BatchGetItem": 1, "TransactWriteItems": 1}


def test_a_threshold_that_is_not_crossed_costs_a_write_nothing(world: World, calls: Counter[str]) -> None:
    bank = world.bank(max_turns=50, compaction_prompt="Keep what matters.")
    calls.clear()
    world.write(bank, "a turn")
    assert calls == {"BatchGetItem": 1, "TransactWriteItems": 1}


def test_a_batch_of_a_hundred_turns_is_two_transactions(world: World, calls: Counter[str]) -> None:
    bank = world.bank()
    calls.clear()
    world.write(bank, *[f"turn {number}" for number in range(100)])
    assert calls == {"BatchGetItem": 1, "TransactWriteItems": 2}


def test_a_load_reads_the_head_and_as_many_megabytes_as_there_are(world: World, calls: Counter[str]) -> None:
    bank = world.bank()
    for start in range(0, 300, 100):
        world.write(bank, *[f"{start + number} " + "x" * 9_000 for number in range(100)])
    calls.clear()
    page = loading.load(world, bank, loading.Load(key="k", limit=1000))
    assert len(page.entries) == 300
    assert calls["BatchGetItem"] == 1
    megabytes = -(-sum(len(entry.content) + 400 for entry in page.entries) // 1_000_000)
    assert calls["Query"] <= megabytes + 2 and set(calls) == {"BatchGetItem", "Query"}


def test_a_search_is_one_batch_read_for_each_hundred_items(world: World, calls: Counter[str]) -> None:
    bank = world.bank()
    for start in range(0, 300, 100):
        world.write(bank, *[f"turn {start + number} about apples and word{number % 7}" for number in range(100)])
    world.drain()
    bank = world.again(bank)
    for top_k in (10, 100):
        asked: list[int] = []
        read = world.table.read
        world.table.read = lambda keys, read=read, asked=asked: (asked.append(len(keys)), read(keys))[1]
        calls.clear()
        assert len(search.search(world, bank, search.SearchRequest("apples word3", keys=("k",), top_k=top_k))) == top_k
        assert calls == {"BatchGetItem": -(-sum(asked) // 100)}
        world.table.read = read

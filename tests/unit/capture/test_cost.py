"""What capture and distillation cost does not grow with what a bank holds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from memory_banks.capture import trigger
from memory_banks.distillation import distilling

from tests.doubles.world import World


class Counting:
    """A table whose calls, and the items they read, are counted."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.calls: Counter[str] = Counter()
        self.items = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._table, name)
        if name not in {"read", "query", "write", "transact", "due", "aged", "count"}:
            return found

        def counted(*args: Any, **rest: Any) -> Any:
            self.calls[name] += 1
            answer = found(*args, **rest)
            self.items += len(answer.items) if name == "query" else len(answer) if name == "read" else 0
            return answer

        return counted


def cost_of_a_run(world: World, bank: Any) -> tuple[Counter[str], int, int]:
    """Calls and items read, from a run to its memories in the index; and the items that the index was given."""
    table = Counting(world.table)
    world.table = table
    world.capture(bank, "one", "two")
    world.quiet()
    world.table = table._table
    return table.calls, table.items, len(world.texts(bank))


@pytest.mark.parametrize("key", ["k", "other"])
def test_a_run_costs_the_same_in_a_small_bank_and_in_a_large_one(key: str) -> None:
    """Langflow's loss 12: bulk ingestion is quadratic, statistics read the store again after each job."""
    world = World()
    bank = world.bank(capture={})
    # As many as the windows of a conversation look back.
    world.capture(bank, "first", "second", "third", "fourth", "fifth", "sixth")
    world.quiet()
    small, read, _ = cost_of_a_run(world, bank)
    for number in range(300):
        world.capture(bank, f"text {number}", key=key)
    world.quiet()
    large, read_then, there = cost_of_a_run(world, bank)
    assert there >= 5
    assert small == large
    assert read_then == read


def test_a_run_is_captured_in_two_reads_and_one_transaction() -> None:
    world = World()
    bank = world.bank(capture={})
    world.capture(bank, "the first of its key")
    table = Counting(world.table)
    world.table = table
    world.capture(bank, "one", "two", id="r")
    assert table.calls == Counter(read=2, transact=1)
    world.capture(bank, "one", "two", id="r")
    assert table.calls == Counter(read=4, transact=1)


def test_many_runs_are_distilled_a_transaction_for_ninety_messages() -> None:
    world = World()
    bank = world.bank(capture={"auto_capture": False})
    for number in range(180):
        world.capture(bank, f"text {number}")
    trigger.flush(world, bank, "k", deadline=world.deadline())
    [message] = world.distillation.take()
    table = Counting(world.table)
    world.table = table
    distilling.handle(world, message, deadline=world.clock.now() + 270_000)
    # Two batches; the lease and letting go of it, the job's start and end.
    assert table.calls["transact"] == 2
    assert table.calls["write"] == 5
    assert table.calls["read"] == 6

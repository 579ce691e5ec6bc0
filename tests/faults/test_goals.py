"""What maintenance may cost, counted: calls of the model, calls of the table, items read."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from memory_banks import ids, partitions, sweeping
from memory_banks.ports import ModelUnavailable

from tests.faults.checks import check
from tests.faults.gate import Call
from tests.faults.life import FILLER, Life

pytestmark = pytest.mark.faults

PROMPT = "Keep what matters."


@pytest.mark.parametrize("max_turns", [4, 5, 7, 20, 50])
@pytest.mark.parametrize("at_once", [1, 3])
def test_a_model_call_pays_for_half_a_threshold_of_writes(max_turns: int, at_once: int) -> None:
    life = Life({"max_turns": max_turns, "compaction_prompt": PROMPT})
    writes = 0
    while writes < 300:
        life.write(count=at_once)
        life.work()
        writes += at_once
    assert 0 < life.metrics.counted["Compactions"] <= 2 * writes / max_turns
    assert life.model.calls == life.metrics.counted["Compactions"]


def test_one_failed_try_a_back_off() -> None:
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT})
    tries: list[int] = []

    def fails(*args: Any, **rest: Any) -> str:
        tries.append(life.clock.now())
        raise ModelUnavailable("down")

    life.model.complete = fails  # type: ignore[method-assign]
    for number in range(720):
        life.write()
        if number % 360 == 359:
            life.sweep()
        life.work()
        life.clock.advance(10)
    pauses = [(later - earlier) // 1000 for earlier, later in pairwise(tries)]
    wanted = [0, *(60 * 2**n for n in range(len(pauses) - 1))]
    assert len(tries) > 5 and all(pause >= least for pause, least in zip(pauses, wanted, strict=True)), pauses
    assert len(life.load()) == 720, "a failing model cost an entry"


def idle_partitions(life: Life, count: int) -> None:
    """Partitions like one that was written and indexed, put into the table directly."""
    bank, table = life.bank, life.memory_table
    life.write("pattern")
    life.work()
    pattern = ids.partition_of(bank.id, "pattern")
    head = table.read([partitions.head_key(bank, pattern)])[0]
    rest = table.query(partitions.partition_pk(bank, pattern)).items
    assert head and rest
    for number in range(count):
        partition = ids.partition_of(bank.id, str(number))
        at, pk = partitions.head_key(bank, partition), partitions.partition_pk(bank, partition)
        table.fill([{**head, "pk": at.pk, "sk": at.sk, "key": str(number)}, *({**item, "pk": pk} for item in rest)])


def reads_of_an_idle_sweep(life: Life) -> int:
    life.clock.advance(3600)
    before = life.memory_table.reads, life.memory_table.writes
    for schedule in ("compaction", "retention"):
        swept = sweeping.sweep(life, schedule, deadline=life.clock.now() + 600_000)  # type: ignore[arg-type]
        assert swept == sweeping.Swept()
    assert life.memory_table.writes == before[1]
    return life.memory_table.reads - before[0]


def test_an_idle_sweep_reads_no_more_with_a_hundred_thousand_partitions() -> None:
    costs = []
    for count in (10, 100_000):
        life = Life({"max_turns": 50, "compaction_prompt": PROMPT})
        idle_partitions(life, count)
        costs.append(reads_of_an_idle_sweep(life))
    assert costs[0] == costs[1] <= 20, costs


def test_an_idle_sweep_reads_no_more_with_ten_thousand_banks() -> None:
    costs = []
    for count in (10, 10_000):
        life = Life({"max_turns": 50, "compaction_prompt": PROMPT, "retention_days": 30})
        life.write()
        life.work()
        record = next(item for item in life.memory_table.everything() if item["pk"].startswith("B#"))
        life.memory_table.fill({**record, "sk": f"{number}"} for number in range(count))
        costs.append(reads_of_an_idle_sweep(life))
    assert costs[0] == costs[1] <= 20, costs


def calls_of(settings: dict[str, Any]) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """The calls of one write, and those of its ingestion."""
    life = Life(settings)
    life.write()
    life.work()
    life.gate.calls.clear()
    life.write()
    written = Counter((call.port, call.method) for call in life.gate.calls)
    life.gate.calls.clear()
    life.work()
    return written, Counter((call.port, call.method) for call in life.gate.calls)


def test_a_write_that_crosses_no_threshold_costs_no_extra_call() -> None:
    plain, ingested = calls_of({})
    bounded, ingested_bounded = calls_of({"max_turns": 50, "max_size_tokens": 10_000, "compaction_prompt": PROMPT})
    assert plain == bounded == {("table", "read"): 1, ("table", "transact"): 1, ("queue", "send"): 1}
    assert ingested_bounded - ingested == {("table", "read"): 1}, "one strong read tells whether a threshold is crossed"
    assert not ingested - ingested_bounded


def test_a_load_after_compaction_reads_only_what_lives() -> None:
    life = Life({"max_turns": 9_999, "compaction_prompt": PROMPT})
    for _ in range(100):
        life.write(count=100, text=" short" + FILLER)
    life.change(max_turns=20)
    life.queues["ingestion"].waiting.clear()  # nothing of this is about the index
    life.work()
    assert sum(item["sk"].startswith("E#") for item in life.memory_table.everything()) == 10_001, "cleaned up before its time"
    read: list[int] = []
    query = life.memory_table.query

    def counting(*args: Any, **rest: Any) -> Any:
        page = query(*args, **rest)
        read.append(len(page.items))
        return page

    life.memory_table.query = counting  # type: ignore[method-assign]
    reads = life.memory_table.reads
    shown = life.load()
    assert [entry.kind for entry in shown] == ["summary"] + ["entry"] * 10
    assert sum(read) == 11 and life.memory_table.reads - reads <= 3
    del life.memory_table.query
    check(life, settled=False)


def test_no_call_of_a_port_is_made_by_a_sweep_for_what_is_not_due() -> None:
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT})
    life.write()
    life.gate.calls.clear()
    life.sweep()
    assert {(call.port, call.method) for call in life.gate.calls} == {("table", "due")}
    assert len(life.gate.calls) == 16 and isinstance(life.gate.calls[0], Call)

"""Named interleavings: each is one way in which memories get lost elsewhere, forced step by step."""

from __future__ import annotations

import random

import pytest
from memory_banks import compaction, ids, loading, partitions, retention, sweeping
from memory_banks.errors import Gone
from memory_banks.loading import Load

from tests.faults.checks import check
from tests.faults.gate import Call
from tests.faults.life import FILLER, Life, told_in
from tests.faults.stepping import Stepper

pytestmark = pytest.mark.faults

PROMPT = "Keep what matters."
DAY = 86_400


def compact(life: Life, key: str = "k") -> None:
    partition = ids.partition_of(life.bank.id, key)
    life.process(lambda: compaction.compact(life, life.current(), partition, deadline=life.clock.now() + 120_000))


def over_threshold(**settings: object) -> tuple[Stepper, Life]:
    """A life on a stepper, with five notes of which a compaction would replace three."""
    stepper = Stepper(0)
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT} | settings, clock=stepper)
    for _ in range(5):
        life.write()
        stepper.advance(1)
    life.gate.pause = stepper.pause
    return stepper, life


def entries_shown(life: Life) -> list[int]:
    return [told_in(entry.content)[0] for entry in life.load() if entry.kind == "entry"]


def summary_shown(life: Life) -> list[int]:
    return [number for entry in life.load() if entry.kind == "summary" for number in told_in(entry.content)]


@pytest.mark.parametrize("skew", [0, -60_000])
def test_a_write_that_began_before_the_read_and_commits_during_the_model_call_survives(skew: int) -> None:
    stepper, life = over_threshold()
    writer = stepper.start(lambda: life.host(skew).write())
    stepper.let(writer, "table", "transact")  # it has read the old floor
    compactor = stepper.start(lambda: compact(life))
    stepper.let(compactor, "chat", "complete")  # it has read what it will replace
    stepper.finish(writer)
    stepper.finish(compactor)
    assert (summary_shown(life), entries_shown(life)) == ([0, 1, 2], [3, 4, 5])
    life.settle()
    check(life)


def test_a_write_that_read_before_the_floors_were_raised_cannot_land_below_them() -> None:
    stepper, life = over_threshold()
    writer = stepper.start(lambda: life.host(-3_600_000).write())
    stepper.let(writer, "table", "transact")
    compact(life)
    stepper.finish(writer)
    assert (summary_shown(life), entries_shown(life)) == ([0, 1, 2], [3, 4, 5])
    check(life, settled=False)


def test_an_entry_deleted_while_the_model_summarises_it_is_not_told() -> None:
    _, life = over_threshold()
    life.model.during = lambda: life.delete(1)
    compact(life)
    assert (summary_shown(life), entries_shown(life)) == ([], [0, 2, 3, 4])
    life.write()
    life.work()
    assert life.model.calls == 2 and 1 not in summary_shown(life) and summary_shown(life)
    life.settle()
    check(life)


def test_an_entry_corrected_while_the_model_summarises_it_is_told_in_the_new_wording() -> None:
    _, life = over_threshold()
    life.model.during = lambda: life.correct(1)
    compact(life)
    assert (summary_shown(life), entries_shown(life)) == ([], [0, 5, 2, 3, 4])
    life.work()
    life.settle()
    assert 5 in summary_shown(life) and 1 not in summary_shown(life)
    check(life)


class Seventh(random.Random):
    """Chance that always names the last shard."""

    def randrange(self, *args: int) -> int:  # type: ignore[override]
        return 7


def test_a_shard_created_during_a_compaction_takes_nothing_below_the_watermark() -> None:
    stepper = Stepper(0)
    life = Life({"type": "general", "max_turns": 4, "compaction_prompt": PROMPT}, clock=stepper, ordered=False)
    first = life.host(0)
    first.chance = random.Random(5)
    first.chance.randrange = lambda *args: 0  # type: ignore[method-assign]
    for _ in range(5):
        first.write()
        stepper.advance(1)
    shard = partitions.shard_key(life.bank, ids.partition_of(life.bank.id, "k"), 7)
    assert life.memory_table.read([shard]) == [None]
    life.gate.pause = stepper.pause
    late = life.host(-3_000)
    late.chance = Seventh(0)
    writer = stepper.start(late.write)
    stepper.let(writer, "table", "transact")  # it has read that there is no such shard
    compactor = stepper.start(lambda: compact(life))
    stepper.let(compactor, "chat", "complete")
    stepper.finish(writer)
    stepper.finish(compactor)
    assert summary_shown(life) == [0, 1, 2] and sorted(entries_shown(life)) == [3, 4, 5]
    life.settle()
    check(life)


@pytest.mark.parametrize("kind", ["conversation", "general"])
def test_a_lagging_clock_writes_after_the_summary(kind: str) -> None:
    _, life = over_threshold(type=kind)
    life.ordered = kind == "conversation"
    life.model.during = lambda: life.host(-7_200_000).write()
    compact(life)
    life.host(-7_200_000).write()
    if kind == "conversation":
        assert entries_shown(life) == [3, 4, 5, 6]
    assert summary_shown(life) == [0, 1, 2] and {5, 6} <= set(entries_shown(life))
    life.settle()
    check(life)


@pytest.mark.parametrize("seed", range(40))
def test_three_writers_crossing_the_threshold_at_once_are_compacted_once(seed: int) -> None:
    stepper = Stepper(seed)
    life = Life({"max_turns": 6, "compaction_prompt": PROMPT}, seed, stepper, ordered=False)
    life.write(count=4)
    life.work()
    life.gate.pause = stepper.pause

    def writes_and_works() -> None:
        life.write()
        life.work()

    for _ in range(3):
        stepper.start(writes_and_works)
    stepper.run()
    life.work()
    assert life.metrics.counted["Compactions"] == life.model.calls == 1
    check(life, settled=False)
    life.settle()
    check(life)


@pytest.mark.parametrize("at", range(1, 7))
def test_a_retention_cleared_while_the_sweep_deletes_stops_it_at_once(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    life = Life({"retention_days": 2})
    for key in "abc":
        for _ in range(4):
            life.write(key)
    life.work()
    life.clock.advance(2 * DAY + 60)
    left: list[int] = []

    def clears(call: Call) -> None:
        transactions.append(call) if call.method == "transact" else None
        if len(transactions) == at and not left:
            left.append(0)
            life.change(retention_days=0)
            left.append(len([item for item in life.memory_table.everything() if item["sk"].startswith("E#")]))

    transactions: list[Call] = []
    life.gate.pause = clears
    life.process(lambda: sweeping.sweep(life, "retention", deadline=life.clock.now() + 600_000))
    life.gate.pause = None
    assert left[1] == 12 - 2 * (at - 1), "the sweep deleted something after the retention was cleared, or nothing before"
    assert sum(len(life.load(key)) for key in "abc") == left[1]
    life.settle()
    check(life)
    assert sum(len(life.load(key)) for key in "abc") == left[1]


@pytest.mark.parametrize("seed", range(25))
def test_a_source_deleted_under_writers_leaves_what_was_written_after(seed: int) -> None:
    stepper = Stepper(seed)
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT, "retention_days": 30}, seed, stepper, ordered=False)
    life.write(count=3, ids=True)
    life.gate.pause = stepper.pause
    for number in range(4):
        stepper.start(lambda number=number: life.write("k", ids=bool(number % 2)))  # type: ignore[misc]
    stepper.start(life.work)
    stepper.start(life.delete_source)
    stepper.run()
    life.write()
    check(life, settled=False)
    life.settle()
    check(life)


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("pages_before", [1, 2])
def test_a_load_that_pages_across_a_commit_keeps_its_view(order: str, pages_before: int) -> None:
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT})
    for _ in range(5):
        life.write()

    def page(cursor: str | None) -> loading.LoadPage:
        return loading.load(life, life.current(), Load(key="k", order=order, limit=2, cursor=cursor))  # type: ignore[arg-type]

    seen: list[str] = []
    cursor = None
    for _ in range(pages_before):
        found = page(cursor)
        seen += [entry.content for entry in found.entries]
        cursor = found.next_cursor
    early = cursor
    life.work()
    assert summary_shown(life) == [0, 1, 2]
    life.clock.advance(299)
    life.work()
    while cursor is not None:
        found = page(cursor)
        seen += [entry.content for entry in found.entries]
        cursor = found.next_cursor
    notes = [f"note{number}{FILLER}" for number in range(5)]
    assert seen == (notes if order == "asc" else notes[::-1])
    life.clock.advance(2)
    with pytest.raises(Gone) as gone:
        page(early)
    assert gone.value.code == "compacted"
    life.settle()
    check(life)


def test_what_is_forgotten_leaves_a_view_that_began_before() -> None:
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT})
    for _ in range(5):
        life.write()
    first = loading.load(life, life.current(), Load(key="k", limit=2))
    life.work()
    life.delete_summary()
    rest = loading.load(life, life.current(), Load(key="k", limit=10, cursor=first.next_cursor))
    assert [told_in(entry.content) for entry in rest.entries] == [[3], [4]]
    check(life, settled=False)


@pytest.mark.parametrize("lost", ["nothing", "the message", "the message and the first walk"])
def test_a_threshold_lowered_on_a_quiet_partition_compacts_it(lost: str) -> None:
    life = Life({"max_turns": 50, "compaction_prompt": PROMPT})
    for key in ("k", "other"):
        for _ in range(9):
            life.write(key)
    life.work()
    life.change(max_turns=4)
    if lost != "nothing":
        life.queues["compaction"].waiting.clear()
    if lost == "the message and the first walk":
        life.clock.advance(3600)
        life.sweep()
        life.queues["compaction"].waiting.clear()
    life.settle()
    check(life)
    assert life.model.calls == 2 and [entry.kind for entry in life.load("other")] == ["summary", "entry", "entry"]


def test_a_bank_deleted_while_the_model_summarises_gets_no_summary() -> None:
    _, life = over_threshold()
    life.model.during = life.delete_bank
    compact(life)
    life.settle()
    check(life)

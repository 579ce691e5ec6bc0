"""The partition's protocol in small steps; the fault harness takes it apart."""

from __future__ import annotations

import pytest
from memory_banks import compaction, corrections, deletion, ids, loading, partitions, writing
from memory_banks.entries import NewEntry
from memory_banks.errors import Conflict, Gone, Invalid, NotFound, PreconditionFailed

from tests.doubles.world import World


@pytest.fixture
def world() -> World:
    return World()


def counters(world: World, bank, key: str = "k") -> partitions.Counters:
    found = partitions.read_all(world.table, bank, ids.partition_of(bank.id, key))
    assert found
    return partitions.count(*found)


def test_entries_load_in_the_order_they_were_written(world: World) -> None:
    bank = world.bank()
    for number in range(5):
        world.write(bank, f"{number}a", f"{number}b")
    assert world.texts(bank) == [f"{number}{letter}" for number in range(5) for letter in "ab"]
    assert [entry.content for entry in world.load(bank, order="desc", limit=3)] == ["4b", "4a", "3b"]
    assert counters(world, bank).entries == 10


def test_a_write_is_one_batch_read_and_one_transaction(world: World) -> None:
    bank = world.bank()
    world.write(bank, "first")
    reads, writes = world.table.reads, world.table.writes
    world.write(bank, "second")
    assert (world.table.reads - reads, world.table.writes - writes) == (1, 1)
    world.write(bank, *[f"turn {number}" for number in range(100)])
    assert (world.table.reads - reads, world.table.writes - writes) == (2, 3)


def test_a_clock_that_lags_does_not_disturb_the_order(world: World) -> None:
    bank = world.bank()
    world.write(bank, "first")
    world.clock.advance(-3600)
    world.write(bank, "second")
    assert world.texts(bank) == ["first", "second"]


def test_an_idempotency_key_writes_once(world: World) -> None:
    bank = world.bank()
    new = [NewEntry(f"turn {number}", key="k", speaker="user") for number in range(150)]
    request = writing.Idempotency("abc", "1" * 64)
    first = writing.write(world, "acme", bank.id, new, idempotency=request, deadline=world.deadline())
    again = writing.write(world, "acme", bank.id, new, idempotency=request, deadline=world.deadline())
    assert [one.entry.id for one in first] == [one.entry.id for one in again]
    assert counters(world, bank).entries == 150
    with pytest.raises(Invalid, match="another body"):
        writing.write(world, "acme", bank.id, new, idempotency=writing.Idempotency("abc", "2" * 64), deadline=world.deadline())
    world.clock.advance(days=1, seconds=1)
    writing.write(world, "acme", bank.id, new[:1], idempotency=writing.Idempotency("abc", "2" * 64), deadline=world.deadline())
    assert counters(world, bank).entries == 151


def test_a_callers_id_is_used_once(world: World) -> None:
    bank = world.bank()
    [entry] = world.write(bank, "hello", id="m-1")
    assert entry.id == "m-1"
    again = writing.write(world, "acme", bank.id, [NewEntry("hello", key="k", speaker="user", id="m-1")], deadline=world.deadline())
    assert again[0].existing and again[0].entry.internal_id == entry.internal_id
    with pytest.raises(Conflict):
        world.write(bank, "other", id="m-1")
    twice = [NewEntry("x", key="k", speaker="user", id="m-2")] * 2
    assert [one.existing for one in writing.write(world, "acme", bank.id, twice, deadline=world.deadline())] == [False, True]
    assert counters(world, bank).entries == 2
    assert loading.get(world, bank, "m-1").content == "hello"
    deletion.delete_entry(world, bank, "m-1", deadline=world.deadline())
    world.write(bank, "other", id="m-1")
    assert loading.get(world, bank, "m-1").content == "other"


def test_a_correction_changes_only_the_text(world: World) -> None:
    bank = world.bank()
    [first, _] = world.write(bank, "teh cat", "second")
    after = corrections.correct(world, bank, first.id, content="the cat", tags=["animal"], if_match=1, deadline=world.deadline())
    assert (after.version, after.created_at) == (2, first.created_at)
    assert world.texts(bank) == ["the cat", "second"]
    with pytest.raises(PreconditionFailed):
        corrections.correct(world, bank, first.id, content="x", if_match=1, deadline=world.deadline())
    assert counters(world, bank).tokens == sum(entry.tokens for entry in world.load(bank))


def test_a_forgotten_key_is_gone_and_can_be_written_again(world: World) -> None:
    bank = world.bank(type="general")
    entries = [world.write(bank, f"fact {number}")[0] for number in range(30)]
    deletion.forget_key(world, bank, "k", deadline=world.deadline())
    assert world.texts(bank) == [] and counters(world, bank).entries == 0
    with pytest.raises(NotFound):
        loading.get(world, bank, entries[0].id)
    world.write(bank, "new")
    world.settle()
    assert world.texts(bank) == ["new"] and counters(world, bank) == partitions.Counters(1, 1, 1)
    assert sum(item["sk"].startswith("E#") for item in world.table.everything()) == 1


def test_compaction_folds_the_oldest_into_one_summary(world: World) -> None:
    bank = world.bank(max_turns=10, compaction_prompt="Keep what matters.")
    entries = []
    for number in range(11):
        entries += world.write(bank, f"turn {number}: " + "words " * 30)
    world.drain()
    loaded = world.load(bank)
    assert [entry.kind for entry in loaded] == ["summary"] + ["entry"] * 5
    assert loaded[0].replaces and loaded[0].replaces.entries == 6
    assert loaded[0].replaces.from_id == entries[0].id and loaded[0].replaces.through_id == entries[5].id
    assert counters(world, bank).entries == 5
    assert counters(world, bank).tokens == sum(entry.tokens for entry in loaded)
    with pytest.raises(Gone) as gone:
        loading.get(world, bank, entries[0].id)
    assert gone.value.details["summary_id"] == loaded[0].id
    for number in range(6):
        world.write(bank, f"more {number}: " + "words " * 30)
    world.settle()
    loaded = world.load(bank)
    assert [entry.kind for entry in loaded] == ["summary"] + ["entry"] * 5
    assert loaded[0].replaces and loaded[0].replaces.entries == 12 and world.chat.calls == 2
    assert sum(item["sk"].startswith("E#") for item in world.table.everything()) == 6


def test_without_a_prompt_only_the_overflow_goes(world: World) -> None:
    bank = world.bank(max_turns=10)
    for number in range(13):
        world.write(bank, f"turn {number}")
        world.drain()
    assert world.texts(bank) == [f"turn {number}" for number in range(3, 13)]


def test_a_cursor_keeps_its_view_for_five_minutes(world: World) -> None:
    bank = world.bank(max_turns=10, compaction_prompt="Keep what matters.")
    for number in range(11):
        world.write(bank, f"turn {number}: " + "words " * 30)
    page = loading.load(world, bank, loading.Load(key="k", limit=4))
    world.drain()
    rest = loading.load(world, bank, loading.Load(key="k", limit=100, cursor=page.next_cursor))
    assert [entry.content.split(":")[0] for entry in page.entries + rest.entries] == [f"turn {number}" for number in range(11)]
    world.clock.advance(301)
    with pytest.raises(Gone):
        loading.load(world, bank, loading.Load(key="k", limit=100, cursor=page.next_cursor))


def test_lowering_a_threshold_compacts_a_quiet_partition(world: World) -> None:
    from memory_banks import banks
    from memory_banks.requests import UpdateBank

    bank = world.bank(max_turns=100, compaction_prompt="Keep what matters.")
    for number in range(20):
        world.write(bank, f"turn {number}: " + "words " * 30)
    world.drain()
    assert len(world.texts(bank)) == 20
    banks.update(world, "acme", bank.id, UpdateBank(max_turns=10), "2026-10-21", deadline=world.deadline())
    world.compaction.take()  # its message is lost
    world.settle()
    assert [entry.kind for entry in world.load(bank)] == ["summary"] + ["entry"] * 5


def test_what_is_past_the_retention_is_not_shown_and_then_removed(world: World) -> None:
    bank = world.bank(retention_days=7)
    world.write(bank, "old")
    world.clock.advance(days=3)
    world.write(bank, "young")
    world.clock.advance(days=4)
    assert world.texts(bank) == ["young"]
    world.settle()
    assert [item["content"] for item in world.table.everything() if "content" in item] == ["young"]
    assert counters(world, bank).entries == 1


def test_a_summary_no_model_gives_costs_no_entry(world: World) -> None:
    bank = world.bank(max_turns=4, compaction_prompt="Keep what matters.")
    world.chat.complete = lambda *args, **rest: "   "  # type: ignore[method-assign]
    for number in range(9):
        world.write(bank, f"turn {number}: " + "words " * 30)
        world.drain()
    assert len(world.texts(bank)) == 9
    head = partitions.read_all(world.table, bank, ids.partition_of(bank.id, "k"))
    assert head and head[0].failures == 2 and head[0].error
    world.chat = type(world.chat)()
    world.settle()
    assert [entry.kind for entry in world.load(bank)] == ["summary", "entry", "entry"]


def test_deleting_the_source_leaves_nothing(world: World) -> None:
    bank = world.bank(type="general")
    world.write(bank, *[f"fact {number}" for number in range(20)], key="a")
    world.write(bank, "one", key="b", id="mine")
    after = deletion.delete_source(world, bank, deadline=world.deadline())
    assert world.texts(after, "a") == [] and after.source_connection_id is None
    world.settle()
    left = [item for item in world.table.everything() if not item["pk"].startswith("B#")]
    assert left == []
    world.write(after, "again", key="a")
    assert world.texts(after, "a") == ["again"] and world.again(after).source_connection_id


def test_on_demand_compaction_is_a_job(world: World) -> None:
    from memory_banks import jobs

    bank = world.bank(max_turns=10, compaction_prompt="Keep what matters.")
    for key in "ab":
        for number in range(8):
            world.write(bank, f"turn {number}: " + "words " * 30, key=key)
    job = compaction.request(world, bank)
    world.drain()
    done = jobs.shown(jobs.get(world, bank, job["sk"]))
    assert done["status"] == "completed" and done["progress"] == {"current": 2, "total": 2}
    assert [len(world.texts(bank, key)) for key in "ab"] == [6, 6]


@pytest.mark.parametrize("erase", ["summary", "key"])
def test_erasing_what_was_compacted_frees_its_callers_ids(world: World, erase: str) -> None:
    bank = world.bank(max_turns=4, compaction_prompt="Keep what matters.")
    for number in range(5):
        world.write(bank, f"turn {number}: " + "words " * 30, id=f"m-{number}")
    world.settle()
    summary = world.load(bank)[0]
    assert summary.kind == "summary"
    again = writing.write(
        world,
        "acme",
        bank.id,
        [NewEntry("turn 0: " + "words " * 30, key="k", speaker="user", id="m-0")],
        deadline=world.deadline(),
    )
    assert again[0].existing
    if erase == "summary":
        deletion.delete_entry(world, bank, summary.id, deadline=world.deadline())
    else:
        deletion.forget_key(world, bank, "k", deadline=world.deadline())
    world.settle()
    left = [item for item in world.table.everything() if item["pk"].startswith("I#") or item["sk"].startswith("C#")]
    assert [item["sk"] for item in left] == (["m-3", "m-4"] if erase == "summary" else [])

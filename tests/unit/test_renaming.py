"""Renaming a key: everything is under the new key, as it was, and nothing under the old one."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks import compaction, contents, context, corrections, deletion, homes, jobs, loading, partitions, renaming, search
from memory_banks.bank import DAY, Bank
from memory_banks.capture import listing, messages, mismatch, runs, trigger
from memory_banks.capture.runs import NewMessage, NewRun
from memory_banks.entries import NewEntry
from memory_banks.errors import Conflict, Gone, Invalid, NotFound
from memory_banks.writing import Idempotency, write

from tests.doubles.world import World


@pytest.fixture
def world() -> World:
    return World()


def rename(world: World, bank: Bank, key: str = "k", to: str = "new") -> None:
    renaming.rename(world, world.again(bank), key, to, deadline=world.deadline())


def found(world: World, bank: Bank, key: str | None, query: str = "apples") -> list[str]:
    """What a search finds, each entry under the key that it says."""
    keys = None if key is None else [key]
    hits = search.search(world, world.again(bank), search.SearchRequest(query, keys=keys))
    assert key is None or {hit.entry.key for hit in hits} <= {key}
    return [hit.entry.content for hit in hits]


def listed(world: World, bank: Bank) -> dict[str, dict[str, Any]]:
    rows, _ = partitions.keys(world, world.again(bank), limit=100, cursor=None)
    assert len({row["key"] for row in rows}) == len(rows)
    return {row["key"]: row for row in rows}


def recounted(world: World, bank: Bank, key: str) -> None:
    """Counters equal a recount."""
    partition, _ = homes.find(world.table, world.again(bank), key)
    read = partitions.read_all(world.table, world.again(bank), partition)
    assert read
    shown = world.load(bank, key, limit=1000)
    turns = [entry for entry in shown if entry.kind == "entry"]
    sums = partitions.Counters(len(turns), sum(entry.tokens for entry in shown), sum(entry.chunks for entry in shown))
    assert partitions.count(*read) == sums


@pytest.mark.parametrize("kind", ["conversation", "general"])
def test_everything_is_under_the_new_key_and_nothing_under_the_old(world: World, kind: str) -> None:
    bank = world.bank(type=kind)
    world.write(bank, "apples are red", tags=("fruit",), metadata={"n": 1}, occurred_at=1_000)
    world.clock.advance(60)
    named = world.write(bank, "apples are green", id="mine")
    world.write(bank, "apples of another key", key="other")
    corrections.correct(world, bank, "mine", content="apples are yellow", deadline=world.deadline())
    world.drain()
    before = world.load(bank)
    row = listed(world, bank)["k"]
    rename(world, bank)
    after = world.load(bank, "new")
    assert [entry.shown() for entry in after] == [entry.shown() | {"key": "new"} for entry in before]
    assert world.load(bank, "k") == []
    assert sorted(found(world, bank, "new")) == ["apples are red", "apples are yellow"]
    assert found(world, bank, "k") == [] and len(found(world, bank, None)) == 3
    assert listed(world, bank) == {"new": row | {"key": "new"}, "other": listed(world, bank)["other"]}
    assert "yellow" in context.context(world, bank, "new", "apples", 500)["text"]
    assert context.context(world, bank, "k", "apples", 500)["text"] == ""
    assert loading.get(world, bank, "mine").key == loading.get(world, bank, named[0].internal_id).key == "new"
    recounted(world, bank, "new")
    _, entry = contents.locate(world, "acme", contents.id_of(bank.id, before[0].internal_id))
    assert entry.key == "new"


def test_what_comes_under_the_old_key_afterwards_is_a_new_history(world: World) -> None:
    bank = world.bank()
    world.write(bank, "apples one")
    rename(world, bank)
    world.write(bank, "apples two", "apples three")
    world.write(bank, "apples four", key="new")
    world.drain()
    assert world.texts(bank, "k") == ["apples two", "apples three"]
    assert world.texts(bank, "new") == ["apples one", "apples four"]
    assert sorted(found(world, bank, "k")) == ["apples three", "apples two"]
    assert sorted(found(world, bank, "new")) == ["apples four", "apples one"]
    assert {key: row["entries"] for key, row in listed(world, bank).items()} == {"k": 2, "new": 2}
    both = search.search(world, bank, search.SearchRequest("apples", keys=["k", "new", "never"], neighbors=1))
    assert {hit.entry.content: hit.entry.key for hit in both} == {
        "apples one": "new",
        "apples two": "k",
        "apples three": "k",
        "apples four": "new",
    }
    assert {near.key for hit in both for near in hit.neighbors} == {"k", "new"}
    recounted(world, bank, "k")
    deletion.forget_key(world, bank, "k", deadline=world.deadline())
    world.settle()
    assert (world.texts(bank, "k"), world.texts(bank, "new")) == ([], ["apples one", "apples four"])


def test_a_key_is_renamed_again_and_back(world: World) -> None:
    bank = world.bank()
    world.write(bank, "one", key="a")
    rename(world, bank, "a", "b")
    world.write(bank, "two", key="a")
    rename(world, bank, "b", "c")
    rename(world, bank, "a", "b")
    world.write(bank, "three", key="a")
    world.write(bank, "four", key="b")
    assert [world.texts(bank, key) for key in "abc"] == [["three"], ["two", "four"], ["one"]]
    rename(world, bank, "a", "d")
    rename(world, bank, "c", "a")
    rename(world, bank, "b", "c")
    assert [world.texts(bank, key) for key in "abcd"] == [["one"], [], ["two", "four"], ["three"]]
    for key in "abcd":
        world.write(bank, "five", key=key)
    assert [world.texts(bank, key) for key in "abcd"] == [["one", "five"], ["five"], ["two", "four", "five"], ["three", "five"]]
    assert {key: row["entries"] for key, row in listed(world, bank).items()} == {"a": 2, "b": 1, "c": 3, "d": 2}
    world.settle()
    assert sorted(found(world, bank, "c", "five")) == ["five", "four", "two"]


def test_what_can_not_be_renamed(world: World) -> None:
    bank = world.bank(capture={})
    with pytest.raises(NotFound) as absent:
        rename(world, bank)
    assert absent.value.code == "key_not_found"
    world.write(bank, "one")
    with pytest.raises(Invalid):
        rename(world, bank, "k", "k")
    world.write(bank, "two", key="entries")
    world.capture(bank, "three", key="runs")
    for taken in ("entries", "runs"):
        with pytest.raises(Conflict) as exists:
            rename(world, bank, "k", taken)
        assert exists.value.code == "key_exists"
    assert world.texts(bank) == ["one"]
    for key in ("entries", "runs"):
        deletion.forget_key(world, bank, key, deadline=world.deadline())
    rename(world, bank, "k", "runs")
    rename(world, bank, "runs", "entries")
    world.settle()
    assert world.texts(bank, "entries") == ["one"]
    deletion.forget_key(world, bank, "entries", deadline=world.deadline())
    with pytest.raises(NotFound):
        rename(world, bank, "entries", "k")


def test_a_rename_that_is_sent_again_changes_nothing(world: World) -> None:
    bank = world.bank()
    world.write(bank, "one")
    rename(world, bank)
    items = world.table.everything()
    rename(world, bank)
    assert world.table.everything() == items


def test_it_reads_and_writes_the_same_however_much_there_is(world: World) -> None:
    bank = world.bank()
    counts = []
    for key, many in (("few", 2), ("many", 300)):
        for start in range(0, many, 50):
            world.write(bank, *(f"entry {n}" for n in range(start, min(start + 50, many))), key=key)
        before = len(world.table.everything())
        rename(world, bank, key, "new " + key)
        counts.append(len(world.table.everything()) - before)
        assert len(world.texts(bank, "new " + key)) == many
    assert counts[0] == counts[1] == 2, "the home of the new key and its shard"


def test_ids_of_callers_and_requests_that_are_sent_again_make_nothing_twice(world: World) -> None:
    bank = world.bank()
    world.write(bank, "one", id="mine")
    rename(world, bank)
    for key in ("k", "new"):
        [again] = write(world, "acme", bank.id, [NewEntry("one", key=key, speaker="user", id="mine")], deadline=world.deadline())
        assert again.existing
        with pytest.raises(Conflict):
            world.write(bank, "other content", key=key, id="mine")
    with pytest.raises(Conflict):
        world.write(bank, "one", key="elsewhere", id="mine")
    assert world.texts(bank, "new") == ["one"] and world.texts(bank) == []


@pytest.mark.parametrize("renamed", ["before", "after", "both"])
def test_an_idempotency_key_holds_across_a_rename(world: World, renamed: str) -> None:
    bank = world.bank()
    if renamed != "after":
        world.write(bank, "zero")
        rename(world, bank, "k", "away")
    new = [NewEntry("one", key="k", speaker="user")]

    def send() -> str:
        once = Idempotency("once", "body")
        return write(world, "acme", bank.id, new, idempotency=once, deadline=world.deadline())[0].entry.id

    first = send()
    if renamed != "before":
        rename(world, bank)
    assert send() == first
    assert loading.get(world, bank, first).content == "one"
    assert len(world.texts(bank) + world.texts(bank, "new")) == 1


def test_a_summary_goes_along_and_compaction_goes_on(world: World) -> None:
    bank = world.bank(max_turns=4, compaction_prompt="Keep what matters.")
    world.write(bank, *(f"a rather long entry with number {n}, so that a summary is smaller than it" * 3 for n in range(6)))
    world.drain()
    [summary, *_] = world.load(bank)
    assert summary.kind == "summary"
    rename(world, bank)
    assert world.load(bank, "new")[0].shown() == summary.shown() | {"key": "new"}
    assert loading.get(world, bank, summary.id).key == "new"
    world.write(
        bank, *(f"another long entry with number {n}, so that a summary is smaller than it" * 3 for n in range(6)), key="new"
    )
    world.settle()
    first, *rest = world.load(bank, "new")
    assert (first.content, first.key) == ("summary 2", "new") and {entry.kind for entry in rest} == {"entry"}
    recounted(world, bank, "new")
    job = compaction.request(world, bank, "new")
    world.drain()
    assert jobs.get(world, bank, job["sk"])["status"] == "completed"
    deletion.delete_entry(world, bank, first.id, deadline=world.deadline())
    assert [entry.kind for entry in world.load(bank, "new")] == ["entry"] * len(world.load(bank, "new"))


def test_a_listing_that_began_before_says_that_the_key_was_renamed(world: World) -> None:
    bank = world.bank()
    world.write(bank, "one", "two", "three")
    cursor = loading.load(world, bank, loading.Load(key="k", limit=1)).next_cursor
    rename(world, bank)
    with pytest.raises(Gone) as gone:
        loading.load(world, bank, loading.Load(key="k", limit=1, cursor=cursor))
    assert gone.value.code == "renamed"
    page = loading.load(world, bank, loading.Load(key="new", limit=1))
    rest = loading.load(world, bank, loading.Load(key="new", limit=9, cursor=page.next_cursor))
    assert [entry.content for entry in rest.entries] == ["two", "three"]


def test_the_retention_counts_from_when_it_was_written(world: World) -> None:
    bank = world.bank(retention_days=2)
    world.write(bank, "old")
    world.clock.advance(86_400)
    world.write(bank, "young")
    rename(world, bank)
    world.clock.advance(86_400 + 1)
    assert world.texts(bank, "new") == ["young"]
    world.settle()
    assert world.texts(bank, "new") == ["young"] and listed(world, bank)["new"]["entries"] == 1
    # What has expired and is not removed yet could come back with a longer retention: it is in the way until it is gone.
    world.write(bank, "in the way", key="other")
    world.clock.advance(2 * DAY / 1000 + 1)
    world.write(bank, "fresh", key="fresh")
    with pytest.raises(Conflict):
        rename(world, bank, "fresh", "other")
    world.settle()
    rename(world, bank, "fresh", "other")
    assert world.texts(bank, "other") == ["fresh"]


# --------------------------------------------------------------------------------------------------------------------
# Captured runs


def run(world: World, bank: Bank, name: str, *texts: str, key: str = "k") -> runs.Captured:
    new = NewRun(key, tuple(NewMessage("user", text, id=f"m-{text}") for text in texts), id=name)
    return runs.capture(world, "acme", bank.id, new, deadline=world.deadline())


def test_runs_their_counts_and_what_was_made_of_them_follow(world: World) -> None:
    bank = world.bank(capture={})
    run(world, bank, "r1", "apples one", "apples two")
    world.quiet()
    run(world, bank, "r2", "apples three")
    before = listing.runs(world, bank, "k", limit=10, cursor=None)
    row = listed(world, bank)["k"]
    rename(world, bank)
    assert listing.runs(world, bank, "new", limit=10, cursor=None) == before
    assert listing.runs(world, bank, "k", limit=10, cursor=None)["runs"] == []
    assert listed(world, bank)["new"] == row | {"key": "new"} and row["pending_runs"] == 1
    world.quiet()
    assert world.texts(bank, "new") == ["apples one", "apples two", "apples three"] and world.texts(bank) == []
    assert not mismatch.check(world, bank, "new")["mismatch"]
    messages.edit(world, bank, "m-apples one", "pears one", deadline=world.deadline())
    messages.delete(world, bank, "m-apples two", deadline=world.deadline())
    world.settle()
    assert world.texts(bank, "new") == ["pears one", "apples three"]
    job = trigger.regenerate(world, bank, "new", deadline=world.deadline())
    world.settle()
    assert jobs.get(world, bank, job["sk"])["status"] == "completed"
    assert sorted(world.texts(bank, "new")) == ["apples three", "pears one"]
    assert {one["key"] for one in jobs.listed(world, bank)[0]} == {"new"}


def test_a_run_that_is_sent_again_is_counted_once_under_either_key(world: World) -> None:
    bank = world.bank(capture={})
    first = run(world, bank, "r1", "one")
    rename(world, bank)
    for key in ("k", "new"):
        again = run(world, bank, "r1", "one", key=key)
        assert again.existing and again.number == first.number
    with pytest.raises(Conflict):
        run(world, bank, "r1", "other content", key="new")
    run(world, bank, "r2", "two", key="k")
    run(world, bank, "r3", "three", key="new")
    world.quiet()
    assert (world.texts(bank, "k"), world.texts(bank, "new")) == (["two"], ["one", "three"])
    with pytest.raises(Conflict):
        rename(world, bank, "k", "new")
    rename(world, bank, "k", "newest")
    assert world.texts(bank, "newest") == ["two"]


def test_runs_alone_are_renamed_and_stored_ones_stay_stored(world: World) -> None:
    bank = world.bank(capture={"auto_capture": False})
    run(world, bank, "r1", "one")
    rename(world, bank)
    ledger = listing.get(world, bank, "new")
    assert (ledger.key, ledger.runs, ledger.held, ledger.pending) == ("new", 1, 1, 0)
    trigger.flush(world, bank, "new", deadline=world.deadline())
    world.drain()
    assert world.texts(bank, "new") == ["one"]


def test_forgetting_the_new_key_takes_the_jobs_of_both_names_and_no_others(world: World) -> None:
    bank = world.bank(capture={})
    run(world, bank, "r1", "one")
    world.quiet()
    rename(world, bank)
    run(world, bank, "r2", "two", key="new")
    run(world, bank, "r3", "three", key="k")
    world.quiet()
    assert len(jobs.listed(world, bank)[0]) == 3
    deletion.forget_key(world, bank, "new", deadline=world.deadline())
    world.settle()
    assert [job["key"] for job in jobs.listed(world, bank)[0]] == ["k"]
    assert (world.texts(bank, "k"), world.texts(bank, "new")) == (["three"], [])
    assert run(world, bank, "r1", "one", key="k").existing is False


def test_a_job_of_a_renamed_key_is_cancelled_and_tried_again(world: World) -> None:
    bank = world.bank(capture={})
    job = run(world, bank, "r1", "one").job
    assert job is not None
    rename(world, bank)
    trigger.cancelled(world, bank, jobs.cancel(world, bank, job))
    assert listing.get(world, bank, "new").job is None
    again = messages.retry(world, bank, job, deadline=world.deadline())
    world.drain()
    assert jobs.get(world, bank, again["sk"])["status"] == "completed" and world.texts(bank, "new") == ["one"]


def test_a_deleted_source_leaves_nothing_of_renamed_keys(world: World) -> None:
    bank = world.bank(capture={})
    run(world, bank, "r1", "one")
    world.quiet()
    rename(world, bank)
    run(world, bank, "r2", "two")
    world.quiet()
    deletion.delete_source(world, bank, deadline=world.deadline())
    world.settle()
    left = [item for item in world.table.everything() if item["pk"][0] in "HPMILZ"]
    assert left == []
    world.write(bank, "fresh")
    assert (world.texts(bank), world.texts(bank, "new")) == (["fresh"], [])

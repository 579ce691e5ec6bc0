"""Rebuilding and reconciling the index of a bank while it is used."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from memory_banks import (
    backfill,
    bank,
    corrections,
    deletion,
    documents,
    indexing,
    ingestion,
    jobs,
    rebuild,
    reconcile,
    search,
    sweeping,
)
from memory_banks.errors import Conflict, Invalid
from memory_banks.ports import Filter, IndexDocument, ModelError
from memory_banks.requests import Rebuild

from tests.doubles.world import World

WORDS = (
    "apple",
    "river",
    "stone",
    "cloud",
    "bread",
    "music",
    "garden",
    "winter",
    "copper",
    "lantern",
    "harbor",
    "pepper",
    "violin",
)


@pytest.fixture
def world() -> World:
    return World()


def begin(world: World, one: bank.Bank, **wanted: Any) -> str:
    return str(rebuild.request(world, world.again(one), Rebuild(**wanted), deadline=world.deadline())["sk"])


def go_on(world: World, seconds: int = 361) -> None:
    """Let the delayed messages come."""
    world.clock.advance(seconds)
    world.compaction.sent += world.compaction.delayed
    world.compaction.delayed = []
    world.drain()


def job(world: World, one: bank.Bank, job_id: str) -> dict[str, Any]:
    return jobs.shown(jobs.get(world, one, job_id))


def held(world: World, one: bank.Bank, target: bank.Target | None = None) -> dict[str, tuple[Any, ...]]:
    """The bank's documents in an index: id → version (of chunks) and members."""
    scanned = world.index.scan((target or world.again(one).reads).index, one.id, world.again(one).generation)
    return {doc.id: (doc.version if doc.form == "chunk" else None, tuple(doc.members)) for doc in scanned}


def wanted(world: World, one: bank.Bank, *keys: str) -> dict[str, tuple[Any, ...]]:
    """What the index of a bank should hold, by the entries that Load shows."""
    found: dict[str, tuple[Any, ...]] = {}
    for key in keys or ("k",):
        entries = world.load(one, key, limit=1000)
        for entry in entries:
            chunks = documents.chunks(world.again(one), entry, None)
            found |= {chunk.id: (entry.version, ((entry.internal_id, entry.version),)) for chunk in chunks}
        spoken = [entry for entry in entries if entry.kind == "entry"] if one.conversation else []
        for place, middle in enumerate(spoken[:-1]):
            members = tuple((member.internal_id, member.version) for member in spoken[max(place - 1, 0) : place + 2])
            found[f"{middle.internal_id}#w"] = (None, members)
    return found


def texts_found(world: World, one: bank.Bank, query: str, **rest: Any) -> list[str]:
    return [hit.entry.content for hit in search.search(world, world.again(one), search.SearchRequest(query, **rest))]


def sentence(number: int) -> str:
    chance = random.Random(number)
    return f"{number}: " + " ".join(chance.choice(WORDS) for _ in range(8))


def filled(world: World, count: int = 30, **settings: Any) -> bank.Bank:
    one = world.bank(**settings)
    for start in range(0, count, 10):
        world.write(one, *[sentence(number) for number in range(start, min(start + 10, count))])
    world.drain()
    return one


# --------------------------------------------------------------------------------------------------------------------
# To another index


@pytest.mark.parametrize("kind", ["conversation", "general"])
def test_a_bank_moves_to_another_mode_while_it_is_used(world: World, kind: str) -> None:
    one = filled(world, type=kind)
    before = one.reads
    job_id = begin(world, one, mode="balanced")
    assert world.again(one).writes == (before, bank.Target("hashed/words", 512)) and world.again(one).reads == before
    world.drain()
    assert job(world, one, job_id)["status"] == "queued", "it waits until every ingest that read the bank before is over"
    assert not held(world, one, bank.Target("hashed/words", 512))
    go_on(world)
    after = world.again(one)
    assert (after.mode, after.dimensions, after.also_model, after.version) == ("balanced", 512, None, one.version + 1)
    assert (after.chunk_size, after.chunk_overlap) == (one.chunk_size, one.chunk_overlap)
    assert job(world, one, job_id)["status"] == "completed"
    assert job(world, one, job_id)["progress"] == {"current": 30, "total": 30}
    assert held(world, one) == wanted(world, one)
    assert held(world, one, before), "searches that read the bank before the swap still use the old index"
    go_on(world)
    assert not held(world, one, before)
    assert sentence(7) in texts_found(world, one, sentence(7), top_k=3)
    assert not [item for item in world.table.everything() if item["pk"].startswith("V#")]


def test_another_model_is_chosen_by_name(world: World) -> None:
    one = filled(world)
    begin(world, one, embedding_model="hashed/small", dimensions=64)
    go_on(world)
    after = world.again(one)
    assert (after.mode, after.reads) == ("custom", bank.Target("hashed/small", 64))
    assert held(world, one) == wanted(world, one)


def test_an_entry_written_between_backfill_and_swap_is_found(world: World) -> None:
    one = filled(world)
    job_id = begin(world, one, mode="balanced")
    stop_before(world, one, job_id, "swap")
    world.write(one, "a zebra in the kitchen")
    for message in world.ingestion.take():
        ingestion.ingest(world, message)
    assert world.again(one).dimensions == 256
    go_on(world)
    assert world.again(one).dimensions == 512
    assert "a zebra in the kitchen" in texts_found(world, one, "zebra in the kitchen", top_k=3)
    assert held(world, one) == wanted(world, one)


def test_an_entry_whose_ingest_knew_only_the_old_index_is_found(world: World) -> None:
    """It read the bank before the registration, and ends while the rebuild waits."""
    one = filled(world)
    [entry] = world.write(one, "a zebra in the kitchen")
    stale = world.again(one)
    begin(world, one, mode="balanced")
    world.ingestion.take()
    head = backfill.current(world, stale, entry.partition)
    assert head
    ingestion.settle(world, stale, entry.partition, [entry], indexing.index(world, stale, head[1], [entry], stale.writes))
    go_on(world)
    assert "a zebra in the kitchen" in texts_found(world, one, "zebra in the kitchen", top_k=3)
    assert held(world, one) == wanted(world, one)


def test_what_is_deleted_or_corrected_meanwhile_is_not_found_in_its_old_wording(world: World) -> None:
    one = filled(world)
    entries = world.load(one)
    job_id = begin(world, one, mode="balanced")
    stop_before(world, one, job_id, "compare")
    deletion.delete_entry(world, world.again(one), entries[3].id, deadline=world.deadline())
    corrections.correct(world, world.again(one), entries[8].id, content="a zebra in the kitchen", deadline=world.deadline())
    go_on(world)
    assert job(world, one, job_id)["status"] == "completed"
    for old in (sentence(3), sentence(8)):
        assert old not in texts_found(world, one, old, top_k=50)
    assert "a zebra in the kitchen" in texts_found(world, one, "zebra in the kitchen", top_k=3)
    assert held(world, one) == wanted(world, one)


def test_an_entry_that_dies_while_it_is_backfilled_does_not_come_back(world: World) -> None:
    one = filled(world)
    victim = world.load(one)[5]
    begin(world, one, mode="balanced")
    write = world.index.write

    def meanwhile(name: str, made: list[IndexDocument], dimensions: int) -> Any:
        world.index.write = write
        deletion.delete_entry(world, world.again(one), victim.id, deadline=world.deadline())
        world.drain()
        return write(name, made, dimensions)

    world.index.write = meanwhile
    with pytest.MonkeyPatch.context() as patch:
        # The comparison would mend it; the second look must have done so before.
        patch.setattr(reconcile, "partition", lambda *given, **rest: reconcile.Mended())
        go_on(world)
    assert held(world, one) == wanted(world, one)
    assert sentence(5) not in texts_found(world, one, sentence(5), top_k=50)


def test_a_bank_that_shares_the_indexes_is_untouched(world: World) -> None:
    one, neighbour, ahead = filled(world), filled(world), filled(world, mode="balanced")
    before = [held(world, other) for other in (neighbour, ahead)]
    begin(world, one, mode="balanced")
    go_on(world)
    go_on(world)
    assert not held(world, one, one.reads)
    begin(world, one)
    world.drain()
    assert [held(world, other) for other in (neighbour, ahead)] == before
    assert world.again(neighbour) == neighbour or world.again(neighbour).writes == neighbour.writes
    assert held(world, one) == wanted(world, one)


def test_a_second_rebuild_is_refused_while_one_runs(world: World) -> None:
    one = filled(world)
    begin(world, one, mode="balanced")
    with pytest.raises(Conflict, match="rebuilds this bank") as refused:
        begin(world, one)
    assert refused.value.code == "rebuild_running"
    go_on(world)
    with pytest.raises(Conflict):
        begin(world, one)
    go_on(world)
    begin(world, one)


@pytest.mark.parametrize("step", ["count", "fill", "compare", "swap"])
def test_a_cancelled_rebuild_leaves_the_bank_as_it_was(world: World, step: str) -> None:
    one = filled(world)
    before = held(world, one)
    job_id = begin(world, one, mode="balanced")
    stop_before(world, one, job_id, step)
    jobs.cancel(world, one, job_id)
    world.write(one, "written meanwhile")
    go_on(world, 90)
    after = world.again(one)
    assert (after.mode, after.writes, after.version) == (one.mode, one.writes, one.version)
    go_on(world)
    assert not held(world, one, bank.Target("hashed/words", 512))
    assert before.items() <= held(world, one).items() and held(world, one) == wanted(world, one)
    assert job(world, one, job_id)["status"] == "cancelled"
    begin(world, one, mode="balanced")


def test_a_job_that_was_swapped_can_not_be_cancelled(world: World) -> None:
    one = filled(world)
    job_id = begin(world, one, mode="balanced")
    go_on(world)
    assert jobs.cancel(world, one, job_id)["status"] == "completed"
    go_on(world)
    assert world.again(one).dimensions == 512 and held(world, one) == wanted(world, one)


def test_a_cancellation_at_the_last_moment_wins_over_the_swap(world: World) -> None:
    one = filled(world)
    job_id = begin(world, one, mode="balanced")
    stop_before(world, one, job_id, "swap")
    transact = world.table.transact

    def late(actions: Any) -> None:
        world.table.transact = transact
        jobs.cancel(world, one, job_id)
        transact(actions)

    world.table.transact = late
    go_on(world)
    go_on(world)
    assert job(world, one, job_id)["status"] == "cancelled"
    assert world.again(one).writes == one.writes and not held(world, one, bank.Target("hashed/words", 512))


def test_the_sweep_leaves_a_rebuild_alone_that_moves(world: World) -> None:
    one = filled(world)
    job_id = begin(world, one, mode="balanced")
    stop_before(world, one, job_id, "fill")
    [record] = world.table.read([rebuild.key_of(one.id)])
    assert record and record["due_at"] == world.clock.now() + rebuild.DUE_MS
    world.clock.advance(1199)
    assert world.sweep() == sweeping.Swept() and not world.compaction.sent
    world.clock.advance(2)
    assert world.sweep() == sweeping.Swept(banks=1) and len(world.compaction.sent) == 1


def test_a_source_deleted_meanwhile_begins_again_with_what_is_written_then(world: World) -> None:
    one = filled(world)
    job_id = begin(world, one, mode="balanced")
    stop_before(world, one, job_id, "compare")
    deletion.delete_source(world, world.again(one), deadline=world.deadline())
    world.write(one, "a zebra in the kitchen", "and a lamp")
    world.drain()
    go_on(world)
    world.settle()
    assert job(world, one, job_id)["status"] == "completed"
    assert held(world, one) == wanted(world, one)
    for target in (one.reads, world.again(one).reads):
        assert not list(world.index.scan(target.index, one.id, 1))


def test_a_bank_deleted_meanwhile_leaves_nothing(world: World) -> None:
    one = filled(world)
    job_id = begin(world, one, mode="balanced")
    stop_before(world, one, job_id, "compare")
    deletion.delete_bank(world, world.again(one), deadline=world.deadline())
    go_on(world, 90)
    go_on(world)
    world.settle()
    for target in (one.reads, bank.Target("hashed/words", 512)):
        assert not list(world.index.scan(target.index, one.id, 1))
    assert not world.table.everything(), "the record and the job went with it"


def test_a_lost_message_is_taken_up_by_the_sweep(world: World) -> None:
    one = filled(world)
    job_id = begin(world, one, mode="balanced")
    for _ in range(6):
        world.compaction.take()
        world.compaction.delayed.clear()
        world.clock.advance(3600)
        world.sweep()
        world.drain()
    assert job(world, one, job_id)["status"] == "completed"
    world.clock.advance(3600)
    assert world.sweep() == sweeping.Swept()


def test_long_work_goes_on_in_more_messages_from_where_it_was(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "BATCH", 4)
    one = filled(world, 30)
    world.write(one, "other key", key="other")
    world.drain()
    job_id = begin(world, one, mode="balanced")
    world.clock.advance(361)
    embedded = count_embedded(world)
    hops = 0
    seen = []
    world.compaction.take()
    rebuild.announce(world, one.account, one.id, job_id)
    while world.compaction.sent:
        [message] = world.compaction.take()
        rebuild.handle(world, message, deadline=world.clock.now())
        hops += 1
        seen.append(job(world, one, job_id)["progress"]["current"])
    assert hops > 8 and seen == sorted(seen) and seen[-1] == 31
    assert job(world, one, job_id)["status"] == "completed" and held(world, one) == wanted(world, one, "k", "other")
    assert len(embedded) < 31 + 30 + 10 * 4, "nothing is embedded twice, but for the windows at the seams"


def test_a_chain_of_messages_ends_and_the_sweep_begins_another(world: World) -> None:
    one = filled(world)
    job_id = begin(world, one, mode="balanced")
    world.clock.advance(361)
    world.compaction.take()
    rebuild.handle(
        world,
        {"account": one.account, "bank": one.id, "rebuild": job_id, "hop": rebuild.HOPS},
        deadline=world.clock.now() + 300_000,
    )
    assert job(world, one, job_id)["status"] == "queued" and world.metrics.counted["RebuildChainsCut"] == 1
    world.settle()
    assert job(world, one, job_id)["status"] == "completed"


def test_an_entry_the_new_model_refuses_is_noted_on_itself_and_tried_again(world: World) -> None:
    one = filled(world)
    embed = type(world.embedders("hashed/words", 512)).embed

    def refuse(self: Any, texts: list[str]) -> list[list[float]]:
        if self.dimensions == 512 and any(sentence(4) in text for text in texts):
            raise ModelError("not that one")
        return list(embed(self, texts))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.embedders("hashed/words", 512)), "embed", refuse)
        job_id = begin(world, one, mode="balanced")
        go_on(world)
        assert job(world, one, job_id)["status"] == "completed"
        assert [entry.content for entry in world.load(one) if not entry.indexed] == [sentence(4)]
    world.settle()
    assert held(world, one) == wanted(world, one) and all(entry.indexed for entry in world.load(one))


def test_a_model_that_is_gone_fails_the_job_and_takes_the_registration_back(world: World) -> None:
    one = filled(world)
    job_id = begin(world, one, embedding_model="hashed/small")
    sizes = world.embedders.sizes

    def gone(model: str) -> tuple[int, ...]:
        return () if model == "hashed/small" else tuple(sizes(model))

    world.embedders.sizes = gone
    go_on(world)
    shown = job(world, one, job_id)
    assert shown["status"] == "failed" and "hashed/small" in shown["error"]
    assert world.again(one).writes == one.writes


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"mode": "balanced", "embedding_model": "hashed/small"}, "embedding_model"),
        ({"mode": "fast_and_cheap", "dimensions": 512}, "dimensions"),
        ({"embedding_model": "nobody/nothing"}, "embedding_model"),
        ({"dimensions": 7}, "dimensions"),
        ({"reconcile": True, "mode": "balanced"}, "reconcile"),
    ],
)
def test_what_can_not_be_is_refused_by_name(world: World, body: dict[str, Any], field: str) -> None:
    one = world.bank()
    with pytest.raises(Invalid) as refused:
        begin(world, one, **body)
    assert refused.value.loc == ("body", field)
    assert not [item for item in world.table.everything() if item["pk"][0] in "VJ"]


# --------------------------------------------------------------------------------------------------------------------
# In the same index


def test_a_dropped_index_is_rebuilt_and_gives_the_same_answers(world: World) -> None:
    one = filled(world, 60)
    queries = [sentence(number) for number in range(0, 60, 5)]
    before = [texts_found(world, one, query, top_k=10) for query in queries]
    world.index.delete_partition(one.reads.index, one.id, one.generation, None)
    assert texts_found(world, one, queries[0]) == []
    job_id = begin(world, one)
    world.drain()
    assert job(world, one, job_id)["status"] == "completed"
    after = [texts_found(world, one, query, top_k=10) for query in queries]
    assert after == before, "with exact scoring, the same in the same order"
    assert held(world, one) == wanted(world, one)


def test_a_rebuild_in_the_same_index_drops_what_does_not_belong(world: World) -> None:
    one = filled(world)
    plant_orphans(world, one)
    assert held(world, one) != wanted(world, one)
    begin(world, one)
    world.drain()
    assert held(world, one) == wanted(world, one)


def test_a_mode_of_the_same_size_only_changes_the_name(world: World) -> None:
    one = filled(world, mode="custom", embedding_model="hashed/words", dimensions=256)
    job_id = begin(world, one, mode="fast_and_cheap")
    world.drain()
    assert job(world, one, job_id)["status"] == "completed"
    assert world.again(one).mode == "fast_and_cheap" and held(world, one) == wanted(world, one)


# --------------------------------------------------------------------------------------------------------------------
# Reconciling


def test_reconciling_mends_both_ways_and_only_what_differs(world: World) -> None:
    one = filled(world)
    entries = world.load(one)
    plant_orphans(world, one)
    world.index.delete(one.reads.index, one.id, [f"{entries[4].internal_id}#0", f"{entries[20].internal_id}#w"])
    embedded = count_embedded(world)
    job_id = begin(world, one, reconcile=True)
    world.drain()
    assert held(world, one) == wanted(world, one)
    shown = job(world, one, job_id)
    assert shown["status"] == "completed" and shown["mended"] == {"indexed": 2, "removed": 3}
    assert shown["progress"] == {"current": 30, "total": 30}
    assert len(embedded) < 12, "an entry and the windows around it, not the bank"
    again = begin(world, one, reconcile=True)
    world.drain()
    assert job(world, one, again)["mended"] == {"indexed": 0, "removed": 0}


def test_reconciling_indexes_stale_versions_again(world: World) -> None:
    one = filled(world)
    entry = world.load(one)[4]
    old = [doc for doc in as_written(world, one) if doc.entry == entry.internal_id]
    corrections.correct(world, one, entry.id, content="a zebra in the kitchen", deadline=world.deadline())
    world.drain()
    world.index.delete_entries(one.reads.index, one.id, [entry.internal_id])
    world.index.write(one.reads.index, old, one.dimensions)
    begin(world, one, reconcile=True)
    world.drain()
    assert held(world, one) == wanted(world, one)
    assert "a zebra in the kitchen" in texts_found(world, one, "zebra in the kitchen", top_k=3)


def test_documents_newer_than_a_restored_table_are_replaced_and_looked_at_again(world: World) -> None:
    one = filled(world)
    entry = world.load(one)[4]
    newer = [replace(doc, version=9) for doc in as_written(world, one) if doc.entry == entry.internal_id]
    world.index.write(one.reads.index, newer, one.dimensions)
    job_id = begin(world, one, reconcile=True)
    world.drain()
    assert held(world, one) == wanted(world, one)
    assert job(world, one, job_id)["status"] == "running" and world.compaction.delayed, "it looks again after a minute"
    go_on(world, 91)
    assert job(world, one, job_id)["status"] == "completed"


def test_documents_of_keys_that_the_table_does_not_know_are_removed(world: World) -> None:
    one = filled(world)
    stranger = "Z" * 26
    doc = as_written(world, one)[0]
    lost = replace(doc, entry=doc.entry[:26] + stranger, partition=stranger, id=f"{doc.entry[:26]}{stranger}#0")
    world.index.write(one.reads.index, [lost], one.dimensions)
    begin(world, one, reconcile=True)
    world.drain()
    assert held(world, one) == wanted(world, one)


def test_reconciling_leaves_what_ingestion_will_try_again(world: World) -> None:
    one = filled(world)
    entry = world.load(one)[4]
    embed = type(world.embedders("hashed/words", 256)).embed

    def refuse(self: Any, texts: list[str]) -> list[list[float]]:
        if any("forbidden" in text for text in texts):
            raise ModelError("not that one")
        return list(embed(self, texts))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.embedders("hashed/words", 256)), "embed", refuse)
        corrections.correct(world, one, entry.id, content="forbidden", deadline=world.deadline())
        world.drain()
        calls = count_embedded(world)
        begin(world, one, reconcile=True)
        world.drain()
        assert not any(text.removeprefix("user: ") == "forbidden" for text in calls)


def test_compaction_and_retention_go_on_during_a_rebuild(world: World) -> None:
    one = world.bank(max_turns=10, compaction_prompt="Keep what matters.", retention_days=7)
    for number in range(10):
        world.write(one, f"turn {number}: " + "words " * 30)
    world.drain()
    job_id = begin(world, one, mode="balanced")
    stop_before(world, one, job_id, "compare")
    world.write(one, "turn 10: " + "words " * 30)
    world.drain()
    assert world.load(one)[0].kind == "summary"
    go_on(world)
    world.settle()
    assert job(world, one, job_id)["status"] == "completed" and held(world, one) == wanted(world, one)
    world.clock.advance(days=8)
    world.settle()
    assert world.load(one) == [] and held(world, one) == {}


# --------------------------------------------------------------------------------------------------------------------


def stop_before(world: World, one: bank.Bank, job_id: str, step: str) -> None:
    """Work until the record says that this step is next, then hold its message back."""
    world.clock.advance(361)
    world.compaction.take()
    world.compaction.delayed.clear()
    message = {"account": one.account, "bank": one.id, "rebuild": job_id, "hop": 0}
    for _ in range(100):
        [record] = world.table.read([rebuild.key_of(one.id)])
        assert record
        if record["step"] == step:
            break
        rebuild.handle(world, message, deadline=world.clock.now())
        world.compaction.take()
    assert record["step"] == step
    world.compaction.delayed.append(message)


def count_embedded(world: World) -> list[str]:
    """Every text that is embedded from now on."""
    seen: list[str] = []
    give = world.embedders

    class Counting:
        default = give.default
        sizes = staticmethod(give.sizes)

        def __call__(self, model: str, dimensions: int) -> Any:
            embedder = give(model, dimensions)
            embed = embedder.embed
            embedder.embed = lambda texts: (seen.extend(texts), embed(texts))[1]
            return embedder

    world.embedders = Counting()
    return seen


def as_written(world: World, one: bank.Bank) -> list[IndexDocument]:
    """The chunks of a bank's entries, as ingestion writes them."""
    embedder = world.embedders(one.embedding_model, one.dimensions)
    made = [chunk for entry in world.load(one, limit=1000) for chunk in documents.chunks(one, entry, None)]
    return [documents.with_vector(doc, embedder.embed_query(doc.text)) for doc in made]


def plant_orphans(world: World, one: bank.Bank) -> None:
    """What crashes may leave: a chunk of no entry, a chunk too many, the window of the last entry."""
    made = as_written(world, one)
    first, last = made[0], made[-1]
    nowhere = "0" * 26 + first.partition
    orphans = [
        replace(first, id=f"{nowhere}#0", entry=nowhere),
        replace(first, id=f"{first.entry}#7"),
        replace(last, id=f"{last.entry}#w", form="window"),
    ]
    assert {outcome.status for outcome in world.index.write(one.reads.index, orphans, one.dimensions)} == {"written"}
    found = world.index.search(
        one.reads.index, Filter(one.id, one.generation), vector=list(first.vector), text=None, forms=["chunk"], size=100
    )
    assert nowhere in {hit.entry for hit in found[0].hits}

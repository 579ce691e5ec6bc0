"""Search over the real domain, the embedded index and a table in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from memory_banks import corrections, deletion, ids, partitions
from memory_banks.bank import DAY, Bank
from memory_banks.errors import Invalid
from memory_banks.ports import IndexUnavailable, Key, MetadataTest, Ranking, Update
from memory_banks.search import Found, SearchRequest, search

from tests.doubles.world import World


@pytest.fixture
def world() -> World:
    return World()


def find(world: World, bank: Bank, query: str, **request: Any) -> list[Found]:
    return search(world, world.again(bank), SearchRequest(query, **request))


def contents(world: World, bank: Bank, query: str, **request: Any) -> list[str]:
    return [found.entry.content for found in find(world, bank, query, **request)]


def remember(world: World, *texts: str, bank: Bank | None = None, **rest: Any) -> Bank:
    bank = bank or world.bank()
    world.write(bank, *texts, **rest)
    world.drain()
    return bank


TALK = (
    "I bought a red bicycle last week",
    "My dog Rex ate the sofa",
    "We are flying to Lisbon in June",
    "The dentist was quick today",
    "Grandmother bakes plum cake on Sundays",
    "The printer is out of toner again",
)


def test_the_best_match_comes_first_with_its_text_and_a_score(world: World) -> None:
    bank = remember(world, *TALK)
    found = find(world, bank, "where is the bicycle?")
    assert found[0].entry.content == TALK[0]
    assert found[0].matched_text == TALK[0]
    assert found[0].entry.key == "k"
    assert all(0 <= one.score <= 1 for one in found)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert found[0].neighbors == ()
    assert found[0].parts is None


def test_the_newest_turn_is_found_before_its_window_exists(world: World) -> None:
    bank = remember(world, *TALK)
    assert contents(world, bank, "toner of the printer", top_k=1) == [TALK[-1]]


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_every_mode_finds(world: World, mode: Any) -> None:
    bank = remember(world, *TALK)
    assert contents(world, bank, "plum cake", mode=mode)[0] == TALK[4]


def test_keyword_mode_needs_no_model_and_knows_no_similarity(world: World) -> None:
    bank = remember(world, *TALK)
    world.embedders = None
    assert contents(world, bank, "dentist", mode="keyword")[0] == TALK[3]
    assert contents(world, bank, "nothing of that sort", mode="keyword") == []
    with pytest.raises(Invalid) as refused:
        find(world, bank, "dentist", mode="keyword", min_score=0.5)
    assert refused.value.loc == ("body", "min_score")


def test_top_k_is_the_page(world: World) -> None:
    bank = remember(world, *(f"note number {n}" for n in range(30)), bank=world.bank(type="general"))
    assert len(find(world, bank, "note")) == 10
    assert len(find(world, bank, "note", top_k=3)) == 3
    assert len(find(world, bank, "note", top_k=100)) == 30


def test_an_entry_is_found_once_however_many_chunks_match(world: World) -> None:
    bank = world.bank(
        type="general", mode="custom", embedding_model="hashed/words", dimensions=256, chunk_size=100, chunk_overlap=0
    )
    long = "The zebra likes water. " * 60
    remember(world, long, "A zebra is striped. ", bank=bank)
    found = find(world, bank, "zebra")
    assert [one.entry.content for one in found if "water" in one.entry.content] == [long]
    assert len(found) == 2
    assert len(found[0].matched_text) <= 100


def test_the_matched_text_is_the_chunk_that_matched(world: World) -> None:
    bank = world.bank(type="general", mode="custom", embedding_model="hashed/words", dimensions=256, chunk_size=80, chunk_overlap=0)
    remember(
        world,
        "The roof was mended in spring. " * 5 + "The cellar key hangs behind the clock. " + "Apples are ripe. " * 9,
        bank=bank,
    )
    (found,) = find(world, bank, "cellar key clock")
    assert "cellar key" in found.matched_text
    assert len(found.matched_text) <= 80
    assert found.matched_text in found.entry.content


def test_min_score_is_a_similarity_of_the_best_chunk(world: World) -> None:
    bank = remember(world, *TALK)
    everything = find(world, bank, "red bicycle", debug=True)
    similar = {one.entry.content: one.parts["similarity"] for one in everything if one.parts}
    least = similar[TALK[0]] - 0.001
    kept = find(world, bank, "red bicycle", min_score=least)
    assert {one.entry.content for one in kept} == {content for content, score in similar.items() if score >= least}
    assert TALK[0] in {one.entry.content for one in kept}
    assert len(kept) < len(everything)
    assert find(world, bank, "red bicycle", min_score=1.0) == []


def test_debug_gives_the_parts_of_each_score(world: World) -> None:
    bank = remember(world, *TALK)
    for one in find(world, bank, "dog", debug=True):
        parts = one.parts
        assert parts is not None
        assert parts["own"] == pytest.approx(
            sum(ranking["standardised"] for ranking in parts["rankings"].values()) / len(parts["rankings"]), abs=1e-3
        )
        assert set(parts) == {"rankings", "own", "lift", "similarity"}
    assert {"chunk_vector", "chunk_keyword", "window_vector", "window_keyword"} == set(
        find(world, bank, "dog", debug=True)[0].parts["rankings"]
    )  # type: ignore[index]


def test_neighbors_are_the_turns_around_a_hit_in_order(world: World) -> None:
    bank = remember(world, *TALK)
    (found,) = find(world, bank, "Lisbon", top_k=1, neighbors=2)
    assert [one.content for one in found.neighbors] == [TALK[0], TALK[1], TALK[3], TALK[4]]
    (first,) = find(world, bank, "red bicycle", top_k=1, neighbors=1)
    assert [one.content for one in first.neighbors] == [TALK[1]]


def test_ties_go_to_the_newest(world: World) -> None:
    bank = world.bank(type="general")
    for _ in range(3):
        remember(world, "the same words", bank=bank)
        world.clock.advance(60)
    written = [one.entry.created_at for one in find(world, bank, "same words")]
    assert len(set(written)) == 3
    assert written == sorted(written, reverse=True)


# --------------------------------------------------------------------------------------------------------------------
# Filters


def test_keys_are_apart(world: World) -> None:
    bank = world.bank()
    for key in "abc":
        remember(world, f"apple pie of {key}", bank=bank, key=key)
    assert contents(world, bank, "apple", keys=("a",)) == ["apple pie of a"]
    assert sorted(contents(world, bank, "apple", keys=("a", "c"))) == ["apple pie of a", "apple pie of c"]
    assert len(contents(world, bank, "apple")) == 3
    assert contents(world, bank, "apple", keys=("nobody",)) == []
    assert contents(world, bank, "apple", keys=()) == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"speakers": ("ann",)}, {"one"}),
        ({"tags_any": ("x", "y")}, {"one", "two"}),
        ({"tags_all": ("x", "y")}, {"two"}),
        ({"metadata": (MetadataTest("n", "gt", 1),)}, {"two"}),
        ({"since": 2_000}, {"two", "three"}),
        ({"until": 2_000}, {"one"}),
        ({"since": 2_000, "until": 3_000}, {"two"}),
        ({"kinds": ("entry",)}, {"one", "two", "three"}),
        ({"kinds": ("summary",)}, set()),
    ],
)
def test_filters_reach_the_index(world: World, filters: dict[str, Any], expected: set[str]) -> None:
    bank = world.bank()
    world.write(bank, "one apple", speaker="ann", tags=("x",), metadata={"n": 1}, occurred_at=1_000)
    world.write(bank, "two apple", speaker="bob", tags=("x", "y"), metadata={"n": 2}, occurred_at=2_000)
    world.write(bank, "three apple", speaker="eve", occurred_at=3_000)
    world.drain()
    assert {content.split()[0] for content in contents(world, bank, "apple", **filters)} == expected


def test_another_bank_and_another_account_never_show(world: World) -> None:
    bank = remember(world, "the secret apple")
    other = world.bank()
    remember(world, "an open apple", bank=other)
    assert contents(world, other, "apple") == ["an open apple"]
    stranger = replace(world.again(bank), account="someone-else")
    assert search(world, stranger, SearchRequest("apple")) == []


# --------------------------------------------------------------------------------------------------------------------
# Only what the table says is alive


def test_a_deleted_entry_is_gone_at_once_though_the_index_still_has_it(world: World) -> None:
    bank = remember(world, *TALK)
    entry = find(world, bank, "Lisbon", top_k=1)[0].entry
    deletion.delete_entry(world, bank, entry.id, deadline=world.deadline())
    assert len(list(world.index.scan(bank.reads.index, bank.id, 1))) == 2 * len(TALK) - 1  # nothing was cleaned yet
    assert TALK[2] not in contents(world, bank, "Lisbon")
    assert find(world, bank, "flying to Lisbon in June")[0].entry.content != TALK[2]


def test_a_correction_hides_the_old_wording_at_once(world: World) -> None:
    bank = remember(world, *TALK)
    entry = find(world, bank, "Lisbon", top_k=1)[0].entry
    corrections.correct(world, bank, entry.id, content="We are staying at home", deadline=world.deadline())
    assert all("Lisbon" not in content for content in contents(world, bank, "flying to Lisbon in June"))
    found = find(world, bank, "Lisbon June flying", top_k=100)
    assert entry.id not in {one.entry.id for one in found}
    world.drain()
    assert contents(world, bank, "staying at home")[0] == "We are staying at home"


def test_a_window_counts_only_while_each_of_its_turns_is_alive(world: World) -> None:
    bank = remember(world, *TALK)
    before = {one.entry.content: one.parts for one in find(world, bank, "dog Rex sofa", debug=True)}
    assert before[TALK[0]]["rankings"]["window_vector"]["raw"] is not None  # type: ignore[index]
    dog = find(world, bank, "dog Rex sofa", top_k=1)[0].entry
    deletion.delete_entry(world, bank, dog.id, deadline=world.deadline())
    after = {one.entry.content: one.parts for one in find(world, bank, "dog Rex sofa", debug=True)}
    for neighbour in (TALK[0], TALK[2]):
        assert "window_vector" not in after[neighbour]["rankings"]  # type: ignore[index]


def test_forgotten_keys_and_deleted_sources_and_banks_are_gone_at_once(world: World) -> None:
    bank = remember(world, *TALK)
    stale = world.again(bank)
    deletion.forget_key(world, bank, "k", deadline=world.deadline())
    assert contents(world, bank, "bicycle") == []
    assert contents(world, bank, "bicycle", keys=("k",)) == []
    remember(world, "a new bicycle", bank=bank)
    assert contents(world, bank, "bicycle") == ["a new bicycle"]
    deletion.delete_source(world, bank, deadline=world.deadline())
    assert search(world, stale, SearchRequest("bicycle")) == []  # a request that began before
    assert contents(world, bank, "bicycle") == []


def test_what_is_past_the_retention_is_gone_from_that_second(world: World) -> None:
    bank = remember(world, *TALK, bank=world.bank(retention_days=1))
    world.clock.advance(DAY / 1000 - 1)
    assert contents(world, bank, "bicycle")[0] == TALK[0]
    world.clock.advance(2)
    assert contents(world, bank, "bicycle") == []


def test_what_was_compacted_is_gone_and_its_summary_is_found(world: World) -> None:
    bank = remember(world, *TALK)
    partition = ids.partition_of(bank.id, "k")
    watermark = world.load(bank)[3].ulid
    world.table.write(Update(partitions.head_key(bank, partition), set={"watermark": watermark}))
    for keys in (None, ("k",)):
        assert set(contents(world, bank, "the bicycle, the dog, Lisbon and the printer", keys=keys)) == {TALK[4], TALK[5]}


def test_just_after_a_compaction_what_it_replaced_takes_no_place(world: World) -> None:
    """The index still has hundreds of better matches, all compacted: what lives is found all the same, with one more look."""
    bank = world.bank()
    for first in range(0, 500, 100):
        world.write(bank, *(f"apple {n}" for n in range(first, first + 100)))
    living = world.write(bank, *(f"one apple among many other words and things, {n} in number" for n in range(12)))
    world.drain()
    watermark = world.load(bank, order="desc", limit=13)[-1].ulid
    world.table.write(Update(partitions.head_key(bank, ids.partition_of(bank.id, "k")), set={"watermark": watermark}))
    index = world.index = Recording(world.index)
    found = find(world, bank, "apple", keys=("k",))
    assert len(found) == 10
    assert {one.entry.id for one in found} <= {entry.id for entry in living}
    assert len(index.sizes) == 2


def test_just_after_compactions_of_many_keys_what_lives_is_found(world: World) -> None:
    """Only a few of the keys are met by the first look; the second knows the watermarks of all."""
    bank = world.bank()
    texts = ("apple", "apple", "apple", "one apple among many others and more words")
    written = {f"key{n}": world.write(bank, *texts, key=f"key{n}") for n in range(450)}
    world.drain()
    for entries in written.values():
        head = partitions.head_key(bank, entries[0].partition)
        world.table.write(Update(head, set={"watermark": entries[2].ulid}))
    index = world.index = Recording(world.index)
    found = find(world, bank, "apple", keys=tuple(written))
    assert len(found) == 10
    assert all("among many" in one.entry.content for one in found)
    assert len(index.sizes) == 2


class Recording:
    """An index that counts its searches and remembers how deep they went."""

    def __init__(self, index: Any) -> None:
        self.index = index
        self.sizes: list[int] = []

    def search(self, *given: Any, size: int, **options: Any) -> list[Ranking]:
        self.sizes.append(size)
        rankings: list[Ranking] = self.index.search(*given, size=size, **options)
        return rankings

    def __getattr__(self, name: str) -> Any:
        return getattr(self.index, name)


def kill(world: World, bank: Bank, entries: Sequence[Any]) -> None:
    """The table forgets entries; the index lags behind."""
    for entry in entries:
        key = partitions.entry_key(bank, entry.partition, entry.sort)
        world.table.write(Update(key, set={"version": 99}))


def test_a_page_of_dead_hits_is_refilled_once(world: World) -> None:
    bank = world.bank(type="general")
    texts = ["apple " + "pear " * n for n in range(200)]  # no two are equally near
    entries = [*world.write(bank, *texts[:100]), *world.write(bank, *texts[100:])]
    world.drain()
    index = world.index = Recording(world.index)
    best = find(world, bank, "apple", top_k=100, mode="semantic")
    assert index.sizes == [200]
    kill(world, bank, [one.entry for one in best])
    assert len(find(world, bank, "apple", top_k=10, mode="semantic")) == 10
    assert index.sizes == [200, 100, 400]
    kill(world, bank, entries)
    assert find(world, bank, "apple", top_k=10) == []
    assert index.sizes[3:] == [100, 400]


def test_no_refill_when_the_index_has_no_more(world: World) -> None:
    bank = remember(world, *TALK)
    index = world.index = Recording(world.index)
    assert len(find(world, bank, "apple")) == len(TALK)
    assert len(index.sizes) == 1


class Counting:
    """A table that counts batch reads and the items they ask for."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.asked: list[int] = []

    def read(self, keys: Sequence[Key]) -> Any:
        self.asked.append(len(keys))
        return self.table.read(keys)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.table, name)


@pytest.mark.parametrize("top_k", [1, 10, 100])
@pytest.mark.parametrize("kind", ["conversation", "general"])
def test_a_search_costs_one_embedding_one_round_trip_and_few_batch_reads(world: World, kind: Any, top_k: int) -> None:
    bank = world.bank(type=kind)
    for first in range(0, 300, 100):
        world.write(bank, *(f"turn {n} about apples and word{n % 17}" for n in range(first, first + 100)))
    world.drain()
    bank = world.again(bank)
    embedded: list[str] = []
    real = world.embedders

    def embedders(model: str, dimensions: int) -> Any:
        chosen = real(model, dimensions)
        plain = chosen.embed_query
        chosen.embed_query = lambda text: (embedded.append(text), plain(text))[1]
        return chosen

    world.embedders = embedders
    world.index, world.table = Recording(world.index), Counting(world.table)
    assert len(search(world, bank, SearchRequest("apples word3", top_k=top_k))) == top_k
    assert embedded == ["apples word3"]
    assert len(world.index.sizes) == 1
    assert len(world.table.asked) == 1  # one call of the port; underneath, one batch read a hundred items
    assert world.table.asked[0] <= 2 * top_k * 5 + 2
    search(world, bank, SearchRequest("apples word3", top_k=top_k, keys=("k", "never written")))
    assert len(world.index.sizes) == len(world.table.asked) == 2


def test_an_index_that_is_away_is_said_so(world: World) -> None:
    bank = remember(world, *TALK)

    class Away:
        def search(self, *_: Any, **__: Any) -> Any:
            raise IndexUnavailable("away")

    world.index = Away()
    with pytest.raises(IndexUnavailable):
        find(world, bank, "x")


@pytest.mark.parametrize("query", ["AND OR NOT", '"(*', "🎉", "小李", "x" * 8_000, "?!", "the"])
def test_any_query_is_answered(world: World, query: str) -> None:
    bank = remember(world, *TALK)
    for mode in ("hybrid", "semantic", "keyword"):
        find(world, bank, query, mode=mode)

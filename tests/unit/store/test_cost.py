"""What reads cost: as many items as are shown and a few more, whether there are ten documents or fifty thousand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from memory_banks.ports import Action, Delete, Item, Key, Page, Put
from memory_banks.store import document, namespaces, rows
from memory_banks.store.operations import Get, Listing, Search
from memory_banks.store.writing import Write

from tests.doubles.memory_table import MemoryTable
from tests.doubles.world import World
from tests.unit.store.conftest import Shelf


class CountingTable(MemoryTable):
    """Counts the items that reads give; has no call that scans."""

    def __init__(self) -> None:
        super().__init__()
        self.items = 0
        self.queried: set[str] = set()

    def read(self, keys: Sequence[Key]) -> list[Item | None]:
        found = super().read(keys)
        self.items += sum(item is not None for item in found)
        return found

    def query(self, pk: str, **bounds: Any) -> Page:
        page = super().query(pk, **bounds)
        self.items += len(page.items)
        self.queried.add(pk)
        return page


def filled(users: int, each: int) -> Shelf:
    """A store of users with documents, put into the table item by item."""
    table = CountingTable()
    shelf = Shelf(World(table=table))
    for user in range(users):
        namespace = ("memory", f"user{user:05}", "notes")
        for number in range(each):
            version = f"{user * each + number:026}"
            key = document.key_of("acme", namespaces.place(namespace, f"k{number}"))
            item = {"pk": key.pk, "sk": key.sk, "version": version, "created_at": 0, "value": f'{{"n":{number},"user":{user}}}'}
            for put in ({"item": item}, *({"item": row.item} for row in rows.puts("acme", namespace, item))):
                table._store(Key(put["item"]["pk"], put["item"]["sk"]), put["item"])
    return shelf


SIZES = [
    pytest.param((2, 5), id="10"),
    pytest.param((500, 100), id="500 x 100", marks=pytest.mark.slow),
    pytest.param((50_000, 1), id="50,000 x 1", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=SIZES)
def shop(request: pytest.FixtureRequest) -> Shelf:
    return filled(*request.param)


def cost(shelf: Shelf, call: Any) -> tuple[int, int]:
    """How many results a call has and how many items it reads."""
    shelf.world.table.items = 0
    return len(call()), shelf.world.table.items


@pytest.mark.parametrize("limit", [1, 10, 100])
@pytest.mark.parametrize("prefix", [(), ("memory",), ("memory", "user00001"), ("memory", "user00001", "notes"), ("nowhere",)])
def test_a_prefix_search_reads_a_page_and_at_most_twenty_more(shop: Shelf, prefix: tuple[str, ...], limit: int) -> None:
    shown, read = cost(shop, lambda: shop.keys(prefix, limit=limit))
    assert shown <= limit
    assert read <= limit + 20
    assert read <= shown + 1


@pytest.mark.parametrize("limit", [1, 10, 100])
@pytest.mark.parametrize(
    "conditions",
    [
        {},
        {"prefix": ("memory",)},
        {"prefix": ("memory", "*")},
        {"prefix": ("memory", "user00001")},
        {"suffix": ("notes",)},
        {"max_depth": 1},
        {"max_depth": 2},
        {"prefix": ("memory",), "max_depth": 2},
    ],
)
def test_a_listing_of_namespaces_reads_a_page_and_at_most_twenty_more(shop: Shelf, conditions: Any, limit: int) -> None:
    shown, read = cost(shop, lambda: shop.names(limit=limit, **conditions))
    assert 1 <= shown <= limit
    assert read <= shown + 20


def test_a_filter_reads_what_is_under_its_prefix_and_nothing_else(shop: Shelf) -> None:
    prefix = ("memory", "user00001")
    under = len(shop.keys(prefix, limit=1_000_000))
    shop.world.table.queried = set()
    shown, read = cost(shop, lambda: shop.keys(prefix, filter={"n": -1}))
    assert (shown, read) == (0, under)
    assert shop.world.table.queried == {"U#acme#memory\0user00001\0"}


def test_a_label_after_a_wildcard_is_jumped_to(shop: Shelf) -> None:
    user = ("memory", "user00000")
    for number in range(200):
        place = namespaces.place((*user, f"log{number:03}"), "k")
        shop.world.table.fill([{"pk": "D#acme", "sk": place, "version": "0" * 26, "created_at": 0, "value": "{}"}])
    try:
        shown, read = cost(shop, lambda: shop.names(prefix=("memory", "*", "notes"), limit=2))
        assert shown == 2
        assert read <= 2 + 20
    finally:
        for number in range(200):
            shop.world.table.write(Delete(document.key_of("acme", namespaces.place((*user, f"log{number:03}"), "k"))))


def test_a_filter_over_long_values_reads_what_is_under_its_prefix_and_nothing_else(shop: Shelf) -> None:
    for number in range(30):
        shop.put(("long",), f"k{number}", {"n": number, "text": "x" * 2_000}, index=False)
    try:
        shop.world.table.queried = set()
        assert cost(shop, lambda: shop.keys(("long",), filter={"n": -1})) == (0, 60)  # the row, and the item of each
        assert shop.world.table.queried == {"U#acme#long\0"}
        assert cost(shop, lambda: shop.keys(("long",), limit=10)) == (10, 20)
    finally:
        for number in range(30):
            shop.delete(("long",), f"k{number}")


def test_an_offset_reads_what_comes_before_the_page_and_nothing_after_it(shop: Shelf) -> None:
    assert cost(shop, lambda: shop.keys(("memory",), limit=2, offset=5)) == (2, 7)
    shown, read = cost(shop, lambda: shop.names(prefix=("memory",), limit=1, offset=1))
    assert shown == 1
    assert read <= 2 + 20


def test_a_batch_reads_what_its_operations_read(shop: Shelf) -> None:
    prefix = ("memory", "user00001")
    shop.world.table.items = 0
    shop.batch(Get((*prefix, "notes"), "k0"), Search(prefix, limit=3), Listing((), limit=1), Get(("nowhere",), "k"))
    assert shop.world.table.items <= 1 + 3 + (1 + 20)


def test_a_get_reads_one_item(shop: Shelf) -> None:
    assert cost(shop, lambda: [shop.get(("memory", "user00001", "notes"), "k0")]) == (1, 1)


def test_a_query_reads_the_rows_it_shows() -> None:
    shelf = Shelf(World(table=CountingTable()))
    for number in range(200):
        shelf.put(("a", f"n{number % 5}"), f"k{number}", {"text": f"apple {number}"})
    shelf.keys(query="apple")
    assert cost(shelf, lambda: shelf.keys(("a",), query="apple", limit=10)) == (10, 10)


def test_a_write_makes_a_few_calls_and_its_items_grow_with_the_depth_alone() -> None:
    shelf = Shelf(World(table=CountingTable()))
    shelf.put(("a", "b"), "k", {"text": "apple"})
    for number in range(50):
        shelf.put(("a", "b"), f"other{number}", {"text": "apple"})
    table = shelf.world.table
    table.reads = table.writes = 0
    shelf.put(("a", "b"), "k", {"text": "pear"})
    assert (table.reads, table.writes) == (1, 3)
    table.reads = table.writes = 0
    shelf.put(("a", "b"), "k", {"text": "pear"}, index=False)
    shelf.put(("a", "b"), "k", {"text": "pear"}, index=False)
    assert (table.reads, table.writes) == (2, 3)


def test_a_batch_writes_several_documents_in_a_transaction() -> None:
    shelf = Shelf(World(table=CountingTable()))
    shelf.put(("a", "b"), "first", {"text": "apple"})
    table = shelf.world.table
    table.reads = table.writes = 0
    shelf.batch(*(Write(("a", "b"), f"k{number}", {"text": f"apple {number}"}) for number in range(100)))
    assert table.reads == 4
    assert table.writes <= 4 + 8  # the records of 25 documents at once, and up to 20 documents of 5 items
    assert len(shelf.keys(("a",), limit=200)) == 101


class Raced(MemoryTable):
    """Before the first transaction of documents another writer takes one of them."""

    rival: Any = None

    def transact(self, actions: Sequence[Action]) -> None:
        if self.rival and any(isinstance(action, Put) and action.item["pk"].startswith("D#") for action in actions):
            rival, self.rival = self.rival, None
            rival()
        super().transact(actions)


def test_what_is_in_the_way_of_one_document_does_not_hold_up_the_others() -> None:
    table = Raced()
    shelf = Shelf(World(table=table))
    shelf.put(("a",), "k3", {"text": "old"})
    table.rival = lambda: shelf.put(("a",), "k3", {"text": "the rival's"})
    shelf.batch(*(Write(("a",), f"k{number}", {"text": f"mine {number}"}) for number in range(10)))
    assert sorted(shelf.keys(("a",), limit=100)) == [f"k{number}" for number in range(10)]
    assert [shelf.value(("a",), f"k{number}") for number in range(10)] == [{"text": f"mine {number}"} for number in range(10)]
    assert table.rival is None
    assert shelf.outside() == (10, 0)
    assert shelf.records() == []
    rows = [item for item in table.everything() if item["pk"] == "U#acme#"]
    assert len(rows) == 10


def test_values_that_fill_a_transaction_get_one_of_their_own() -> None:
    shelf = Shelf(World(table=CountingTable()))
    table = shelf.world.table
    table.writes = 0
    shelf.batch(*(Write(("a",), f"k{number}", {"text": "x" * 370_000}, False) for number in range(6)))
    assert table.writes == 3

"""Time to live: minutes from the last access, by the item's own ttl; expired is gone, and stays gone."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks.errors import Invalid
from memory_banks.store.operations import Get, Search

from tests.unit.store.conftest import Shelf


def test_an_item_expires_after_its_minutes_everywhere(shelf: Shelf) -> None:
    shelf.put(("a",), "k", {"text": "apple"}, ttl=1.5)
    shelf.put(("b",), "stays", {"text": "apple"})
    shelf.world.clock.advance(89)
    assert shelf.get(("a",), "k", refresh=False) is not None
    shelf.world.clock.advance(1)
    assert shelf.get(("a",), "k") is None
    assert shelf.keys() == shelf.keys(query="apple") == shelf.keys(filter={"text": "apple"}) == ["stays"]
    assert shelf.keys(("a",)) == []
    assert shelf.names() == [("b",)]


@pytest.mark.parametrize("access", ["get", "search", "query", "batch"])
def test_an_access_puts_it_off_by_the_items_own_ttl(shelf: Shelf, access: str) -> None:
    shelf.put(("a",), "k", {"text": "apple"}, ttl=10)
    for _ in range(5):
        shelf.world.clock.advance(9 * 60)
        match access:
            case "get":
                assert shelf.get(("a",), "k") is not None
            case "search":
                assert shelf.keys(("a",)) == ["k"]
            case "query":
                assert shelf.keys(("a",), query="apple") == ["k"]
            case "batch":
                assert shelf.batch(Get(("a",), "k"))[0] is not None
    shelf.world.clock.advance(10 * 60)
    assert shelf.get(("a",), "k") is None


def test_an_access_without_refresh_puts_nothing_off(shelf: Shelf) -> None:
    shelf.put(("a",), "k", {"text": "apple"}, ttl=10)
    shelf.world.clock.advance(9 * 60)
    assert shelf.get(("a",), "k", refresh=False) is not None
    assert shelf.keys(("a",), refresh=False) == shelf.keys(query="apple", refresh=False) == ["k"]
    assert shelf.batch(Get(("a",), "k", refresh=False), Search((), refresh=False))[0] is not None
    shelf.world.clock.advance(60)
    assert shelf.keys() == []


def test_a_refresh_revives_nothing(shelf: Shelf) -> None:
    shelf.put(("a",), "k", ttl=1)
    shelf.world.clock.advance(60)
    for _ in range(3):
        assert shelf.get(("a",), "k") is None
        assert shelf.keys() == []
    shelf.world.clock.advance(-1)
    assert shelf.get(("a",), "k", refresh=False) is not None


def test_a_read_gives_no_ttl_to_an_item_that_had_none(shelf: Shelf) -> None:
    shelf.put(("a",), "k")
    shelf.get(("a",), "k")
    shelf.keys()
    shelf.world.clock.advance(10_000_000)
    assert shelf.get(("a",), "k").expires_at is None


def test_a_put_without_ttl_clears_it_and_one_with_another_sets_that(shelf: Shelf) -> None:
    shelf.put(("a",), "cleared", ttl=1)
    shelf.put(("a",), "cleared")
    shelf.put(("a",), "longer", ttl=1)
    shelf.put(("a",), "longer", ttl=100)
    shelf.world.clock.advance(99 * 60)
    assert shelf.keys() == ["longer", "cleared"]
    shelf.world.sweep("retention")
    assert shelf.keys() == ["longer", "cleared"]


def test_an_expired_item_that_is_written_again_is_new(shelf: Shelf) -> None:
    first = shelf.put(("a",), "k", {"text": "apple"}, ttl=1)
    shelf.world.clock.advance(60)
    second = shelf.put(("a",), "k", {"text": "pear"}, if_absent=True)
    assert second.created_at > first.created_at
    assert shelf.keys() == ["k"]
    assert shelf.outside() == (1, 0)


def test_expired_items_take_no_place_on_a_page(shelf: Shelf) -> None:
    for number in range(30):
        shelf.put(
            ("a", f"n{number}"), f"k{number}", {"text": "apple", "long": "x" * 1_500 * (number % 3)}, ttl=1 if number % 2 else None
        )
    shelf.world.clock.advance(60)
    even = [f"k{number}" for number in range(28, -1, -2)]
    assert [key for offset in range(0, 15, 4) for key in shelf.keys(limit=4, offset=offset)] == even
    assert sorted(key for offset in range(0, 15, 4) for key in shelf.keys(query="apple", limit=4, offset=offset)) == sorted(even)
    assert len(shelf.names(limit=15)) == 15


def test_the_sweep_removes_what_expired_and_nothing_else(shelf: Shelf) -> None:
    shelf.put(("a",), "gone", {"text": "x" * 500_000}, ttl=1)
    shelf.put(("a",), "read", {"text": "apple"}, ttl=2)
    shelf.put(("a",), "kept", {"text": "apple"})
    shelf.world.clock.advance(100)
    assert shelf.get(("a",), "read") is not None
    shelf.world.clock.advance(60)
    assert shelf.world.sweep("retention").documents == 1
    assert {item["sk"] for item in shelf.world.table.everything() if item["pk"] == "D#acme"} == {"a\0\0read", "a\0\0kept"}
    assert shelf.outside() == (2, 0)
    assert shelf.records() == []
    shelf.world.clock.advance(120)
    assert shelf.world.sweep("retention").documents == 1
    assert shelf.keys() == ["kept"]
    assert shelf.world.sweep("retention").documents == 0


def test_the_sweep_leaves_what_was_written_after_it_looked(shelf: Shelf) -> None:
    from memory_banks.ports import Key
    from memory_banks.store import expiry

    shelf.put(("a",), "k", ttl=1)
    shelf.world.clock.advance(60)
    shelf.put(("a",), "k", {"new": True})
    assert expiry.take_up(shelf.world, Key("D#acme", "a\0\0k"), deadline=shelf.world.deadline())
    assert shelf.value(("a",), "k") == {"new": True}


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), "1", True])
def test_a_ttl_is_a_number_above_zero(shelf: Shelf, ttl: Any) -> None:
    with pytest.raises(Invalid) as failure:
        shelf.put(("a",), "k", ttl=ttl)
    assert failure.value.loc == ("body", "ttl")


def test_a_ttl_may_be_a_fraction(shelf: Shelf) -> None:
    written = shelf.put(("a",), "k", ttl=0.01)
    assert written.expires_at - shelf.world.clock.now() == 600
    assert written.ttl == pytest.approx(0.01)


def test_reading_again_within_a_second_writes_nothing(shelf: Shelf) -> None:
    shelf.put(("a",), "minute", ttl=1)
    shelf.put(("a",), "short", ttl=0.1)
    for key, writes in (("minute", 0), ("short", 1)):
        shelf.world.clock.advance(0.5)
        shelf.world.table.writes = 0
        shelf.get(("a",), key)
        assert shelf.world.table.writes == writes

"""Documents by name: what is written is what is read, and what every loss of other stores looks like when it is not one."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from memory_banks.errors import BadRequest, Invalid, PreconditionFailed, TooLarge
from memory_banks.store.operations import Get, Listing, Search
from memory_banks.store.store import Store
from memory_banks.store.writing import Write

from tests.doubles.world import World
from tests.unit.store.conftest import Shelf


def test_numbers_come_back_as_they_went_in(shelf: Shelf) -> None:
    value = {"float": 1.5, "whole": 2.0, "int": 3, "big": 2**70, "small": 1e-300, "list": [1, 1.0, True, None], "nul": "a\0b"}
    shelf.put(("a",), "k", value)
    found = shelf.value(("a",), "k")
    assert found == value
    assert [type(one) for one in found.values()] == [float, float, int, int, float, list, str]
    assert [type(one) for one in found["list"]] == [int, float, bool, type(None)]
    [listed] = shelf.store.search(("a",), filter={"whole": 2})
    assert type(listed.document.value["whole"]) is float


def test_an_update_keeps_created_at_and_a_read_changes_neither_time(shelf: Shelf) -> None:
    first = shelf.put(("a",), "k", {"n": 1})
    shelf.world.clock.advance(60)
    second = shelf.put(("a",), "k", {"n": 2})
    assert (second.created_at, second.updated_at) == (first.created_at, first.created_at + 60_000)
    shelf.world.clock.advance(60)
    for _ in range(2):
        assert shelf.get(("a",), "k") == second
        assert shelf.store.search(("a",))[0].document == second


def test_putting_twice_makes_one(shelf: Shelf) -> None:
    shelf.put(("a",), "k", {"n": 1})
    shelf.put(("a",), "k", {"n": 2})
    assert shelf.keys() == ["k"]
    assert shelf.value(("a",), "k") == {"n": 2}
    assert shelf.keys(query="text") == ["k"]


def test_a_delete_deletes_everywhere(shelf: Shelf) -> None:
    shelf.put(("a", "b"), "k", {"text": "apple"})
    shelf.delete(("a", "b"), "k")
    shelf.delete(("a", "b"), "k")
    assert shelf.value(("a", "b"), "k") is None
    assert shelf.keys() == shelf.keys(query="apple") == shelf.names() == []
    assert shelf.outside() == (0, 0)
    assert [item["pk"] for item in shelf.world.table.everything()] == ["T#acme"]


def test_values_are_never_shared(shelf: Shelf) -> None:
    value = {"list": [1]}
    written = shelf.put(("a",), "k", value)
    value["list"].append(2)
    written.value["list"].append(3)
    shelf.get(("a",), "k").value["list"].append(4)
    shelf.store.search(())[0].document.value["list"].append(5)
    assert shelf.value(("a",), "k") == {"list": [1]}


def test_a_get_makes_no_namespace(shelf: Shelf) -> None:
    assert shelf.get(("a",), "k") is None
    assert shelf.get((), "k") is None
    assert shelf.names() == []
    assert shelf.world.table.everything() == []


@pytest.mark.parametrize(
    "label", ["a:b", "a_%", "*", "a\nb", "ä", "日本", "a/b", " ", "\x01", "a\x01", "\U0010ffff", "#", "S#1", '"']
)
def test_any_label_is_legal_and_literal(shelf: Shelf, label: str) -> None:
    shelf.put((label, "x"), "k:1#\n")
    shelf.put((label + "x",), "other")
    shelf.put(("x" + label,), "other")
    assert shelf.keys((label,)) == ["k:1#\n"]
    assert shelf.names(prefix=(label, "x")) == [(label, "x")]
    assert shelf.get((label, "x"), "k:1#\n").namespace == (label, "x")


@pytest.mark.parametrize("labels", [("foo.bar",), ("foo\0",), ("foo", ""), (123,), ("\ud800",), ("x" * 600,), ("x",) * 33])
def test_other_labels_are_refused_with_their_place(shelf: Shelf, labels: Any) -> None:
    for call in (
        lambda: shelf.put(labels, "k"),
        lambda: shelf.get(labels, "k"),
        lambda: shelf.delete(labels, "k"),
        lambda: shelf.keys(labels),
        lambda: shelf.names(prefix=labels),
        lambda: shelf.names(suffix=labels),
    ):
        with pytest.raises(Invalid):
            call()
    with pytest.raises(Invalid) as failure:
        shelf.put(("foo", ""), "k")
    assert failure.value.loc == ("body", "namespace", 1)


def test_nobody_writes_to_the_root_or_to_langgraph(shelf: Shelf) -> None:
    for namespace in ((), ("langgraph",), ("langgraph", "x")):
        with pytest.raises(BadRequest):
            shelf.put(namespace, "k")
    shelf.put(("x", "langgraph"), "k")
    assert shelf.names() == [("x", "langgraph")]


def test_the_longest_names_fit_and_a_byte_more_does_not(shelf: Shelf) -> None:
    deep = ("abcdefghijklmno",) * 32
    shelf.put(deep, "k" * 500)
    shelf.put(deep, "k" * 500, {"again": True})
    assert shelf.value(deep, "k" * 500) == {"again": True}
    assert shelf.keys(deep) == ["k" * 500]
    with pytest.raises(Invalid):
        shelf.put(("a",), "k" * 501)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, {"x"}, "\ud800"])
def test_what_is_no_json_is_refused(shelf: Shelf, value: Any) -> None:
    with pytest.raises(Invalid) as failure:
        shelf.put(("a",), "k", {"deep": [value]})
    assert failure.value.loc[:2] == ("body", "value")
    assert shelf.get(("a",), "k") is None


def test_a_value_of_a_mebibyte_is_kept_and_a_longer_one_refused(shelf: Shelf) -> None:
    for size in (379_000, 381_000, 1_048_000):
        value = {"text": "é" * (size // 2)}
        shelf.put(("a",), f"k{size}", value, index=False)
        assert shelf.value(("a",), f"k{size}") == value
    assert shelf.outside() == (0, 2)
    assert [len(one.document.value["text"]) for one in shelf.store.search(())] == [524_000, 190_500, 189_500]
    shelf.put(("a",), "k1048000", {"text": "short"})
    shelf.delete(("a",), "k381000")
    assert shelf.outside()[1] == 0
    with pytest.raises(TooLarge):
        shelf.put(("a",), "k", {"text": "x" * 1_048_576})


def test_a_reader_that_comes_between_two_blobs_gets_the_newer(shelf: Shelf) -> None:
    shelf.put(("a",), "k", {"text": "x" * 500_000}, index=False)
    [stale] = [item for item in shelf.world.table.everything() if item["pk"] == "D#acme"]
    shelf.put(("a",), "k", {"text": "y" * 500_000}, index=False)
    from memory_banks.store import values

    found = values.read(shelf.world, stale)
    assert found is not None
    assert found.value["text"][0] == "y"
    shelf.delete(("a",), "k")
    assert values.read(shelf.world, stale) is None


def test_compare_and_set(shelf: Shelf) -> None:
    first = shelf.put(("a",), "k", {"n": 1}, if_absent=True)
    with pytest.raises(PreconditionFailed):
        shelf.put(("a",), "k", {"n": 2}, if_absent=True)
    second = shelf.put(("a",), "k", {"n": 2}, if_version=first.version)
    for stale in (first.version, "nonsense"):
        with pytest.raises(PreconditionFailed):
            shelf.put(("a",), "k", {"n": 3}, if_version=stale)
        with pytest.raises(PreconditionFailed):
            shelf.delete(("a",), "k", if_version=stale)
    shelf.delete(("a",), "k")
    again = shelf.put(("a",), "k", {"n": 1})
    with pytest.raises(PreconditionFailed):
        shelf.put(("a",), "k", {"n": 3}, if_version=second.version)
    assert shelf.get(("a",), "k") == again


def test_accounts_do_not_see_each_other(world: World, shelf: Shelf) -> None:
    other = Shelf(world, "acme2")
    shelf.put(("a",), "k", {"text": "apple"})
    assert other.value(("a",), "k") is None
    assert other.keys() == other.keys(query="apple") == other.names() == []
    other.put(("a",), "k", {"text": "pear"})
    other.delete(("a",), "k")
    assert shelf.value(("a",), "k") == {"text": "apple"}


def test_a_batch_reads_what_was_before_and_its_last_write_wins(shelf: Shelf) -> None:
    shelf.put(("a",), "old", {"n": 1})
    results = shelf.batch(
        Write(("a",), "new", {"n": 1}),
        Get(("a",), "new"),
        Get(("a",), "old"),
        Search(("a",)),
        Write(("a",), "old", None),
        Listing(),
        Write(("a",), "new", {"n": 2}),
        Get((), "nowhere"),
    )
    assert results[0] is results[1] is results[4] is results[6] is results[7] is None
    assert results[2].value == {"n": 1}
    assert [one.document.key for one in results[3]] == ["old"]
    assert results[5] == [("a",)]
    assert shelf.keys() == ["new"]
    assert shelf.value(("a",), "new") == {"n": 2}


@pytest.mark.parametrize(
    "bad",
    [
        Write(("a", "b.c"), "k", {}),
        Write((), "k", {}),
        Search(("",)),
        Search((), {"x": {"$foo": 1}}),
        Write(("a",), "k", {"x": {1}}),
    ],
)
def test_one_bad_operation_rejects_the_whole_batch(shelf: Shelf, bad: Any) -> None:
    with pytest.raises((Invalid, BadRequest)):
        shelf.batch(Write(("a",), "good", {"n": 1}), bad)
    assert shelf.keys() == []


def test_a_large_batch_is_written_whole(shelf: Shelf) -> None:
    writes = [Write(("a", f"n{number % 7}"), f"k{number}", {"n": number}) for number in range(120)]
    shelf.batch(*writes)
    assert len(shelf.keys(limit=1000)) == 120
    assert shelf.keys(limit=3) == ["k119", "k118", "k117"]
    shelf.batch(*(Write(one.namespace, one.key, None) for one in writes))
    assert shelf.keys() == []
    assert shelf.outside() == (0, 0)
    assert shelf.records() == []


def test_writers_that_meet_leave_one_of_their_states_whole(world: World) -> None:
    def work(name: str) -> None:
        shelf = Shelf(world)
        chance = random.Random(name)
        for number in range(30):
            if chance.random() < 0.3:
                shelf.delete(("a", "b"), "k")
            else:
                shelf.put(("a", "b"), "k", {"text": f"{name} {number}"})

    threads = [threading.Thread(target=work, args=(name,)) for name in ("anna", "bert", "carl")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shelf = Shelf(world)
    final = shelf.put(("a", "b"), "k", {"text": "final"})
    rows = [item for item in world.table.everything() if item["pk"].startswith("U#")]
    assert {row["sk"] for row in rows} == {final.version}
    assert len(rows) == 3
    assert shelf.outside() == (1, 0)
    assert shelf.records() == []


def test_two_stores_of_one_process_share_nothing_but_the_table(world: World) -> None:
    Store(world, "acme").put(("a",), "k", {"n": 1}, deadline=world.deadline())
    found = Store(world, "acme").get(("a",), "k")
    assert found is not None
    assert found.value == {"n": 1}

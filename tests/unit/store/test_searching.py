"""Searching: exact prefixes, filters before limits, order, pages, and meaning."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks.errors import BadRequest, Invalid
from memory_banks.store import filters, searching

from tests.doubles.world import World
from tests.unit.store.conftest import Shelf


def test_a_prefix_matches_whole_labels_only_in_every_form(shelf: Shelf) -> None:
    for namespace in (
        ("foo",),
        ("foobar",),
        ("foo", "bar"),
        ("foo", "barn"),
        ("fo",),
        ("foo%",),
        ("FOO",),
        ("x", "foo"),
        ("foo\n",),
    ):
        shelf.put(namespace, "/".join(namespace), {"text": "apple"})
    assert sorted(shelf.keys(("foo",))) == sorted(shelf.keys(("foo",), query="apple")) == ["foo", "foo/bar", "foo/barn"]
    assert shelf.keys(("foo",), filter={"text": "apple"}) == ["foo/barn", "foo/bar", "foo"]
    assert shelf.keys(("foo", "bar")) == shelf.keys(("foo", "bar"), query="apple") == ["foo/bar"]
    assert shelf.keys(("f",)) == shelf.keys(("f",), query="apple") == shelf.keys(("*",)) == shelf.keys(("%",)) == []
    assert shelf.names(prefix=("foo",)) == [("foo",), ("foo", "bar"), ("foo", "barn")]
    assert shelf.names(suffix=("foo",)) == [("foo",), ("x", "foo")]
    assert shelf.names(prefix=("foo",), max_depth=1) == [("foo",)]
    assert len(shelf.keys(())) == len(shelf.keys((), query="apple")) == 9


def test_newest_write_first(shelf: Shelf) -> None:
    for key in "abc":
        shelf.put(("x",), key)
    shelf.put(("x",), "a", {"again": True})
    shelf.world.clock.advance(1)
    shelf.put(("x", "y"), "d")
    assert shelf.keys() == shelf.keys(("x",)) == ["d", "a", "c", "b"]


def test_a_thousand_writes_in_one_millisecond_keep_their_order(shelf: Shelf) -> None:
    for number in range(1_000):
        shelf.put(("x",), f"{number}", {}, index=False)
    assert shelf.keys(limit=1_000) == [f"{number}" for number in reversed(range(1_000))]


@pytest.mark.parametrize("query", [None, "apple"])
@pytest.mark.parametrize("filter", [None, {"even": True}])
@pytest.mark.parametrize("page", [1, 3, 7])
def test_pages_make_up_the_whole_list(shelf: Shelf, query: str | None, filter: Any, page: int) -> None:
    for number in range(40):
        text = "apple " * (number % 5) + f"word{number % 3}"
        shelf.put(
            ("a", f"n{number % 4}"), f"k{number}", {"text": text, "even": number % 2 == 0}, index=None if number % 3 else False
        )
    whole = shelf.keys(("a",), query=query, filter=filter, limit=100)
    assert len(whole) == len(set(whole)) == (20 if filter else 40)
    assert [
        key for offset in range(0, 40, page) for key in shelf.keys(("a",), query=query, filter=filter, limit=page, offset=offset)
    ] == whole


def test_the_filter_comes_before_the_limit(shelf: Shelf) -> None:
    shelf.put(("a",), "first", {"color": "red"}, index=False)
    for number in range(500):
        shelf.put(("a",), f"k{number}", {"color": "blue"}, index=False)
    assert shelf.keys(("a",), filter={"color": "red"}, limit=1) == ["first"]
    assert shelf.keys(("a",), filter={"color": "red"}, limit=1, offset=1) == []


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"n": 1}, "abe"),
        ({"n": 1.0}, "abe"),
        ({"n": True}, "c"),
        ({"s": "x"}, "ab"),
        ({"n": 1, "s": "x"}, "ab"),
        ({"n": {"$eq": 1}}, "abe"),
        ({"n": {"$ne": 1}}, "cdfg"),
        ({"n": {"$gt": 1}}, "d"),
        ({"n": {"$gte": 1}}, "abde"),
        ({"n": {"$lt": 2.5}}, "abe"),
        ({"n": {"$gte": 1, "$lt": 2}}, "abe"),
        ({"n": {"$gt": "1"}}, ""),
        ({"s": {"$gt": "w"}}, "ab"),
        ({"s": {"$gt": 1}}, ""),
        ({"s": {"$lte": "x"}}, "abf"),
        ({"o": {"$gt": 1}}, ""),
        ({"n": {"$in": [2, 2.5]}}, "d"),
        ({"n": {"$in": []}}, ""),
        ({"n": {"$nin": [1, 2.5]}}, "cfg"),
        ({"n": {"$exists": True}}, "abcde"),
        ({"n": {"$exists": False}}, "fg"),
        ({"z": None}, "abcdefg"),
        ({"z": {"$exists": True}}, "g"),
        ({"$and": [{"n": 1}, {"s": "x"}]}, "ab"),
        ({"$or": [{"n": 2.5}, {"s": "W"}]}, "df"),
        ({"$or": [{"n": {"$gt": 2}}, {"$and": [{"s": "x"}, {"l": ["p", "q"]}]}]}, "bd"),
        ({"$or": []}, ""),
        ({"$and": []}, "abcdefg"),
        ({"l": ["p", "q"]}, "b"),
        ({"l": ["q", "p"]}, ""),
        ({"l": "p"}, ""),
        ({"o": {"i": {"j": 1}}}, "e"),
        ({"o": {"i": {"j": {"$gte": 1}}}}, "e"),
        ({"o": {"$eq": {"i": {"j": 1, "k": 2}}}}, "e"),
        ({"o": {"$eq": {"i": {"j": 1}}}}, ""),
        ({"o.i": 1}, "f"),
        ({}, "abcdefg"),
    ],
)
def test_filters(shelf: Shelf, filter: Any, expected: str) -> None:
    values: dict[str, Any] = {
        "a": {"n": 1, "s": "x"},
        "b": {"n": 1.0, "s": "x", "l": ["p", "q"]},
        "c": {"n": True},
        "d": {"n": 2.5},
        "e": {"n": 1, "o": {"i": {"j": 1, "k": 2}}},
        "f": {"s": "W", "o.i": 1},
        "g": {"z": None, "o": []},
    }
    for key, value in values.items():
        shelf.put(("a",), key, value)
    assert "".join(sorted(shelf.keys(filter=filter))) == expected
    assert "".join(sorted(shelf.keys(filter=filter, query="anything"))) == expected


@pytest.mark.parametrize(
    "filter",
    [
        {"n": {"$regex": "x"}},
        {"$nor": []},
        {"n": {"$gt": 1, "x": 2}},
        {"n": {"$in": 1}},
        {"n": {"$exists": 1}},
        {"$or": {}},
        {"$and": [1]},
    ],
)
def test_what_is_no_filter_is_an_error_even_where_nothing_is(shelf: Shelf, filter: Any) -> None:
    with pytest.raises(BadRequest):
        shelf.keys(filter=filter)


def test_negative_pages_are_refused(shelf: Shelf) -> None:
    for wrong in ({"limit": -1}, {"offset": -1}):
        with pytest.raises(Invalid):
            shelf.keys(**wrong)
        with pytest.raises(Invalid):
            shelf.names(**wrong)
    with pytest.raises(Invalid):
        shelf.names(max_depth=0)
    shelf.put(("a",), "k")
    assert shelf.keys(limit=0) == shelf.names(limit=0) == []


def test_what_the_index_filters_on_never_loses_what_passes() -> None:
    values: list[dict[str, Any]] = [
        {"n": number, "s": text, "x": number}
        for number in (0, -1, 1.5, 2**53, 2**53 + 1, 2**60, True, None, [1, 2])
        for text in ("", "a", "x" * 128, "x" * 129, "a\0b", None, ["a"])
    ]
    from memory_banks import metadata

    conditions = [
        0,
        1,
        1.5,
        2**53 + 1,
        True,
        None,
        "a",
        "x" * 129,
        "a\0b",
        {"$gt": 1},
        {"$lte": 2**53 + 1},
        {"$gte": 0.5, "$lt": 2**60},
    ]
    conditions += [{"$in": [1, "a"]}, {"$in": [None]}, {"$ne": 1}, {"$exists": False}, {"$eq": "a"}, [1, 2]]
    for first in conditions:
        for second in conditions:
            for filter in (
                {"n": first, "s": second},
                {"$and": [{"n": first}, {"s": second}]},
                {"$or": [{"n": first}], "s": second},
            ):
                tests = filters.implied(filter)
                for value in values:
                    leaves = list(metadata.leaves(filters.indexable(value)))
                    if filters.matches(filter, value):
                        assert all(metadata.holds(test, leaves) for test in tests), (filter, value)


# --------------------------------------------------------------------------------------------------------------------
# By meaning


def test_a_match_among_two_hundred_identical_others_comes_first(shelf: Shelf) -> None:
    for number in range(200):
        shelf.put(("a",), f"other{number}", {"text": "zebra"})
    shelf.put(("a",), "match", {"text": "apple pie"})
    found = shelf.store.search(("a",), query="apple pie")
    assert found[0].document.key == "match"
    assert len({one.document.key for one in found}) == 10
    scores = [one.score for one in found]
    assert all(score is not None for score in scores)
    assert scores == sorted(scores, reverse=True)


def test_an_item_of_many_texts_is_one_row_with_its_best_score(shelf: Shelf) -> None:
    shelf.put(("a",), "many", {"t": [f"word{number}" for number in range(300)]}, index=["t[*]"])
    shelf.put(("a",), "one", {"t": "word7 other"}, index=["t"])
    shelf.put(("a",), "none", {"t": "word7"}, index=False)
    found = [(one.document.key, one.score) for one in shelf.store.search((), query="word7")]
    assert [key for key, _ in found] == ["many", "one", "none"]
    assert found[0][1] == pytest.approx(1, abs=1e-3)
    assert found[2][1] is None
    assert shelf.keys(query="word7", limit=1, offset=2) == ["none"]


def test_index_false_leaves_no_vector_of_before(shelf: Shelf) -> None:
    shelf.put(("a",), "k", {"text": "apple"})
    shelf.put(("a",), "k", {"text": "apple"}, index=False)
    assert shelf.outside() == (0, 0)
    assert shelf.store.search((), query="apple")[0].score is None


def test_a_list_of_paths_overrides_the_default(shelf: Shelf) -> None:
    shelf.put(("a",), "k", {"x": "apple", "y": "pear"}, index=["y"])
    shelf.put(("a",), "l", {"x": "apple", "y": "pear"}, index=["x", "nowhere"])
    assert shelf.keys(query="pear") == ["k", "l"]
    assert shelf.keys(query="apple") == ["l", "k"]
    assert shelf.outside() == (2, 0)


def test_a_long_text_is_found_by_its_end(shelf: Shelf) -> None:
    shelf.put(("a",), "long", {"text": "filler words here. " * 3_000 + "the secret is xylophone"}, index=["text"])
    shelf.put(("a",), "short", {"text": "nothing of the kind"})
    assert shelf.keys(query="secret xylophone") == ["long", "short"]


def test_too_many_texts_are_refused(shelf: Shelf) -> None:
    with pytest.raises(Invalid, match="501 texts"):
        shelf.put(("a",), "k", {"t": [f"{number}" for number in range(501)]}, index=["t[*]"])
    shelf.put(("a",), "k", {"t": ["same"] * 501}, index=["t[*]"])
    with pytest.raises(Invalid, match="at most 500 paths"):
        shelf.put(("a",), "k", {"t": "x"}, index=["t" + "." * number for number in range(501)])


def test_blank_texts_and_empty_values_have_no_vector(shelf: Shelf) -> None:
    shelf.put(("a",), "blank", {"text": "  "}, index=["text"])
    shelf.put(("a",), "empty", {}, index=["text"])
    assert {one.score for one in shelf.store.search((), query="apple")} == {None}
    assert shelf.keys(query="") == ["empty", "blank"]


def test_the_older_text_is_never_found(shelf: Shelf) -> None:
    shelf.put(("a",), "k", {"text": "apple"})
    shelf.put(("a",), "k", {"text": "pear"})
    [found] = shelf.store.search((), query="apple")
    assert found.score is not None
    assert found.score < 0.1
    assert found.document.value == {"text": "pear"}


def test_a_rare_filter_is_served_beyond_what_one_search_can_give(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "FEWEST_HITS", 4)
    monkeypatch.setattr(searching, "MOST_HITS", 16)
    monkeypatch.setattr(searching, "MOST_VECTORS", 2)
    for number in range(100):
        # An `$or` is nothing the index can filter on.
        shelf.put(
            ("a", f"n{number % 3}"),
            f"k{number}",
            {"text": "apple " + "pear " * (number % 10), "n": number},
            index=False if number == 97 else ["text"],
        )
    filter = {"$or": [{"n": {"$in": [3, 58, 9, 97]}}, {"n": 21}]}
    found = [(one.document.key, one.score is None) for one in shelf.store.search(("a",), query="apple", filter=filter)]
    assert found == [("k21", False), ("k3", False), ("k58", False), ("k9", False), ("k97", True)]
    assert shelf.keys(("a",), query="apple", filter=filter, limit=2, offset=2) == ["k58", "k9"]


def test_a_store_that_embeds_nothing_lists(world: World) -> None:
    shelf = Shelf(world, embedding=None)
    shelf.put(("a",), "k", {"text": "apple"})
    shelf.put(("a",), "l", {"text": "pear"})
    assert [(one.document.key, one.score) for one in shelf.store.search((), query="apple")] == [("l", None), ("k", None)]
    assert [item["pk"] for item in world.table.everything() if item["pk"][0] in "TY"] == []

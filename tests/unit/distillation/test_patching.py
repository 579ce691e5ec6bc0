"""JSON Patch: as the RFC says, and lenient where a model can only have meant one thing."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_banks.distillation.patching import PatchFailed, guarded, patched, same

NAMES = st.sampled_from(["a", "b", "c d", "a/b", "m~n", "", "0", "1", "-", "ä"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=4)


def op(kind: str, path: str, *value: Any, **rest: Any) -> dict[str, Any]:
    return {"op": kind, "path": path} | ({"value": value[0]} if value else {}) | rest


def pointer(*tokens: str) -> str:
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def difference(before: Any, after: Any, at: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """A patch from one object to another, by the RFC's letter."""
    found: list[dict[str, Any]] = []
    for name in before:
        if name not in after:
            found.append(op("remove", pointer(*at, name)))
    for name, value in after.items():
        if name not in before:
            found.append(op("add", pointer(*at, name), value))
        elif isinstance(before[name], dict) and isinstance(value, dict):
            found += difference(before[name], value, (*at, name))
        elif not same(before[name], value):
            found.append(op("replace", pointer(*at, name), value))
    return found


@given(DOCUMENTS, DOCUMENTS)
def test_the_difference_of_two_documents_leads_from_one_to_the_other(before: Any, after: Any) -> None:
    untouched = copy.deepcopy(before)
    patch = difference(before, after)
    assert same(patched(before, patch), after)
    assert same(patched(before, guarded(before, patch)), after)
    assert same(before, untouched), "the given document stays as it is"


@given(DOCUMENTS, NAMES, VALUES)
def test_what_was_added_is_there_and_removing_it_leaves_the_rest(document: Any, name: str, value: Any) -> None:
    added = patched(document, [op("add", pointer(name), value), op("test", pointer(name), value)])
    assert {key: inner for key, inner in added.items() if key != name} == {
        key: inner for key, inner in document.items() if key != name
    }
    assert name not in patched(added, [op("remove", pointer(name))])


@given(st.lists(VALUES, max_size=5), st.data())
def test_an_insertion_shifts_the_rest_of_the_array(array: list[Any], data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(array)))
    expected = [*array[:position], "new", *array[position:]]
    assert same(patched({"a": array}, [op("add", f"/a/{position}", "new")]), {"a": expected})


@given(DOCUMENTS, st.lists(NAMES, min_size=1, max_size=4), VALUES)
def test_any_path_into_an_empty_document_works(document: Any, path: list[str], value: Any) -> None:
    for kind in ("add", "replace"):
        made = patched({}, [op(kind, pointer(*path), value)])
        for token in path:
            made = made[0] if isinstance(made, list) else made[token]
        assert same(made, value)


@pytest.mark.parametrize(
    ("before", "operations", "after"),
    [
        ({"a": 1}, [op("replace", "/a", 2)], {"a": 2}),
        ({"a": [1, 2]}, [op("replace", "/a/1", 3)], {"a": [1, 3]}),
        ({"a": [1, 2]}, [op("remove", "/a/0")], {"a": [2]}),
        ({"a": [1]}, [op("add", "/a/-", 2)], {"a": [1, 2]}),
        ({"a": [1, 2, 3]}, [op("move", "/a/0", **{"from": "/a/2"})], {"a": [3, 1, 2]}),
        ({"a": {"b": 1}}, [op("copy", "/c", **{"from": "/a"}), op("replace", "/c/b", 2)], {"a": {"b": 1}, "c": {"b": 2}}),
        ({"a": 1}, [op("move", "/a", **{"from": "/a"})], {"a": 1}),
        ({"a": 1}, [op("test", "/a", 1.0)], {"a": 1}),
        ({"a": 1}, [op("replace", "", {"b": 2})], {"b": 2}),
        # parents and arrays are created
        ({}, [op("add", "/home/city", "Porto")], {"home": {"city": "Porto"}}),
        ({"home": None}, [op("add", "/home/city", "Porto")], {"home": {"city": "Porto"}}),
        ({}, [op("add", "/friends/0/name", "Ana")], {"friends": [{"name": "Ana"}]}),
        ({}, [op("add", "/friends/-/name", "Ana")], {"friends": [{"name": "Ana"}]}),
        ({}, [op("add", "/years/2024", "Porto")], {"years": {"2024": "Porto"}}),
        ({"a": []}, [op("replace", "/a/0", 1)], {"a": [1]}),
        (None, [op("add", "/a/-", 1)], {"a": [1]}),
        # a value may be null, which is not the same as none
        ({}, [op("add", "/a", None)], {"a": None}),
    ],
)
def test_operations(before: Any, operations: Any, after: Any) -> None:
    assert patched(before, operations) == after


def test_operations_apply_in_order() -> None:
    """What trustcall loses: two patches for one document each start from the original."""
    assert patched({"a": 1}, [op("add", "/b", 2), op("move", "/c", **{"from": "/b"}), op("add", "/b", 3)]) == {
        "a": 1,
        "c": 2,
        "b": 3,
    }


@pytest.mark.parametrize("interests", [{}, {"interests": None}, {"interests": []}])
def test_an_append_to_an_array_that_is_missing_or_null_makes_it(interests: dict[str, Any]) -> None:
    """What trustcall loses: an append to an array that is missing or null."""
    assert patched(interests, [op("add", "/interests/-", "jazz"), op("add", "/interests/-", "go")]) == {"interests": ["jazz", "go"]}


def test_any_patch_on_an_empty_document_works() -> None:
    """What trustcall loses: any patch on an empty document."""
    assert patched({}, [op("replace", "/user_name", "Bob"), op("add", "/age", 41)]) == {"user_name": "Bob", "age": 41}


def test_the_root_can_t_be_removed() -> None:
    """What trustcall loses: a removal of the root, dropped with a log line."""
    for operation in (op("remove", ""), op("move", "/a", **{"from": ""})):
        with pytest.raises(PatchFailed, match=r"operation 1: .*root"):
            patched({"a": 1}, [operation])


def test_one_bad_operation_among_good_ones_is_named_and_nothing_is_applied() -> None:
    """What trustcall loses: one bad operation among good ones."""
    document = {"a": [1]}
    with pytest.raises(PatchFailed, match="operation 2: there is no /b") as failed:
        patched(document, [op("add", "/a/-", 2), op("remove", "/b"), op("add", "/c", 3)])
    assert failed.value.number == 2
    assert document == {"a": [1]}


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ("remove", "must be an object"),
        ({"path": "/a"}, "op must be one of"),
        (op("merge", "/a", 1), "op must be one of"),
        ({"op": "add", "value": 1}, "path must be a JSON pointer"),
        (op("add", "a", 1), "must begin with /"),
        (op("add", "/a~2", 1), "neither ~0 nor ~1"),
        (op("add", "/a"), "add needs a value"),
        (op("replace", "/a"), "replace needs a value"),
        (op("test", "/list"), "test needs a value"),
        (op("test", "/list/0", True), "/list/0 has another value"),
        (op("test", "/none", None), "there is no /none"),
        (op("remove", "/list/3"), "3 elements and no position '3'"),
        (op("remove", "/list/-"), "no position '-'"),
        (op("remove", "/list/00"), "no position '00'"),
        (op("add", "/list/4", 1), "no position '4'"),
        (op("replace", "/list/3", 1), "no position '3'"),
        (op("add", "/list/5/name", 1), "no position '5'"),
        (op("add", "/text/a", 1), "nothing can be put below /text: it is a text"),
        (op("replace", "/list/0/a", 1), "it is a number"),
        (op("remove", "/text/a"), "/text is a text"),
        (op("move", "/a"), "from must be"),
        (op("move", "/b", **{"from": "/none"}), "there is no /none"),
        (op("move", "/list/0/x", **{"from": "/list"}), "into itself"),
        (op("add", "/a" * 101, 1), "levels of nesting"),
    ],
)
def test_a_failure_says_why(operation: Any, reason: str) -> None:
    with pytest.raises(PatchFailed) as failed:
        patched({"list": [1, 2, 3], "text": "x"}, [operation])
    assert reason in str(failed.value)
    assert failed.value.number == 1


def test_copies_into_itself_stay_within_the_size_of_a_document() -> None:
    doubling = [op("copy", f"/{number}", **{"from": ""}) for number in range(40)]
    with pytest.raises(PatchFailed, match="too large"):
        patched({"a": "x" * 100}, doubling)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, True, False),
        (0, False, False),
        (1, 1.0, True),
        ("1", 1, False),
        (None, None, True),
        (None, 0, False),
        ([1, {"a": 1}], [1.0, {"a": 1}], True),
        ([1], [True], False),
        ({"a": None}, {}, False),
    ],
)
def test_equality_is_that_of_json(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is equal


def test_a_guarded_patch_fails_where_the_array_has_changed_meanwhile() -> None:
    before = {"friends": [{"name": "Ana"}, {"name": "Eva"}]}
    patch = guarded(before, [op("replace", "/friends/1/name", "Ewa"), op("add", "/friends/-", {"name": "Jo"})])
    assert patched(before, patch) == {"friends": [{"name": "Ana"}, {"name": "Ewa"}, {"name": "Jo"}]}
    with pytest.raises(PatchFailed, match="/friends/1 has another value"):
        patched({"friends": [{"name": "Zoe"}, *before["friends"]]}, patch)


def test_an_append_needs_no_guard() -> None:
    assert guarded({"a": [1]}, [op("add", "/a/-", 2)]) == [op("add", "/a/-", 2)]

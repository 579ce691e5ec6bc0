"""Namespaces: distinct, sorted, by conditions, cut, and gone with their last document."""

from __future__ import annotations

import random

import pytest
from memory_banks.store.namespaces import Condition
from memory_banks.store.operations import Listing

from tests.unit.store.conftest import Shelf


@pytest.fixture
def tree(shelf: Shelf) -> Shelf:
    for namespace in (
        "a b c",
        "a b d e",
        "a b d i",
        "a b f",
        "a c f",
        "b a f",
        "users 123",
        "users 456 settings",
        "admin users 789",
    ):
        for number in range(3):
            shelf.put(tuple(namespace.split()), f"k{number}", {}, index=False)
    return shelf


def joined(names: list[tuple[str, ...]]) -> list[str]:
    return [" ".join(name) for name in names]


def test_conditions(tree: Shelf) -> None:
    assert joined(tree.names(prefix=("a", "b"))) == ["a b c", "a b d e", "a b d i", "a b f"]
    assert joined(tree.names(suffix=("f",))) == ["a b f", "a c f", "b a f"]
    assert joined(tree.names(prefix=("a",), suffix=("f",))) == ["a b f", "a c f"]
    assert joined(tree.names(prefix=("a", "*", "f"))) == ["a b f", "a c f"]
    assert joined(tree.names(suffix=("*", "f"))) == ["a b f", "a c f", "b a f"]
    assert joined(tree.names(prefix=("users", "*"))) == ["users 123", "users 456 settings"]
    assert joined(tree.names(prefix=("*", "users"), suffix=("789",))) == ["admin users 789"]
    assert tree.names(prefix=("nowhere",)) == tree.names(prefix=("user",)) == tree.names(prefix=("a", "b", "c", "d")) == []


def test_two_prefixes_must_both_be_met(tree: Shelf) -> None:
    def listed(*prefixes: tuple[str, ...]) -> list[str]:
        [names] = tree.batch(Listing(tuple(Condition("prefix", prefix) for prefix in prefixes)))
        return joined(names)

    assert listed(("a",), ("a", "*", "d")) == ["a b d e", "a b d i"]
    assert listed(("a",), ("b",)) == []
    assert listed(("*", "b"), ("a", "b", "f")) == ["a b f"]


def test_depth_cuts_then_duplicates_go_then_the_page_is_cut(tree: Shelf) -> None:
    assert joined(tree.names(max_depth=2)) == ["a b", "a c", "admin users", "b a", "users 123", "users 456"]
    assert joined(tree.names(max_depth=2, limit=2, offset=1)) == ["a c", "admin users"]
    assert joined(tree.names(max_depth=1)) == ["a", "admin", "b", "users"]
    assert joined(tree.names(prefix=("a", "b"), max_depth=1)) == ["a"]
    assert joined(tree.names(suffix=("f",), max_depth=1)) == ["a", "b"]
    assert joined(tree.names(prefix=("a", "b"), max_depth=3)) == ["a b c", "a b d", "a b f"]


def test_a_namespace_ends_with_its_last_document(tree: Shelf) -> None:
    for key in ("k0", "k1"):
        tree.delete(("users", "123"), key)
    assert ("users", "123") in tree.names()
    tree.delete(("users", "123"), "k2")
    assert ("users", "123") not in tree.names()


def test_pages_and_order_agree_with_sorted_tuples(shelf: Shelf) -> None:
    chance = random.Random(1)
    labels = ["a", "a b", "a-b", "a,", "b", "\x01", "ab", "é", "*", "\U0001f600", "a\x01"]
    made = {tuple(chance.choice(labels) for _ in range(chance.randrange(1, 5))) for _ in range(150)}
    for namespace in made:
        for number in range(chance.choice((1, 1, 2, 30))):
            shelf.put(namespace, f"k{number}", {}, index=False)
    assert shelf.names(limit=1000) == sorted(made)
    for depth in (1, 2, 3):
        assert shelf.names(limit=1000, max_depth=depth) == sorted({namespace[:depth] for namespace in made})
    for size in (1, 7, 50):
        assert [name for offset in range(0, len(made), size) for name in shelf.names(limit=size, offset=offset)] == sorted(made)
    for prefix in (("a",), ("a", "b"), ("é",), ("\x01",)):
        assert shelf.names(prefix=prefix, limit=1000) == sorted(name for name in made if name[: len(prefix)] == prefix)


def test_wildcards_agree_with_a_look_at_every_namespace(shelf: Shelf) -> None:
    chance = random.Random(2)
    labels = ["a", "b", "b\x01", "bb", "c", "*", "\x01"]
    made = {tuple(chance.choice(labels) for _ in range(chance.randrange(1, 5))) for _ in range(120)}
    for namespace in made:
        shelf.put(namespace, chance.choice(("k", "\0k", "")), {}, index=False)
    for _ in range(300):
        conditions = tuple(
            Condition(chance.choice(("prefix", "prefix", "suffix")), tuple(chance.choice(("*", *labels)) for _ in range(length)))
            for length in (chance.randrange(1, 5) for _ in range(chance.choice((1, 1, 2))))
        )
        depth = chance.choice((None, None, 1, 2, 3))
        met = sorted({name[:depth] for name in made if all(one.met(name) for one in conditions)})
        [found] = shelf.batch(Listing(conditions, depth, limit=1000))
        assert found == met, (conditions, depth)
        [found] = shelf.batch(Listing(conditions, depth, limit=3, offset=2))
        assert found == met[2:5], (conditions, depth)

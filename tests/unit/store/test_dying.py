"""A write that dies, or is told that something is away, at every single call it makes: the old state or the new one, whole,
and nothing left behind once the sweep has been."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from memory_banks.errors import DatabaseUnavailable
from memory_banks.ports import BlobsUnavailable, Contended, IndexUnavailable, ModelUnavailable, TableUnavailable

from tests.doubles.embedding import HashedEmbedder
from tests.doubles.world import World
from tests.unit.store.conftest import Shelf


class Death(BaseException):
    """The process dies. Nothing of the service may catch it."""


AWAY = {"table": TableUnavailable, "index": IndexUnavailable, "blobs": BlobsUnavailable, "embedder": ModelUnavailable}
EXPECTED = (Death, DatabaseUnavailable, TableUnavailable, IndexUnavailable, BlobsUnavailable, ModelUnavailable, Contended)


class Gate:
    """Lets the first calls of all ports pass and does something to one of them."""

    def __init__(self, at: int, fault: str) -> None:
        self.at = at
        self.fault = fault
        self.calls: list[str] = []

    def __call__(self, port: str, method: str, call: Callable[[], Any]) -> Any:
        self.calls.append(f"{port}.{method}")
        if len(self.calls) - 1 != self.at:
            return call()
        match self.fault:
            case "dead before":
                raise Death
            case "dead after":
                call()
                raise Death
            case "lost":
                raise AWAY[port]("away")
            case "unanswered":
                call()
                raise AWAY[port]("away")
            case _:
                if port == "table":
                    raise Contended("busy")
                return call()


class Gated:
    """A port whose calls pass the gate."""

    def __init__(self, port: str, real: Any, gate: Gate) -> None:
        self._port, self._real, self._gate = port, real, gate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not callable(found) or name.startswith("_"):
            return found
        return lambda *args, **kwargs: self._gate(self._port, name, lambda: found(*args, **kwargs))


class GatedEmbedders:
    default = "hashed/words"

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def sizes(self, model: str) -> tuple[int, ...]:
        return (512,)

    def __call__(self, model: str, dimensions: int) -> Any:
        return Gated("embedder", HashedEmbedder(model, dimensions), self._gate)


def gated(world: World, gate: Gate) -> World:
    return World(
        clock=world.clock,
        chance=world.chance,
        table=Gated("table", world.table, gate),
        index=Gated("index", world.index, gate),
        blobs=Gated("blobs", world.blobs, gate),
        embedders=GatedEmbedders(gate),
        metrics=world.metrics,
    )


OLD = {"text": "apple", "long": "o" * 400_000}
NEW = {"text": "pear", "long": "n" * 400_000}
LIVES: dict[str, tuple[Any, Any]] = {
    "create": (None, NEW),
    "update": (OLD, NEW),
    "update to what needs nothing outside": (OLD, {"plain": 1}),
    "update of what needed nothing outside": ({"plain": 1}, NEW),
    "delete": (OLD, None),
}


def start(old: Any) -> tuple[World, Shelf]:
    world = World()
    shelf = Shelf(world)
    shelf.put(("a", "b"), "other", {"text": "other"})
    if old is not None:
        write(shelf, old)
    return world, shelf


def write(shelf: Shelf, value: Any) -> None:
    if value is None:
        shelf.delete(("a", "b"), "k")
    else:
        shelf.put(("a", "b"), "k", value, index=["text"] if "text" in value else False)


def calls_of(life: str) -> list[str]:
    old, new = LIVES[life]
    world, _ = start(old)
    gate = Gate(-1, "")
    write(Shelf(gated(world, gate)), new)
    return gate.calls


@pytest.mark.parametrize("fault", ["dead before", "dead after", "lost", "unanswered", "contended"])
@pytest.mark.parametrize("life", LIVES)
def test_dying_at_any_call(life: str, fault: str) -> None:
    old, new = LIVES[life]
    calls = calls_of(life)
    assert calls.count("table.transact") >= 1
    for at in range(len(calls)):
        world, shelf = start(old)
        gate = Gate(at, fault)
        told = True
        try:
            write(Shelf(gated(world, gate)), new)
        except EXPECTED:
            told = False
        where = f"{life}: {fault} at {at} of {calls}"
        now = shelf.value(("a", "b"), "k")
        if told:
            assert now == new, where
        assert now in (old, new), where
        check(shelf, now, where)
        world.clock.advance(3_600)
        world.sweep("compaction")
        assert shelf.value(("a", "b"), "k") == now, where
        check(shelf, now, where)
        assert shelf.records() == [], where
        held = (1, 1) if now in (OLD, NEW) else (0, 0)
        assert shelf.outside() == (held[0] + 1, held[1]), where
        write(shelf, new)
        check(shelf, new, where)


def check(shelf: Shelf, now: Any, where: str) -> None:
    """Every way to the document tells the same."""
    expected = ["k", "other"] if now is not None else ["other"]
    for prefix in ((), ("a",), ("a", "b")):
        assert sorted(shelf.keys(prefix)) == expected, where
        assert sorted(shelf.keys(prefix, query="anything")) == expected, where
    if now in (OLD, NEW):
        [best, *_] = shelf.store.search((), query=now["text"])
        assert (best.document.key, best.document.value) == ("k", now), where
        assert best.score == pytest.approx(1, abs=1e-3), where
    assert shelf.names() == [("a", "b")], where
    rows = [item for item in shelf.world.table.everything() if item["pk"].startswith("U#")]
    assert len(rows) == 3 * len(expected), where


def test_the_sweep_and_a_slow_writer_never_both_win() -> None:
    """A writer that sleeps beyond the record's time between its vectors and its transaction."""
    world, shelf = start(OLD)

    class Sleepy(Gate):
        def __call__(self, port: str, method: str, call: Callable[[], Any]) -> Any:
            if f"{port}.{method}" == "index.refresh" and not self.calls:
                self.calls.append("slept")
                world.clock.advance(3_600)
                world.sweep("compaction")
            return call()

    with pytest.raises(DatabaseUnavailable):
        write(Shelf(gated(world, Sleepy(-1, ""))), NEW)
    check(shelf, OLD, "slow")
    late = world.clock.now() + 7_200_000
    store = Shelf(gated(world, Sleepy(-1, ""))).store
    store.put(("a", "b"), "k", NEW, index=["text"], deadline=late)
    check(shelf, NEW, "slow")
    world.clock.advance(3_600)
    world.sweep("compaction")
    check(shelf, NEW, "slow")
    assert shelf.outside() == (2, 1)
    assert shelf.records() == []


def test_a_batch_that_dies_leaves_each_document_whole() -> None:
    from memory_banks.store.writing import Write

    for at in range(40):
        world, shelf = start(None)
        gate = Gate(at, "dead after")
        try:
            Shelf(gated(world, gate)).batch(*(Write(("a", "b"), f"k{n}", {"text": f"t{n}"}) for n in range(5)))
            survived = True
        except Death:
            survived = False
        world.clock.advance(3_600)
        world.sweep("compaction")
        keys = set(shelf.keys())
        assert keys == set(shelf.keys(query="anything"))
        assert shelf.outside() == (len(keys), 0)
        assert shelf.records() == []
        if survived:
            assert len(keys) == 6
            break
    else:
        pytest.fail("a batch of five makes fewer calls")


def test_a_vector_that_the_index_refuses_is_an_error_and_not_swallowed(world: World) -> None:
    from memory_banks.ports import ModelError
    from memory_banks.store.indexing import Indexing

    shelf = Shelf(world, embedding=Indexing("memory-banks-test", 8, HashedEmbedder("hashed/words", 16)))
    with pytest.raises(ModelError, match="does not take"):
        shelf.put(("a",), "k", {"text": "apple"})
    assert shelf.keys() == []

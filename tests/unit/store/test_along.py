"""Actions that go along with a document: both or none."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks.errors import PreconditionFailed
from memory_banks.ports import Contended, Is, Key, Put, Update
from memory_banks.retrying import Superseded

from tests.doubles.world import World

STEP = Key("W#x", "step")


def step(number: int) -> Update:
    """The next step of a piece of work that was at `number`."""
    return Update(STEP, set={"written": number + 1}, when=(Is("written", "=", number),))


@pytest.fixture
def begun(world: World) -> World:
    world.table.write(Put({"pk": STEP.pk, "sk": STEP.sk, "written": 0}))
    return world


def written(world: World) -> Any:
    return world.table.read([STEP])[0]["written"]


def test_both_are_done(begun: World, shelf: Any) -> None:
    shelf.put(("a",), "k", {"n": 1}, along=[step(0)])
    assert (shelf.value(("a",), "k"), written(begun)) == ({"n": 1}, 1)


def test_a_condition_that_does_not_hold_leaves_the_document_alone(begun: World, shelf: Any) -> None:
    shelf.put(("a",), "k", {"n": 1})
    vectors = shelf.outside()
    with pytest.raises(Superseded):
        shelf.put(("a",), "k", {"n": 2, "long": "x" * 500_000}, along=[step(7)])
    assert (shelf.value(("a",), "k"), written(begun)) == ({"n": 1}, 0)
    assert (shelf.outside(), shelf.records()) == (vectors, []), "nothing is left behind"
    assert begun.clock.slept == [], "and nothing was tried again"


def test_a_document_that_is_there_already_leaves_the_actions_undone(begun: World, shelf: Any) -> None:
    shelf.put(("a",), "k", {"n": 1})
    with pytest.raises(PreconditionFailed):
        shelf.put(("a",), "k", {"n": 2}, if_absent=True, along=[step(0)])
    assert written(begun) == 0


def test_what_is_contended_is_tried_again_with_the_actions(begun: World, shelf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    transact, failures = begun.table.transact, [Contended(), Contended()]

    def contended(actions: Any) -> None:
        if len(actions) > 1 and failures:
            raise failures.pop()
        transact(actions)

    monkeypatch.setattr(begun.table, "transact", contended)
    shelf.put(("a",), "k", {"n": 1}, along=[step(0)])
    assert (shelf.value(("a",), "k"), written(begun), failures) == ({"n": 1}, 1, [])


def test_they_go_along_with_one_document_only(begun: World) -> None:
    from memory_banks.store import writing
    from memory_banks.store.writing import Write

    two = [Write(("a",), "k", {"n": 1}, False), Write(("a",), "l", {"n": 1}, False)]
    with pytest.raises(ValueError, match="one document"):
        writing.write(begun, "acme", None, two, along=[step(0)], deadline=begun.deadline())


def test_they_are_done_where_there_is_nothing_to_delete(begun: World) -> None:
    from memory_banks.store import writing
    from memory_banks.store.writing import Write

    gone = [Write(("a",), "k", None)]
    writing.write(begun, "acme", None, gone, along=[step(0)], deadline=begun.deadline())
    assert written(begun) == 1
    with pytest.raises(Superseded):
        writing.write(begun, "acme", None, gone, along=[step(0)], deadline=begun.deadline())

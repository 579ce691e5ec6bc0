"""Each scenario runs once for every call of a port that it makes and everything that can happen to that call.

Then the schedules run for some hours with nothing failing, and every promise must hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.faults.checks import check
from tests.faults.gate import Call, faults_of
from tests.faults.life import FILLER, LONG, Life

pytestmark = pytest.mark.faults

ALL = bool(os.environ.get("MEMORY_BANKS_ALL_FAULTS"))
"""Every fault at every call, not only every death and each third of the others."""

PROMPT = "Keep what matters."
SCENARIOS: dict[str, tuple[dict[str, object], Callable[[Life], None], Callable[[Life], None]]] = {}
"""By name: the bank's settings, what happens before anything may fail, and what happens while one call fails."""


def scenario(before: Callable[[Life], None] = lambda life: None, **settings: object) -> Callable[[Callable[[Life], None]], None]:
    def register(body: Callable[[Life], None]) -> None:
        SCENARIOS[body.__name__] = (settings, before, body)

    return register


def written(count: int, *, text: str = FILLER, ids: bool = False) -> Callable[[Life], None]:
    """Some notes that are written and indexed."""

    def before(life: Life) -> None:
        for _ in range(count):
            life.write(text=text, ids=ids)
        life.work()

    return before


@scenario()
def writes_and_is_indexed(life: Life) -> None:
    life.write()
    life.write(ids=True)
    life.write(text=LONG, once="a")
    life.work()


@scenario()
def a_batch_takes_several_transactions(life: Life) -> None:
    life.write(count=101, once="batch")


@scenario(type="general")
def a_batch_to_a_general_bank(life: Life) -> None:
    life.write(count=3, ids=True)
    life.write(count=2, key="other")
    life.work()


@scenario(written(4), max_turns=4, compaction_prompt=PROMPT)
def compacts(life: Life) -> None:
    life.write()
    life.work()


def compacted(life: Life) -> None:
    written(5)(life)
    assert life.model.calls == 1


@scenario(compacted, max_turns=4, compaction_prompt=PROMPT)
def compacts_again_and_cleans_up(life: Life) -> None:
    for _ in range(3):
        life.write()
    life.work()
    life.clock.advance(400)
    life.work()


@scenario(written(4), max_turns=4)
def sheds_without_a_prompt(life: Life) -> None:
    life.write()
    life.work()
    life.clock.advance(400)
    life.work()


@scenario(written(6), type="general", max_turns=6, compaction_prompt=PROMPT)
def compacts_a_sharded_partition(life: Life) -> None:
    life.write()
    life.work()


@scenario(written(5), max_turns=6, compaction_prompt=PROMPT)
def compacts_on_demand(life: Life) -> None:
    life.ask_for_compaction("k")
    life.work()
    life.ask_for_compaction()
    life.work()


@scenario(written(6), max_turns=50, compaction_prompt=PROMPT)
def a_threshold_is_lowered(life: Life) -> None:
    life.change(max_turns=3)
    life.work()


def old_and_young(life: Life) -> None:
    for _ in range(3):
        life.write(ids=True)
    life.work()
    life.clock.advance(days=1)
    life.write()
    life.work()


@scenario(old_and_young, retention_days=2)
def what_is_old_expires(life: Life) -> None:
    life.clock.advance(days=1, seconds=60)
    life.sweep()
    life.work()


def old_and_compacted(life: Life) -> None:
    compacted(life)
    life.clock.advance(days=1)


@scenario(old_and_compacted, max_turns=4, compaction_prompt=PROMPT, retention_days=2)
def a_summary_expires(life: Life) -> None:
    life.write(count=2)
    life.work()
    life.clock.advance(days=1, seconds=60)
    life.write()
    life.work()
    life.sweep()
    life.work()


@scenario(written(4, ids=True))
def an_entry_is_deleted(life: Life) -> None:
    life.delete(1)
    life.work()


@scenario(compacted, max_turns=4, compaction_prompt=PROMPT)
def a_summary_is_deleted(life: Life) -> None:
    life.delete_summary()
    life.work()
    life.clock.advance(400)
    life.work()


@scenario(written(3, ids=True))
def a_key_is_forgotten_and_written_again(life: Life) -> None:
    life.forget()
    life.send([0, 1])
    life.work()


@scenario(written(3, ids=True), retention_days=30)
def the_source_is_deleted(life: Life) -> None:
    life.delete_source()
    life.write()
    life.work()


@scenario(written(3, ids=True), max_turns=4)
def the_bank_is_deleted(life: Life) -> None:
    life.delete_bank()
    life.work()


@scenario(written(3, text=LONG))
def an_entry_is_corrected(life: Life) -> None:
    life.correct(1, text=FILLER)
    life.work()


@scenario(written(4), max_turns=4, compaction_prompt=PROMPT)
def an_entry_is_corrected_and_compacted(life: Life) -> None:
    life.correct(0)
    life.write()
    life.work()


def live(name: str, call: Call | None, fault: str | None) -> Life:
    settings, before, body = SCENARIOS[name]
    life = Life(dict(settings))
    before(life)
    life.gate.calls.clear()
    life.gate.decide = lambda at: fault if call and at.number == call.number else None
    body(life)
    return life


def chosen(calls: Sequence[Call]) -> Iterator[tuple[Call, str]]:
    """Every death at every call; of the other faults each third, or all of them."""
    others = 0
    for call in calls:
        for fault in faults_of(call):
            others += not fault.startswith("dead")
            if ALL or fault.startswith("dead") or others % 3 == 0:
                yield call, fault


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_breaks_a_promise_at_any_call(name: str) -> None:
    calls = list(live(name, None, None).gate.calls)
    broken = []
    for call, fault in chosen(calls):
        life = live(name, call, fault)
        try:
            check(life, settled=False)
            life.settle()
            check(life)
        except AssertionError as error:
            broken.append(f"{fault} at {call}: {error}")
    assert not broken, f"{len(broken)} of {len(calls)} calls with their faults; the first: {broken[0]}"

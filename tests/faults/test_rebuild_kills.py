"""A rebuild fails or dies at every call of a port that it makes, while clients go on; then the schedules run.

The bank must then read the index that was asked for, which must equal the table; nothing may be left in the other, nor of the
rebuild.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from memory_banks import jobs, rebuild
from memory_banks.bank import Target
from memory_banks.ports import Item
from memory_banks.requests import Rebuild

from tests.faults.checks import check
from tests.faults.gate import Call, Fault, faults_of
from tests.faults.life import LONG, Life

pytestmark = pytest.mark.faults

ALL = bool(os.environ.get("MEMORY_BANKS_ALL_FAULTS"))
"""Every fault at every call takes minutes; without it, every death, and every fifth of the other faults."""

KINDS: dict[str, dict[str, Any]] = {
    "elsewhere": {"embedding_model": "hashed/words", "dimensions": 256},
    "here": {},
    "reconciled": {"reconcile": True},
}


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step a message, four entries a step: a kill finds every seam."""
    monkeypatch.setattr(rebuild, "MARGIN_MS", 10**9)
    monkeypatch.setattr("memory_banks.backfill.BATCH", 4)


def born() -> Life:
    life = Life()
    for number in range(7):
        life.write(text=LONG if number == 3 else " and some more words")
    life.write(key="other", count=2)
    life.write(key="forgotten", count=2)
    life.work()
    life.correct(1)
    life.delete(5)
    life.forget("forgotten")
    life.work()
    return life


def rebuilds(life: Life, wanted: dict[str, Any], between: dict[int, Callable[[Life], Any]]) -> Item | None:
    """A rebuild from request to end, other things happening after some of its messages. Gives the job if it was acknowledged."""
    well, job = life.process(lambda: rebuild.request(life, life.current(), Rebuild(**wanted), deadline=life.deadline()))
    life.clock.advance(rebuild.WAIT_MS / 1000 + 1)
    for number in range(12):
        life.handle("compaction")
        if number in between:
            between[number](life)
            while life.handle("ingestion"):
                pass
    life.clock.advance(rebuild.WAIT_MS / 1000 + 1)
    life.work()
    return job if well else None


BETWEEN: dict[int, Callable[[Life], Any]] = {
    1: lambda life: life.write(),
    2: lambda life: life.delete(0),
    3: lambda life: life.correct(2),
    4: lambda life: life.write(key="new"),
    5: lambda life: life.delete(6),
}
"""What clients do, by the number of messages that were handled before."""


def right_in_the_end(life: Life, kind: str, job: Item | None) -> None:
    life.settle(hours=3)
    check(life)
    bank = life.current()
    moved = bank.reads == Target("hashed/words", 256)
    if job is not None:
        status = jobs.get(life, bank, job["sk"])["status"]
        assert status == "completed" and moved == (kind == "elsewhere")
    assert bank.writes == (bank.reads,), "the registration is left"
    assert not [item for item in life.memory_table.everything() if item["pk"].startswith("V#")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_rebuild_survives_every_fault_at_every_call(kind: str) -> None:
    life = born()
    first = len(life.gate.calls)
    job = rebuilds(life, KINDS[kind], BETWEEN)
    made = life.gate.calls[first:]
    right_in_the_end(life, kind, job)
    assert job is not None and len(made) > 60
    for call, fault in faults(made):
        life = born()
        life.gate.decide = only(call.number, fault)
        job = rebuilds(life, KINDS[kind], BETWEEN)
        try:
            right_in_the_end(life, kind, job)
        except BaseException as error:
            error.add_note(f"{kind}: {fault} at call {call}")
            raise


def faults(made: Sequence[Call]) -> Iterator[tuple[Call, Fault]]:
    every = [(call, fault) for call in made for fault in faults_of(call)]
    for number, (call, fault) in enumerate(every):
        if ALL or fault.startswith("dead") or number % 5 == 0:
            yield call, fault


@pytest.mark.parametrize("at", range(1, 8))
def test_a_cancelled_rebuild_survives_death_at_every_call(at: int) -> None:
    """Cancelled after so many messages: the bank is as before, and nothing is in the other index."""

    def cancel(life: Life) -> None:
        [*found] = [item for item in life.memory_table.everything() if item["pk"].startswith("J#") and item["kind"] == "rebuild"]
        if found:
            life.process(lambda: jobs.cancel(life, life.current(), found[0]["sk"]))

    between = {**BETWEEN, at: cancel}
    life = born()
    first = len(life.gate.calls)
    rebuilds(life, KINDS["elsewhere"], between)
    calls = life.gate.calls[first:]
    deaths = [(call.number, fault) for call in calls for fault in faults_of(call) if fault.startswith("dead")]
    for number, fault in [(0, ""), *(deaths if ALL else deaths[at::7])]:
        life = born()
        life.gate.decide = only(number, fault)
        job = rebuilds(life, KINDS["elsewhere"], between)
        life.settle(hours=3)
        check(life)
        bank = life.current()
        assert bank.writes == (bank.reads,), "the registration is left"
        assert not [item for item in life.memory_table.everything() if item["pk"].startswith("V#")]
        if job is not None:
            status = jobs.get(life, bank, job["sk"])["status"]
            assert (status, bank.reads.model) in {("cancelled", "hashed/small"), ("completed", "hashed/words")}
        if not number:
            assert job is not None and status == "cancelled"


def test_two_deaths_in_a_row() -> None:
    """The repetition dies too, at the calls after."""
    life = born()
    first = len(life.gate.calls)
    rebuilds(life, KINDS["elsewhere"], BETWEEN)
    calls = life.gate.calls[first:]
    for number, call in enumerate(calls[::3]):
        life = born()
        deaths = {call.number, call.number + 1 + number % 13, call.number + 20 + number % 7}
        life.gate.decide = lambda one, deaths=deaths: "dead after" if one.number in deaths else None  # type: ignore[misc]
        job = rebuilds(life, KINDS["elsewhere"], BETWEEN)
        right_in_the_end(life, "elsewhere", job)


def only(number: int, fault: Fault) -> Callable[[Call], Fault | None]:
    return lambda call: fault if call.number == number else None

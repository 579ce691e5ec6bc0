"""Capture and distillation fail or die at every call of a port; then the queues and schedules run.

Every message of a run that was acknowledged must then have been made into memory exactly once, as it was last edited; what was
deleted may be in nothing, and nothing may be left of the work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.faults.capturing import KINDS, CapturingLife, right_in_the_end
from tests.faults.gate import Call, Fault, faults_of

pytestmark = pytest.mark.faults

ALL = bool(os.environ.get("MEMORY_BANKS_ALL_FAULTS"))
"""Every fault at every call takes minutes; without it, every death, and every fifth of the other faults."""


def lived(life: CapturingLife) -> None:
    """What is tried with every fault."""
    life.run("r1", "note1", "note2")
    life.run("r2", "note3")
    life.quiet()
    life.run("r3", "note4", "note5")
    if life.kind in {"none", "prompt"}:
        life.edit("note1", "note1b")
        life.remove("note3")
        life.remove("note5")
    life.quiet()
    if life.kind in {"none", "prompt"}:
        life.regenerate()
        life.quiet()


@pytest.mark.parametrize("kind", KINDS)
def test_capture_survives_every_fault_at_every_call(kind: str) -> None:
    life = CapturingLife(kind)
    first = len(life.gate.calls)
    lived(life)
    made = life.gate.calls[first:]
    right_in_the_end(life)
    assert life.acknowledged and len(made) > 40
    for call, fault in faults(made):
        life = CapturingLife(kind)
        life.gate.decide = only(call.number, fault)
        lived(life)
        try:
            right_in_the_end(life)
        except BaseException as error:
            error.add_note(f"{kind}: {fault} at call {call}")
            raise


def faults(made: Sequence[Call]) -> Iterator[tuple[Call, Fault]]:
    every = [(call, fault) for call in made for fault in faults_of(call) if fault != "refused"]
    for number, (call, fault) in enumerate(every):
        if ALL or fault.startswith("dead") or number % 5 == 0:
            yield call, fault


def only(number: int, fault: Fault) -> Callable[[Call], Fault | None]:
    return lambda call: fault if call.number == number else None

"""The protocol of a partition, held by the real functions under random interleavings, deaths and clocks that are off.

Writers, compactors, editors, ingestion and clean-ups run one call at a time, in an order that chance chooses; some die at a call,
some work on hosts whose clocks lag. After every 25 steps each acknowledged note must be remembered exactly once. To show that
every rule is needed, a table that overlooks one rule's condition must be caught.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import pytest
from memory_banks import compaction, deletion, ids, partitions
from memory_banks.ports import Is

from tests.doubles import memory_table
from tests.faults.checks import check
from tests.faults.life import FILLER, Life
from tests.faults.stepping import Stepper

pytestmark = pytest.mark.faults

RUNS = int(os.environ.get("MEMORY_BANKS_INTERLEAVINGS", "120"))
STEPS = 260
SKEWS = (0, 0, -300, 200, -60_000)


def interleave(seed: int, steps: int = STEPS) -> Life:
    """One run; raises `AssertionError` when a promise is broken."""
    stepper = Stepper(seed, death=0.01)
    chance = stepper.chance
    kind = chance.choice(["conversation", "general"])
    settings = {"type": kind, "max_turns": 6, "compaction_prompt": "Keep what matters."}
    life = Life(settings, seed, stepper, ordered=False)
    life.gate.pause = stepper.pause
    actors: list[tuple[int, Callable[[Life], object]]] = [
        (10, lambda host: host.write(text=FILLER * chance.choice([1, 1, 3]))),
        (1, lambda host: host.write(count=3)),
        (4, _compact),
        (1, lambda host: host.delete(_some(host))),
        (1, lambda host: host.correct(_some(host))),
        (1, lambda host: host.handle("ingestion", chance.randrange)),
        (2, _clean),
    ]
    weights = [weight for weight, _ in actors]
    life.write(count=5)
    try:
        for step in range(steps):
            stepper.advance(milliseconds=int(chance.random() < 0.3))
            if chance.random() < 0.35 and len(stepper.actors) < 12:
                host = life.host(chance.choice(SKEWS))
                [(_, body)] = chance.choices(actors, weights)
                stepper.start(lambda body=body, host=host: body(host))  # type: ignore[misc]
            if chance.random() < 0.004:
                stepper.advance(milliseconds=compaction.LEASE_MS)
            if stepper.actors:
                stepper.step()
            if step % 25 == 0:
                check(life, settled=False, searched=False)
    finally:
        stepper.stop()
        life.gate.pause = None
    check(life, settled=False)
    life.settle()
    check(life)
    return life


def _some(life: Life) -> int:
    return list(life.expected.notes)[life.chance.randrange(len(life.expected.notes))]


def _compact(life: Life) -> None:
    partition = ids.partition_of(life.bank.id, "k")
    life.process(lambda: compaction.compact(life, life.current(), partition, deadline=life.clock.now() + 120_000))


def _clean(life: Life) -> None:
    """A clean-up, though no cursor's five minutes are over: the protocol does not depend on when it comes."""
    from memory_banks import cleaning
    from memory_banks.ports import Key

    pk = partitions.partition_pk(life.bank, ids.partition_of(life.bank.id, "k"))
    for item in life.memory_table.query(pk, first="X#", last="X~").items[:1]:
        life.process(lambda item=item: cleaning.clean(life, Key(item["pk"], item["sk"])))  # type: ignore[misc]


@pytest.mark.parametrize("quarter", range(4))
def test_no_interleaving_loses_or_doubles_a_note(quarter: int) -> None:
    calls = sum(interleave(seed).model.calls for seed in range(quarter * RUNS // 4, (quarter + 1) * RUNS // 4))
    assert calls >= RUNS // 4, "hardly anything was compacted: the interleavings prove nothing"


def overlooks(monkeypatch: pytest.MonkeyPatch, attributes: Iterable[str]) -> None:
    """From now on every condition on these attributes holds."""
    real, overlooked = memory_table._true, set(attributes)

    def true(test: Is, item: dict[str, object]) -> bool:
        return test.attribute in overlooked or real(test, item)

    monkeypatch.setattr(memory_table, "_true", true)


def first_caught(runs: int = 300) -> int | None:
    """The first run that breaks a promise."""
    for seed in range(runs):
        try:
            interleave(seed)
        except AssertionError:
            return seed
    return None


def test_a_table_that_overlooks_the_floor_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    overlooks(monkeypatch, ["floor"])
    assert first_caught() is not None


def test_a_compaction_that_raises_no_floor_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "raise_floors", lambda *args: None)
    assert first_caught() is not None


def test_a_table_that_overlooks_edits_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    overlooks(monkeypatch, ["edits"])
    assert first_caught() is not None


def test_a_table_that_overlooks_lease_and_watermark_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    overlooks(monkeypatch, ["lease", "lease_until", "watermark"])
    assert first_caught() is not None

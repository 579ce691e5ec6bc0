"""Renaming a key fails or dies at every call of a port, and meets writes, corrections, runs and other renames at every step.

Every acknowledged note must then be under exactly one key, once: the new one if it was there before the rename was asked for, else
the one that it was written to, or its new name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from memory_banks import deletion, homes, renaming
from memory_banks.capture import listing, messages, runs
from memory_banks.capture.runs import NewMessage, NewRun
from memory_banks.errors import Conflict, NotFound

from tests.doubles import memory_table
from tests.faults.capturing import CapturingLife
from tests.faults.checks import check
from tests.faults.gate import Call, Fault, faults_of
from tests.faults.life import FILLER, Life, told_in
from tests.faults.stepping import Stepper

pytestmark = pytest.mark.faults

ALL = bool(os.environ.get("MEMORY_BANKS_ALL_FAULTS"))
"""Every fault at every call takes minutes; without it, every death, and every third of the other faults."""

RUNS = int(os.environ.get("MEMORY_BANKS_INTERLEAVINGS", "120"))
PROMPT = "Keep what matters."


def rename(life: Life, key: str = "k", to: str = "new", tries: int = 3) -> bool:
    """A client that sends it again when it fails. Whether it was answered, and well."""
    for _ in range(tries):
        request = lambda: renaming.rename(life, life.current(), key, to, deadline=life.deadline())  # noqa: E731
        well, answer = life.process(request)
        if well:
            return True
        if isinstance(answer, NotFound | Conflict):
            return False
    return False


def notes(life: Life, key: str) -> list[int]:
    return [number for entry in life.load(key) for number in told_in(entry.content)]


def faults(made: Sequence[Call]) -> Iterator[tuple[Call, Fault]]:
    every = [(call, fault) for call in made for fault in faults_of(call) if fault != "refused"]
    for number, (call, fault) in enumerate(every):
        if ALL or fault.startswith("dead") or number % 3 == 0:
            yield call, fault


def only(number: int, fault: Fault) -> Callable[[Call], Fault | None]:
    return lambda call: fault if call.number == number else None


# --------------------------------------------------------------------------------------------------------------------
# Every fault at every call

KINDS = {"conversation": {"type": "conversation"}, "general": {"type": "general"}}


def born(kind: str) -> Life:
    life = Life(KINDS[kind] | {"max_turns": 6, "compaction_prompt": PROMPT}, ordered=False)
    for _ in range(8):
        life.write()
        life.clock.advance(1)
    life.write(count=2, ids=True)
    life.work()
    life.write(key="other")
    return life


def lived(life: Life) -> bool:
    """What is tried with every fault. Gives whether the rename was acknowledged."""
    life.correct(9)
    life.delete(8)
    well = rename(life)
    life.write()
    life.write("new", ids=True)
    life.correct(7)
    life.work()
    life.clock.advance(1)
    return well


@pytest.mark.parametrize("kind", KINDS)
def test_a_rename_survives_every_fault_at_every_call(kind: str) -> None:
    life = born(kind)
    first = len(life.gate.calls)
    assert lived(life)
    made = life.gate.calls[first:]
    right_in_the_end(life, True)
    assert notes(life, "k") == [12] and len(made) > 30
    for call, fault in faults(made):
        life = born(kind)
        life.gate.decide = only(call.number, fault)
        well = lived(life)
        try:
            right_in_the_end(life, well)
        except BaseException as error:
            error.add_note(f"{kind}: {fault} at call {call}")
            raise


def right_in_the_end(life: Life, acknowledged: bool) -> None:
    life.settle(hours=3)
    check(life)
    old, new = notes(life, "k"), notes(life, "new")
    assert notes(life, "other") == [10]
    before = set(range(7))
    if acknowledged:
        assert not before & set(old), "something is left under the old key"
    assert before <= set(old) | set(new) | {number for number in before if life.expected.notes[number].doubts}
    assert not before & set(old) or not before & set(new), "some went, some stayed"


# --------------------------------------------------------------------------------------------------------------------
# Interleavings

KEYS = ("k", "new", "third", "fourth", "fifth", "sixth")


def interleave(seed: int, steps: int = 260) -> int:
    """One run of writers, renamers, editors, compactors and clean-ups; some die. Gives how many renames took effect."""
    stepper = Stepper(seed, death=0.01)
    chance = stepper.chance
    kind = chance.choice(["conversation", "general"])
    life = Life({"type": kind, "max_turns": 6, "compaction_prompt": PROMPT}, seed, stepper, ordered=False)
    renamed = 0

    def renames(host: Life) -> None:
        nonlocal renamed
        key, to = chance.sample(KEYS, 2)
        well = rename(host, key, to)  # others run meanwhile, and count too
        renamed += well

    actors: list[tuple[int, Callable[[Life], object]]] = [
        (8, lambda host: host.write(chance.choice(KEYS[:3]), text=FILLER)),
        (2, lambda host: host.write(chance.choice(KEYS[:3]), count=2, ids=True)),
        (4, renames),
        (1, lambda host: host.delete(list(host.expected.notes)[chance.randrange(len(host.expected.notes))])),
        (1, lambda host: host.correct(list(host.expected.notes)[chance.randrange(len(host.expected.notes))])),
        (2, lambda host: host.handle("ingestion", chance.randrange)),
        (2, lambda host: host.handle("compaction", chance.randrange)),
    ]
    weights = [weight for weight, _ in actors]
    for key in KEYS[2:]:
        # Their heads are there, and they are empty.
        life.write(key)
        life.forget(key)
    life.write(count=3)
    life.gate.pause = stepper.pause
    try:
        for step in range(steps):
            stepper.advance(milliseconds=int(chance.random() < 0.3))
            if chance.random() < 0.35 and len(stepper.actors) < 10:
                [(_, body)] = chance.choices(actors, weights)
                host = life.host(chance.choice((0, 0, -300, 200, -60_000)))
                stepper.start(lambda body=body, host=host: body(host))  # type: ignore[misc]
            if stepper.actors:
                stepper.step()
            if step % 25 == 0:
                check(life, settled=False, searched=False)
    finally:
        stepper.stop()
        life.gate.pause = None
    check(life, settled=False)
    life.settle(3)
    check(life)
    return renamed


@pytest.mark.parametrize("quarter", range(4))
def test_no_interleaving_loses_or_doubles_a_note(quarter: int) -> None:
    renamed = sum(interleave(seed) for seed in range(quarter * RUNS // 4, (quarter + 1) * RUNS // 4))
    assert renamed >= RUNS // 4, "hardly anything was renamed: the interleavings prove nothing"


# --------------------------------------------------------------------------------------------------------------------
# Named meetings


def on_a_stepper(**settings: object) -> tuple[Stepper, Life]:
    stepper = Stepper(0)
    life = Life(dict(settings), clock=stepper)
    life.write()
    life.gate.pause = stepper.pause
    return stepper, life


def written_and_renamed(written: bool) -> Life:
    """A write to the new key has read where that lived, and commits after the rename. `written`: the new key had been in use."""
    stepper, life = on_a_stepper()
    with life.gate.open():
        if written:
            life.write("new")
            life.forget("new")
    writer = stepper.start(lambda: life.write("new"))
    stepper.let(writer, "table", "transact")
    assert rename(life)
    stepper.finish(writer)
    return life


@pytest.mark.parametrize("written", [False, True])
def test_a_write_to_the_new_key_that_began_before_lands_under_it(written: bool) -> None:
    life = written_and_renamed(written)
    assert notes(life, "new") == ([0, 2] if written else [0, 1])
    life.settle()
    check(life)


def test_a_write_that_overlooks_that_its_partition_was_closed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = memory_table._true
    monkeypatch.setattr(memory_table, "_true", lambda test, item: test.attribute == "closed" or real(test, item))
    with pytest.raises(AssertionError, match="note2"):
        check(written_and_renamed(True), settled=False, searched=False)


def renamed_onto_a_written_key(written: bool) -> Life:
    """A rename has seen that there is nothing under the new key, then something is written there, then it commits."""
    stepper, life = on_a_stepper()
    with life.gate.open():
        if written:
            life.write("new")
            life.forget("new")
    renamer = stepper.start(lambda: rename(life))
    stepper.let(renamer, "table", "transact")
    life.write("new")
    stepper.finish(renamer)
    return life


@pytest.mark.parametrize("written", [False, True])
def test_a_rename_onto_a_key_that_is_written_to_meanwhile_is_refused(written: bool) -> None:
    life = renamed_onto_a_written_key(written)
    assert (notes(life, "k"), notes(life, "new")) == ([0], [1 + written])
    life.settle()
    check(life)


def test_a_rename_that_does_not_look_at_the_floors_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = renaming._Renaming._closed_shards
    blind = lambda self: [replace(one, when=()) for one in real(self)]  # type: ignore[type-var]  # noqa: E731
    monkeypatch.setattr(renaming._Renaming, "_closed_shards", blind)
    with pytest.raises(AssertionError, match="note2"):
        check(renamed_onto_a_written_key(True), settled=False, searched=False)


def test_of_two_renames_onto_one_key_one_is_refused() -> None:
    stepper, life = on_a_stepper()
    with life.gate.open():
        life.write("other")
    first, second = (stepper.start(lambda key=key: rename(life, key)) for key in ("k", "other"))  # type: ignore[misc]
    stepper.let(first, "table", "transact")
    stepper.finish(second)
    stepper.finish(first)
    assert (notes(life, "k"), notes(life, "other"), notes(life, "new")) == ([0], [], [1])
    life.settle()
    check(life)


def test_a_key_forgotten_while_it_is_renamed_is_not_the_other_key() -> None:
    stepper, life = on_a_stepper()
    forgetter = stepper.start(lambda: deletion.forget_key(life, life.current(), "k", deadline=life.deadline()))
    stepper.let(forgetter, "table", "transact")
    assert rename(life)
    stepper.finish(forgetter)
    assert notes(life, "new") == [0]
    life.settle()
    check(life)


def test_a_key_renamed_while_the_model_summarises_gets_its_summary() -> None:
    life = Life({"max_turns": 4, "compaction_prompt": PROMPT})
    for _ in range(5):
        life.write()
    life.model.during = lambda: rename(life)
    life.work()
    assert [(entry.kind, entry.key) for entry in life.load("new")] == [("summary", "new"), ("entry", "new"), ("entry", "new")]
    assert life.model.calls == 1
    life.settle()
    check(life)


# --------------------------------------------------------------------------------------------------------------------
# Captured runs


class RenamedLife(CapturingLife):
    """A life whose bank captures runs, under more than one key."""

    def captures(self, key: str, note: str) -> bool:
        """A run whose client sends it again, up to three times, under the same key."""
        new = NewRun(key, (NewMessage("user", f"{note} was said", id=f"m-{note}"),), id=f"r-{note}", user_id="ann")
        for _ in range(3):
            if self.process(lambda: runs.capture(self, "acme", self.bank.id, new, deadline=self.deadline()))[0]:
                self.acknowledged[f"m-{note}"] = note
                return True
        self.doubtful.add(note)
        return False

    def under(self, key: str) -> str:
        return " ".join(sorted(entry.content for entry in self.load(key)))


def captured(kind: str) -> RenamedLife:
    life = RenamedLife(kind)
    life.ordered = False
    life.captures("k", "note1")
    life.captures("k", "note2")
    life.quiet()
    life.captures("k", "note3")
    return life


def used(life: RenamedLife) -> bool:
    well = rename(life)
    life.captures("k", "note4")
    life.captures("new", "note5")
    life.quiet()
    life.edit("note2", "note2b")
    life.remove("note1")
    life.quiet()
    return well


def captured_right(life: RenamedLife, well: bool) -> None:
    life.settle(hours=4)
    old, new = life.under("k"), life.under("new")
    for note in {text for text in life.acknowledged.values() if text not in life.doubtful}:
        assert (f"{old} {new}".split()).count(note) + f"{old} {new}".count(f"{note},") == 1, f"{note}: {old} | {new}"
    for note in life.gone - life.doubtful:
        assert note not in f"{old} {new}".replace(",", "").split(), f"{note} is gone: {old} | {new}"
    if well:
        assert "note3" in new and "note3" not in old
        if "m-note4" in life.acknowledged:
            assert "note4" in old
    with life.gate.open():
        for key in ("k", "new"):
            ledger = listing.get(life, life.current(), key)
            assert (ledger.pending, ledger.lease, ledger.owes, ledger.running, ledger.key) == (0, None, False, None, key)
    check(life)


@pytest.mark.parametrize("kind", ["none", "prompt"])
def test_captured_runs_survive_every_fault_of_a_rename_at_every_call(kind: str) -> None:
    life = captured(kind)
    first = len(life.gate.calls)
    assert used(life)
    made = life.gate.calls[first:]
    captured_right(life, True)
    assert len(made) > 40
    for call, fault in faults(made):
        life = captured(kind)
        life.gate.decide = only(call.number, fault)
        well = used(life)
        try:
            captured_right(life, well)
        except BaseException as error:
            error.add_note(f"{kind}: {fault} at call {call}")
            raise


@pytest.mark.parametrize("kind", ["none", "prompt"])
@pytest.mark.parametrize("method", ["read", "query", "transact"])
@pytest.mark.parametrize("skip", range(6))
def test_a_key_renamed_while_it_is_distilled_gets_what_is_made(kind: str, method: str, skip: int) -> None:
    life = captured(kind)
    life.clock.advance(16)
    life.before("table", method, lambda: rename(life), skip=skip)
    life.work()
    life.gate.pause = None
    rename(life)
    captured_right(life, True)
    assert life.under("k") == ""


def test_a_key_renamed_while_the_model_distils_gets_what_is_made() -> None:
    life = captured("prompt")
    life.clock.advance(16)
    life.telling.during = lambda: rename(life)
    life.work()
    captured_right(life, True)
    assert life.under("k") == ""


@pytest.mark.parametrize("key", ["k", "new"])
@pytest.mark.parametrize("entries", [False, True])
@pytest.mark.parametrize("skip", range(2))
def test_a_run_captured_while_its_key_is_renamed_is_counted_where_it_is_found(key: str, entries: bool, skip: int) -> None:
    """Under either key, with entries or runs before it; before the rename's transaction, or before its own."""
    life = RenamedLife("none")
    life.write("k") if entries else life.captures("k", "note1000")
    if skip:
        life.before("table", "transact", lambda: life.captures(key, "note7"))
        rename(life)
    else:
        life.before("table", "transact", lambda: rename(life))
        life.captures(key, "note7")
    life.gate.pause = None
    life.settle(3)
    shown = {one: life.under(one) for one in ("k", "new")}
    assert sum(text.count("note7 ") for text in shown.values()) == 1, shown
    with life.gate.open():
        for one in shown:
            ledger = listing.get(life, life.current(), one)
            assert (ledger.key, ledger.pending) == (one, 0)
            assert homes.find(life.table, life.current(), one)[0] == ledger.partition
        messages.delete(life, life.current(), "m-note7", deadline=life.deadline())
    assert not any("note7 " in life.under(one) for one in shown)
    life.settle(3)
    check(life)

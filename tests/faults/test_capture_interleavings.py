"""What two processes of capture and distillation do to each other, one named meeting a test."""

from __future__ import annotations

import threading

import pytest
from memory_banks import deletion, jobs
from memory_banks.capture import listing, runs
from memory_banks.capture.ledger import LEASE_MS
from memory_banks.capture.runs import NewMessage, NewRun
from memory_banks.distillation import distilling

from tests.doubles.world import World
from tests.faults.capturing import CapturingLife, right_in_the_end
from tests.faults.gate import Death

pytestmark = pytest.mark.faults

MODELS = ["prompt", "insert", "patch"]


def waiting(kind: str) -> CapturingLife:
    """Two runs wait, and their time has come."""
    life = CapturingLife(kind)
    life.run("r1", "note1", "note2")
    life.run("r2", "note3")
    life.clock.advance(16)
    return life


def distil(life: CapturingLife) -> None:
    """What a message of the queue has done, whichever it is."""
    message = {"account": "acme", "bank": life.bank.id, "generation": 1, "partition": life.ledger().partition, "number": 2}
    life.process(lambda: distilling.handle(life, message, deadline=life.clock.now() + 270_000))


@pytest.mark.parametrize("kind", MODELS)
def test_a_message_edited_while_the_model_thinks_is_remembered_as_it_is_now(kind: str) -> None:
    life = waiting(kind)
    life.telling.during = lambda: life.edit("note1", "note1b")
    life.work()
    right_in_the_end(life)


@pytest.mark.parametrize("kind", MODELS)
def test_a_message_deleted_while_the_model_thinks_is_not_remembered(kind: str) -> None:
    life = waiting(kind)
    life.telling.during = lambda: life.remove("note2")
    life.work()
    right_in_the_end(life)
    assert life.told()["note2"] == 0


@pytest.mark.parametrize("kind", MODELS)
def test_a_second_distillation_finds_the_first_at_work_and_does_nothing(kind: str) -> None:
    life = waiting(kind)
    life.telling.during = lambda: distil(life)
    life.work()
    assert life.telling.calls == 1
    right_in_the_end(life)


@pytest.mark.parametrize("kind", MODELS)
def test_one_that_outlived_its_lease_commits_nothing(kind: str) -> None:
    life = waiting(kind)

    def another() -> None:
        life.clock.advance(LEASE_MS / 1000 + 1)
        distil(life)

    life.telling.during = another
    life.work()
    assert life.telling.calls == 2
    right_in_the_end(life)


@pytest.mark.parametrize("kind", MODELS)
def test_a_key_forgotten_while_the_model_thinks_is_forgotten(kind: str) -> None:
    life = waiting(kind)
    life.telling.during = lambda: deletion.forget_key(life, life.current(), "k", deadline=life.deadline())
    life.work()
    life.settle(3)
    assert life.told() == {}
    life.acknowledged.clear()
    life.run("r3", "note9")
    right_in_the_end(life)


@pytest.mark.parametrize("kind", MODELS)
def test_what_arrives_while_the_model_thinks_is_in_the_next_job(kind: str) -> None:
    life = waiting(kind)
    life.telling.during = lambda: life.run("r3", "note4")
    life.work()
    assert life.ledger().pending == 1
    life.quiet()
    assert life.telling.calls == 2
    right_in_the_end(life)
    with life.gate.open():
        found, _ = jobs.listed(life, life.current())
    assert [job["status"] for job in found] == ["completed", "completed"]


def test_twelve_runs_during_one_slow_distillation_are_one_more_job() -> None:
    """Langflow's loss 8: twelve runs during one slow ingestion start twelve jobs."""
    life = waiting("prompt")

    def twelve() -> None:
        for number in range(12):
            life.run(f"during-{number}", f"note{20 + number}")

    life.telling.during = twelve
    life.work()
    life.quiet()
    assert life.telling.calls == 2
    right_in_the_end(life)


def test_a_run_captured_between_the_read_and_the_write_of_another_is_counted_too() -> None:
    life = CapturingLife()
    life.before("table", "transact", lambda: life.run("r2", "note2"))
    life.run("r1", "note1")
    assert life.ledger().runs == 2
    right_in_the_end(life)


@pytest.mark.parametrize("before", [0, 1])
def test_eight_first_runs_at_the_same_time_are_eight(before: int) -> None:
    """Langflow's loss 7: one to six are not counted. Also when they are not the first."""
    world = World()
    lock = threading.Lock()
    together = threading.Barrier(8, timeout=30)
    met = threading.local()
    read = world.table.read

    def first_read_together(keys: list) -> list:
        with lock:
            found = read(keys)
        if any(key.pk.startswith("L#") for key in keys) and not getattr(met, "once", False):
            met.once = True
            together.wait()
        return found

    transact = world.table.transact

    def one_at_a_time(actions: list) -> None:
        with lock:
            transact(actions)

    bank = world.bank(capture={"threshold": 8 + before})
    for number in range(before):
        world.capture(bank, f"before {number}")
    world.table.read, world.table.transact = first_read_together, one_at_a_time
    failed: list[BaseException] = []

    def capture(number: int) -> None:
        try:
            new = NewRun("k", (NewMessage("user", f"text {number}"),), id=f"r{number}")
            runs.capture(world, "acme", bank.id, new, deadline=world.deadline())
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=capture, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    world.table.read, world.table.transact = read, transact
    assert listing.get(world, bank, "k").runs == before + 8
    world.drain()
    assert sorted(world.texts(bank)) == [f"before {n}" for n in range(before)] + [f"text {n}" for n in range(8)]


@pytest.mark.parametrize("skip", range(8))
def test_two_processes_that_follow_one_deletion_double_nothing(skip: int) -> None:
    life = waiting("prompt")
    life.work()
    life.before("table", "transact", lambda: distil(life), skip=skip)
    life.remove("note3")
    life.gate.pause = None
    right_in_the_end(life)


@pytest.mark.parametrize("skip", range(8))
@pytest.mark.parametrize("kind", ["none", "prompt"])
def test_a_message_edited_during_a_regeneration_is_remembered_once(kind: str, skip: int) -> None:
    life = waiting(kind)
    life.work()
    life.regenerate()
    life.before("table", "transact", lambda: life.edit("note1", "note1b"), skip=skip)
    life.work()
    life.gate.pause = None
    if "m-note1" in life.acknowledged and life.acknowledged["m-note1"] == "note1":
        life.edit("note1", "note1b")
    right_in_the_end(life)


@pytest.mark.parametrize("kind", ["none", *MODELS])
def test_a_crash_right_after_the_memories_were_written_doubles_nothing(kind: str) -> None:
    """Langflow's loss 9: a crash between the vector write and the commit leaves orphans, then duplicates."""
    for skip in range(12):
        life = waiting(kind)

        def die() -> None:
            raise Death

        life.before("table", "transact", die, skip=skip)
        life.work()
        life.gate.pause = None
        right_in_the_end(life)


def kept_for_a_day() -> CapturingLife:
    """A run that was only stored, and whose time is over."""
    life = CapturingLife(auto_capture=False)
    life.change(retention_days=1)
    life.run("r1", "note1", "note2")
    life.clock.advance(86_400)
    return life


def captured_items(life: CapturingLife) -> list[str]:
    """What the table has of captured runs."""
    return [item["sk"] for item in life.memory_table.everything() if item["pk"][:2] in {"M#", "Z#"}]


@pytest.mark.parametrize("days", [0, 30])
def test_a_retention_changed_while_the_sweep_removes_captured_messages_keeps_them(days: int) -> None:
    life = kept_for_a_day()
    before = captured_items(life)
    life.before("table", "transact", lambda: life.change(retention_days=days))
    life.sweep()
    assert len(captured_items(life)) == len(before) > 4
    with life.gate.open():
        shown = listing.runs(life, life.current(), "k", limit=10, cursor=None)["runs"]
    assert [message["text"] for message in shown[0]["messages"]] == ["note1 was said", "note2 was said"]


@pytest.mark.parametrize("skip", range(3))
def test_a_sweep_that_dies_at_captured_messages_is_made_up_by_the_next(skip: int) -> None:
    life = kept_for_a_day()

    def die() -> None:
        raise Death

    life.before("table", "transact", die, skip=skip)
    life.sweep()
    life.gate.pause = None
    life.settle(3)
    assert captured_items(life) == []


def test_an_id_given_again_while_the_sweep_removes_what_had_it_stays() -> None:
    life = kept_for_a_day()
    life.before("table", "transact", lambda: life.run("r1", "note1", "note9"))
    life.sweep()
    life.settle(3)
    kept = captured_items(life)
    assert sorted(one for one in kept if one.startswith("N#")) == ["N#000000000002", "N#000000000002#0000", "N#000000000002#0001"]
    assert "I#r1" in kept and {"m-note1", "m-note9"} <= set(kept)

"""Runs are counted, wait, and are distilled: each message once, whatever comes in between."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks import banks, deletion, jobs
from memory_banks.bank import Bank
from memory_banks.capture import listing, messages, mismatch, runs, trigger
from memory_banks.capture.runs import NewMessage, NewRun
from memory_banks.errors import Conflict, NotFound
from memory_banks.ports import Contended
from memory_banks.requests import CreateBank, UpdateBank

from tests.doubles.world import LATEST, World


def bank_of(world: World, **capture: Any) -> Bank:
    return banks.create(world, "acme", CreateBank(name="captured", capture=capture), LATEST)


def pending(world: World, bank: Bank, key: str = "k") -> int:
    return listing.get(world, world.again(bank), key).pending


def jobs_of(world: World, bank: Bank) -> list[Any]:
    return [job for job in jobs.listed(world, bank)[0] if job["kind"] == "distillation"]


def change(world: World, bank: Bank, **capture: Any) -> Bank:
    return banks.update(world, bank.account, bank.id, UpdateBank(capture=capture), LATEST, deadline=world.deadline())


@pytest.fixture
def world() -> World:
    return World()


def test_three_quick_turns_are_one_job_after_the_quiet(world: World) -> None:
    bank = bank_of(world)
    for turn in ("one", "two", "three"):
        world.capture(bank, turn)
        world.clock.advance(2)
    assert pending(world, bank) == 3
    assert world.texts(bank) == []
    assert len(world.distillation.delayed) == 3
    world.quiet()
    assert world.texts(bank) == ["one", "two", "three"]
    assert pending(world, bank) == 0
    [job] = jobs_of(world, bank)
    assert (job["status"], job["current"], job["key"]) == ("completed", 3, "k")


def test_an_earlier_turns_message_finds_a_newer_one_and_does_nothing(world: World) -> None:
    bank = bank_of(world)
    world.capture(bank, "one")
    [early] = world.distillation.delayed
    world.clock.advance(10)
    world.capture(bank, "two")
    world.distillation.delayed.remove(early)
    world.distillation.sent.append(early)
    world.clock.advance(5)
    world.drain()
    assert world.texts(bank) == []
    world.quiet(10)
    assert world.texts(bank) == ["one", "two"]


def test_a_threshold_does_not_wait(world: World) -> None:
    bank = bank_of(world, threshold=3)
    for turn in ("one", "two"):
        world.capture(bank, turn)
    world.drain()
    assert world.texts(bank) == []
    world.capture(bank, "three")
    world.drain()
    assert world.texts(bank) == ["one", "two", "three"]


def test_nobody_waits_longer_than_the_longest_wait(world: World) -> None:
    bank = bank_of(world, idle_seconds=60, max_wait_seconds=100)
    for number in range(4):
        world.capture(bank, f"turn {number}")
        world.quiet(30)
    assert len(world.texts(bank)) >= 3


def test_the_same_run_is_counted_once(world: World) -> None:
    bank = bank_of(world)
    first = world.capture(bank, "one", id="run-1")
    again = world.capture(bank, "one", id="run-1")
    assert (again.existing, again.number, again.messages) == (True, first.number, first.messages)
    assert pending(world, bank) == 1
    with pytest.raises(Conflict, match="other content"):
        world.capture(bank, "two", id="run-1")


def test_a_message_that_came_with_an_earlier_run_is_not_captured_again(world: World) -> None:
    bank = bank_of(world)

    def run(number: int, *ids: str) -> None:
        new = tuple(NewMessage("user", f"text {one}", id=one) for one in ids)
        runs.capture(world, bank.account, bank.id, NewRun("k", new, id=f"run-{number}"), deadline=world.deadline())

    run(1, "a", "b")
    run(2, "a", "b", "c")
    world.quiet()
    assert world.texts(bank) == ["text a", "text b", "text c"]
    with pytest.raises(Conflict, match="PATCH"):
        runs.capture(
            world, bank.account, bank.id, NewRun("k", (NewMessage("user", "other", id="a"),), id="run-3"), deadline=world.deadline()
        )


def test_late_and_backdated_messages_are_distilled(world: World) -> None:
    """Langflow's loss 2: a message older than the cursor is never ingested."""
    bank = bank_of(world)
    world.capture(bank, "now")
    world.quiet()
    old = NewMessage("user", "said a year ago", occurred_at=world.clock.now() - 365 * 86_400_000)
    runs.capture(world, bank.account, bank.id, NewRun("k", (old,)), deadline=world.deadline())
    world.quiet()
    assert world.texts(bank) == ["now", "said a year ago"]


def test_deleting_the_last_processed_message_ingests_nothing_again(world: World) -> None:
    """Langflow's loss 1: the cursor message deleted, the whole session is embedded again."""
    bank = bank_of(world)
    world.capture(bank, "one")
    last = world.capture(bank, "two")
    world.quiet()
    messages.delete(world, bank, last.messages[0], deadline=world.deadline())
    world.capture(bank, "three")
    world.quiet()
    assert world.texts(bank) == ["one", "three"]


def test_regenerating_a_healthy_key_doubles_nothing(world: World) -> None:
    """Langflow's loss 3."""
    bank = bank_of(world)
    for turn in ("one", "two", "three"):
        world.capture(bank, turn)
    world.quiet()
    job = trigger.regenerate(world, bank, "k", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == ["one", "two", "three"]
    assert jobs.get(world, bank, job["sk"])["status"] == "completed"
    assert listing.get(world, bank, "k").processed == 3


def test_blank_messages_do_not_stay_pending(world: World) -> None:
    """Langflow's loss 5."""
    bank = bank_of(world)
    world.capture(bank, "  ", "\n")
    world.quiet()
    assert pending(world, bank) == 0
    assert world.texts(bank) == []
    world.capture(bank, "", "something")
    world.quiet()
    assert world.texts(bank) == ["something"]


def test_editing_and_deleting_a_message_carries_through(world: World) -> None:
    """Langflow's loss 6."""
    bank = bank_of(world)
    first = world.capture(bank, "I live in Porto", "nice")
    world.quiet()
    messages.edit(world, bank, first.messages[0], "I live in Lisbon", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == ["I live in Lisbon", "nice"]
    messages.delete(world, bank, first.messages[1], deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == ["I live in Lisbon"]
    with pytest.raises(NotFound):
        messages.edit(world, bank, first.messages[1], "gone", deadline=world.deadline())
    assert listing.get(world, bank, "k").owes is False


def test_a_pending_message_is_distilled_as_it_was_edited(world: World) -> None:
    bank = bank_of(world)
    first = world.capture(bank, "before", "deleted")
    messages.edit(world, bank, first.messages[0], "after", deadline=world.deadline())
    messages.delete(world, bank, first.messages[1], deadline=world.deadline())
    world.quiet()
    assert world.texts(bank) == ["after"]


def test_stored_runs_count_again_at_once_when_capture_is_on_again(world: World) -> None:
    bank = bank_of(world, auto_capture=False)
    world.capture(bank, "while off")
    world.quiet(3_600)
    assert (pending(world, bank), world.texts(bank)) == (0, [])
    assert jobs_of(world, bank) == []
    assert listing.runs(world, bank, "k", limit=10, cursor=None)["runs"][0]["state"] == "stored"
    change(world, bank, auto_capture=True)
    world.drain()
    assert world.texts(bank) == ["while off"]


def test_a_flush_takes_stored_runs_too(world: World) -> None:
    bank = bank_of(world, auto_capture=False)
    world.capture(bank, "while off")
    job = trigger.flush(world, bank, "k", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == ["while off"]
    assert jobs.get(world, bank, job["sk"])["status"] == "completed"


def test_a_flush_takes_over_the_waiting_job(world: World) -> None:
    bank = bank_of(world)
    waiting = world.capture(bank, "one").job
    assert trigger.flush(world, bank, "k", deadline=world.deadline())["sk"] == waiting
    world.drain()
    assert world.texts(bank) == ["one"]
    world.quiet()
    assert len(jobs_of(world, bank)) == 1


def test_flushing_a_key_without_runs_says_so(world: World) -> None:
    bank = bank_of(world)
    job = trigger.flush(world, bank, "nobody", deadline=world.deadline())
    assert jobs.get(world, bank, job["sk"])["status"] == "completed"


def test_a_cancelled_job_leaves_its_runs_for_the_next(world: World) -> None:
    bank = bank_of(world)
    waiting = world.capture(bank, "one").job
    assert waiting
    trigger.cancelled(world, bank, jobs.cancel(world, bank, waiting))
    world.quiet()
    assert (world.texts(bank), pending(world, bank)) == ([], 1)
    after = world.capture(bank, "two").job
    assert after not in {None, waiting}
    world.quiet()
    assert world.texts(bank) == ["one", "two"]


def test_a_lost_message_is_made_up_by_the_sweep(world: World) -> None:
    bank = bank_of(world)
    world.capture(bank, "one")
    world.distillation.delayed.clear()
    world.settle(1)
    assert world.texts(bank) == ["one"]
    swept = world.sweep()
    assert (swept.ledgers, swept.left) == (0, 0)


def test_a_wait_beyond_what_a_queue_can_hold_is_the_sweeps(world: World) -> None:
    bank = bank_of(world, idle_seconds=7_200, max_wait_seconds=100_000)
    world.capture(bank, "one")
    assert (world.distillation.sent, world.distillation.delayed) == ([], [])
    world.settle(1)
    assert world.texts(bank) == []
    world.settle(2)
    assert world.texts(bank) == ["one"]


def test_forgetting_a_key_forgets_its_runs_and_jobs(world: World) -> None:
    bank = bank_of(world)
    world.capture(bank, "one", id="run-1")
    world.quiet()
    world.capture(bank, "two", id="run-2")
    deletion.forget_key(world, bank, "k", deadline=world.deadline())
    assert world.texts(bank) == []
    assert pending(world, bank) == 0
    assert listing.runs(world, bank, "k", limit=10, cursor=None)["runs"] == []
    world.settle(2)
    assert world.texts(bank) == []
    assert jobs_of(world, bank) == []
    kept = [item for item in world.table.everything() if item["pk"].startswith(f"M#{bank.id}")]
    assert kept == []
    world.capture(bank, "after", id="run-1")
    world.quiet()
    assert world.texts(bank) == ["after"]


def test_a_deleted_source_takes_runs_along(world: World) -> None:
    bank = bank_of(world)
    world.capture(bank, "one")
    deletion.delete_source(world, bank, deadline=world.deadline())
    world.quiet()
    bank = world.again(bank)
    assert listing.runs(world, bank, "k", limit=10, cursor=None)["runs"] == []
    world.settle(2)
    left = [item for item in world.table.everything() if item["pk"][:2] in {"L#", "M#", "Z#"}]
    assert left == []


def test_past_the_retention_a_run_is_shown_and_distilled_no_more(world: World) -> None:
    bank = banks.create(world, "acme", CreateBank(name="short", retention_days=1, capture={"auto_capture": False}), LATEST)
    world.capture(bank, "old")
    world.clock.advance(86_400)
    assert listing.runs(world, bank, "k", limit=10, cursor=None)["runs"] == []
    trigger.flush(world, bank, "k", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == []
    world.settle(3)
    assert [item for item in world.table.everything() if item["pk"].startswith("M#")] == []


def test_another_flows_run_is_refused(world: World) -> None:
    bank = bank_of(world, flow_id="support")
    world.capture(bank, "one", flow_id="support")
    with pytest.raises(Conflict, match="support") as refused:
        world.capture(bank, "two", flow_id="sales")
    assert refused.value.code == "other_flow"


def test_a_bank_without_capture_refuses_runs(world: World) -> None:
    with pytest.raises(Conflict) as refused:
        world.capture(world.bank(), "one")
    assert refused.value.code == "capture_off"


def test_a_banks_name_is_its_own_while_it_captures(world: World) -> None:
    bank = bank_of(world)
    with pytest.raises(Conflict) as refused:
        bank_of(world)
    assert refused.value.code == "name_taken"
    plain = banks.create(world, "acme", CreateBank(name="plain"), LATEST)
    with pytest.raises(Conflict):
        banks.update(world, "acme", bank.id, UpdateBank(name="plain"), LATEST, deadline=world.deadline())
    banks.update(world, "acme", bank.id, UpdateBank(name="renamed"), LATEST, deadline=world.deadline())
    second = bank_of(world)
    deletion.delete_bank(world, second, deadline=world.deadline())
    assert bank_of(world).name == "captured"
    assert plain.capture is None
    with pytest.raises(Conflict, match="known by its name"):
        banks.create(world, "acme", CreateBank(name="captured"), LATEST)
    with pytest.raises(Conflict):
        banks.update(world, "acme", plain.id, UpdateBank(name="captured"), LATEST, deadline=world.deadline())
    banks.create(world, "acme", CreateBank(name="plain"), LATEST)
    banks.create(world, "another", CreateBank(name="captured", capture={}), LATEST)


def test_keys_show_what_waits(world: World) -> None:
    from memory_banks import partitions

    bank = bank_of(world)
    world.capture(bank, "one")
    [row], _ = partitions.keys(world, world.again(bank), limit=10, cursor=None)
    assert (row["key"], row["entries"], row["pending_runs"], row["last_sync_at"]) == ("k", 0, 1, None)
    world.quiet()
    [row], _ = partitions.keys(world, world.again(bank), limit=10, cursor=None)
    assert (row["entries"], row["pending_runs"], row["processed_messages"]) == (1, 0, 1)
    assert row["last_sync_at"] is not None


def test_a_mismatch_is_what_was_deleted_by_hand(world: World) -> None:
    bank = bank_of(world)
    world.capture(bank, "one", "two")
    world.quiet()
    assert mismatch.check(world, bank, "k")["mismatch"] is False
    deletion.delete_entry(world, bank, world.load(bank)[0].id, deadline=world.deadline())
    found = mismatch.check(world, bank, "k")
    assert (found["messages"], found["entries"], found["missing"], found["mismatch"]) == (2, 1, 1, True)
    trigger.regenerate(world, bank, "k", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == ["one", "two"]
    assert mismatch.check(world, bank, "k")["mismatch"] is False


def test_many_messages_go_in_several_batches_each_once(world: World) -> None:
    bank = bank_of(world, auto_capture=False)
    for number in range(120):
        world.capture(bank, f"m{number}a", f"m{number}b")
    trigger.flush(world, bank, "k", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == [f"m{number}{half}" for number in range(120) for half in "ab"]
    [job] = jobs_of(world, bank)
    assert (job["status"], job["current"]) == ("completed", 240)


def test_banks_of_one_name_that_are_made_at_once_are_made(world: World) -> None:
    transact, refused = world.table.transact, []

    def busy(actions: Any) -> None:
        if not refused:
            refused.append(True)
            raise Contended("another bank of the name is being made")
        transact(actions)

    world.table.transact = busy
    banks.create(world, "acme", CreateBank(name="plain"), LATEST)
    assert refused and len(banks.find(world, "acme", "plain", 10)) == 1

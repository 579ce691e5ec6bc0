"""What a distillation does when a model, a message or its own time fails it."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks import banks, jobs
from memory_banks.bank import Bank
from memory_banks.capture import listing, messages, trigger
from memory_banks.distillation import distilling
from memory_banks.errors import Conflict
from memory_banks.ports import ModelError, ModelUnavailable
from memory_banks.requests import CreateBank, UpdateBank

from tests.doubles.scripted_chat import Call, ScriptedChat
from tests.doubles.world import LATEST, World


def bank_of(world: World, **capture: Any) -> Bank:
    wanted = {"distillation": "prompt"} | capture
    return banks.create(world, "acme", CreateBank(name="captured", capture=wanted), LATEST)


def jobs_of(world: World, bank: Bank) -> list[Any]:
    return [job for job in jobs.listed(world, bank)[0] if job["kind"] == "distillation"]


def hours(world: World, count: int = 1) -> None:
    """The queue's delayed messages and the sweep, for some hours."""
    for _ in range(count):
        for _ in range(4):
            world.quiet(900)
        world.sweep()
        world.drain()


def test_a_model_that_can_t_be_reached_is_a_pause_of_the_same_job() -> None:
    world = World(chat=ScriptedChat(ModelUnavailable("throttled"), ModelUnavailable("throttled"), "They met in Porto."))
    bank = bank_of(world)
    world.capture(bank, "We met in Porto", "In 2019")
    world.quiet()
    [job] = jobs_of(world, bank)
    assert (job["status"], job["error"]) == ("queued", "throttled")
    assert listing.get(world, bank, "k").pending == 1
    world.quiet(31)
    world.quiet(62)
    assert world.texts(bank) == ["They met in Porto."]
    [job] = jobs_of(world, bank)
    assert (job["status"], job["current"]) == ("completed", 2)


def test_a_run_that_comes_during_a_pause_does_not_ask_the_model_again() -> None:
    chat = ScriptedChat(ModelUnavailable("throttled"), "All of it.")
    world = World(chat=chat)
    bank = bank_of(world, threshold=1)
    world.capture(bank, "one")
    world.drain()
    world.capture(bank, "two")
    world.drain()
    assert len(chat.calls) == 1
    hours(world)
    assert len(chat.calls) == 2
    assert world.texts(bank) == ["All of it."]


def test_a_flush_does_not_wait_for_the_pause() -> None:
    world = World(chat=ScriptedChat(ModelUnavailable("throttled"), "All of it."))
    bank = bank_of(world)
    world.capture(bank, "one")
    world.quiet()
    trigger.flush(world, bank, "k", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == ["All of it."]


def test_an_outage_of_hours_fails_jobs_and_loses_nothing() -> None:
    outage = [ModelUnavailable("down")] * 20
    world = World(chat=ScriptedChat(*outage, "All of it."))
    bank = bank_of(world)
    world.capture(bank, "one")
    hours(world, 8)
    first = jobs_of(world, bank)[-1]
    assert (first["status"], first["error"]) == ("failed", "down")
    assert world.metrics.counted["DistillationsFailed"] >= 1
    assert listing.get(world, bank, "k").pending == 1
    hours(world, 48)
    assert world.texts(bank) == ["All of it."]
    assert jobs_of(world, bank)[0]["status"] == "completed"


def unless(word: str) -> Any:
    """A model that fails on every text with a word in it."""

    def answer(call: Call) -> str:
        if word in call.messages[0].content:
            raise ModelError(f"can't read {word}")
        return "Remembered."

    return answer


def test_what_was_set_aside_can_be_tried_again() -> None:
    """Langflow's loss 10: one poison message blocks its session for ever."""
    chat = ScriptedChat(unless("poison"))
    world = World(chat=chat)
    bank = bank_of(world)
    run = world.capture(bank, "fine", "poison", "also fine")
    world.quiet()
    [job] = jobs_of(world, bank)
    assert job["status"] == "completed"
    assert jobs.shown(job)["set_aside"] == [{"message_id": run.messages[1], "reason": "can't read poison"}]
    page = listing.runs(world, bank, "k", limit=10, cursor=None)
    assert [one["state"] for one in page["runs"][0]["messages"]] == ["processed", "set_aside", "processed"]
    assert listing.get(world, bank, "k").pending == 0
    before = len(world.texts(bank))
    chat._answers = ["The poison was an apple."]
    again = messages.retry(world, bank, job["sk"], deadline=world.deadline())
    world.drain()
    assert world.texts(bank)[before:] == ["The poison was an apple."]
    assert jobs.get(world, bank, again["sk"])["status"] == "completed"
    page = listing.runs(world, bank, "k", limit=10, cursor=None)
    assert {one["state"] for one in page["runs"][0]["messages"]} == {"processed"}
    with pytest.raises(Conflict):
        messages.retry(world, bank, again["sk"], deadline=world.deadline())


def test_a_job_whose_every_message_fails_has_failed() -> None:
    world = World(chat=ScriptedChat(ModelError("no such model")))
    bank = bank_of(world)
    world.capture(bank, "one", "two")
    world.quiet()
    [job] = jobs_of(world, bank)
    assert job["status"] == "failed"
    assert len(job["set_aside"]) == 2 and "no such model" in job["error"]


def test_an_edited_message_that_was_set_aside_is_tried_again() -> None:
    chat = ScriptedChat(unless("poison"))
    world = World(chat=chat)
    bank = bank_of(world)
    run = world.capture(bank, "poison")
    world.quiet()
    assert world.texts(bank) == []
    messages.edit(world, bank, run.messages[0], "an apple", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == ["Remembered."]


def test_long_work_goes_on_in_another_message_of_the_same_job() -> None:
    world = World()
    bank = bank_of(world, distillation="none", auto_capture=False)
    for number in range(120):
        world.capture(bank, f"m{number}")
    trigger.flush(world, bank, "k", deadline=world.deadline())
    handled = 0
    while world.distillation.sent:
        [message] = world.distillation.take()
        handled += 1
        # Time for one batch.
        clock, world.clock = world.clock, _Ticking(world.clock, 1_000)
        distilling.handle(world, message, deadline=world.clock.now() + distilling.MARGIN + 8_000)
        world.clock = clock
        world.clock.advance(21)
        assert handled < 20
    assert handled > 1
    assert world.texts(bank) == [f"m{number}" for number in range(120)]
    [job] = jobs_of(world, bank)
    assert (job["status"], job["current"]) == ("completed", 120)


class _Ticking:
    """A clock that goes on with every look at it."""

    def __init__(self, clock: Any, step: int) -> None:
        self._clock, self._step, self._looks = clock, step, 0

    def now(self) -> int:
        self._looks += 1
        return int(self._clock.now()) + self._looks * self._step

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


def test_a_job_cancelled_at_work_stops_before_its_commit() -> None:
    world = World()
    bank = bank_of(world)

    def answer(call: Call) -> str:
        [job] = jobs_of(world, bank)
        trigger.cancelled(world, bank, jobs.cancel(world, bank, job["sk"]))
        return "Too late."

    world.chat = ScriptedChat(answer, "In time.")
    world.capture(bank, "one")
    world.quiet()
    assert world.texts(bank) == []
    assert listing.get(world, bank, "k").pending == 1
    world.capture(bank, "two")
    world.quiet()
    assert world.texts(bank) == ["In time."]


def test_work_that_never_ends_is_left_to_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distilling, "HOPS", 3)
    world = World()
    bank = bank_of(world, distillation="none")
    world.capture(bank, "one")
    trigger.flush(world, bank, "k", deadline=world.deadline())
    handled = 0
    while world.distillation.sent:
        for message in world.distillation.take():
            handled += 1
            # No time for a single batch.
            distilling.handle(world, message, deadline=world.clock.now())
    assert handled == 4
    assert world.metrics.counted["DistillationChainsCut"] == 1
    world.settle(1)
    assert world.texts(bank) == ["one"]


def test_off_means_off_also_for_a_job_that_made_a_pause() -> None:
    world = World(chat=ScriptedChat(ModelUnavailable("throttled"), lambda call: f"Told {call.messages[0].content.count('said')}."))
    bank = bank_of(world)
    world.capture(bank, "said while on")
    world.quiet()
    wanted = UpdateBank(capture={"auto_capture": False})
    banks.update(world, bank.account, bank.id, wanted, LATEST, deadline=world.deadline())
    world.capture(bank, "said while off", "said while off, too")
    hours(world)
    assert world.texts(bank) == ["Told 1."]
    assert listing.get(world, bank, "k").held == 1
    trigger.flush(world, world.again(bank), "k", deadline=world.deadline())
    world.drain()
    assert world.texts(bank) == ["Told 1.", "Told 2."]

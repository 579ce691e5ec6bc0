"""From captured runs to entries and documents, with what plans and writes them working together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from memory_banks import banks, jobs
from memory_banks.bank import Bank
from memory_banks.ports import TableUnavailable
from memory_banks.requests import CreateBank
from memory_banks.store.store import Store

from tests.doubles.scripted_chat import ScriptedChat
from tests.doubles.world import LATEST, World

NOTHING = json.dumps({"plan": "", "changes": [], "new": []})


def bank_of(world: World, *answers: Any, **capture: Any) -> Bank:
    world.chat = ScriptedChat(*[one if isinstance(one, str) or callable(one) else json.dumps(one) for one in answers])
    return banks.create(world, "acme", CreateBank(name="captured", capture=capture), LATEST)


def job_of(world: World, bank: Bank) -> Any:
    [newest, *_] = jobs.listed(world, bank)[0]
    return newest


def values(world: World, *prefix: str) -> list[Any]:
    return [one.document.value for one in Store(world, "acme").search(prefix, limit=50)]


def test_a_prompt_makes_one_entry_of_a_conversation(world: World) -> None:
    bank = bank_of(world, "- Bob lives in Porto", distillation="prompt", instructions="durable")
    for text in ("I'm Bob", "from Porto", "what's the weather?"):
        world.capture(bank, text)
    world.quiet()
    assert world.texts(bank) == ["- Bob lives in Porto"]
    assert (job_of(world, bank)["status"], len(world.chat.calls)) == ("completed", 1)


def test_the_kill_phrase_writes_nothing_goes_on_and_is_told_in_the_job(world: World) -> None:
    bank = bank_of(world, "NO_INGEST.", "- Bob likes tea", distillation="prompt")
    world.capture(bank, "hello")
    world.quiet()
    assert world.texts(bank) == []
    job = job_of(world, bank)
    assert job["status"] == "completed" and "NO_INGEST" in job["note"]
    world.capture(bank, "tea, please")
    world.quiet()
    assert world.texts(bank) == ["- Bob likes tea"]
    assert "hello" not in world.chat.calls[1].text, "the cursor went on"


def test_a_poison_message_is_set_aside_and_the_rest_is_distilled(world: World) -> None:
    def answer(call: Any) -> str:
        return " " if "poison" in call.messages[0].content else f"- {call.messages[0].content.count('<entry-')} facts"

    bank = bank_of(world, answer, distillation="prompt")
    for text in ("one", "two", "poison", "four"):
        world.capture(bank, text)
    world.quiet()
    assert sum(int(text.split()[1]) for text in world.texts(bank)) == 3
    job = job_of(world, bank)
    [(_, reason)] = job["set_aside"]
    assert job["status"] == "completed" and "blank" in reason


def test_schemas_keep_a_profile_up_to_date(world: World) -> None:
    bank = bank_of(
        world,
        {"value": {"user_name": "Bob"}},
        NOTHING,
        {"plan": "", "operations": [{"op": "replace", "path": "/user_name", "value": "Robert"}]},
        {"new": [{"context": "always", "content": "climbs"}]},
        distillation="schemas",
    )
    world.capture(bank, "My name is Bob")
    world.quiet()
    assert values(world, "k", "User") == [{"user_name": "Bob"}]
    world.capture(bank, "call me Robert; I climb")
    world.quiet()
    assert values(world, "k", "User") == [{"user_name": "Robert"}]
    assert values(world, "k", "Note") == [{"context": "always", "content": "climbs"}]
    assert world.texts(bank) == []


def test_dying_between_two_documents_writes_each_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = [{"context": "always", "content": f"fact {number}"} for number in range(3)]
    bank = bank_of(world, {"value": {"interests": ["go"]}}, {"new": notes}, distillation="schemas")
    world.capture(bank, "a lot")
    put, alive = Store.put, iter([True, True, False])

    def dying(self: Store, *args: Any, **rest: Any) -> Any:
        if not next(alive, True):
            raise TableUnavailable
        return put(self, *args, **rest)

    monkeypatch.setattr(Store, "put", dying)
    world.quiet()
    for _ in range(4):
        world.quiet(3_600)
        world.sweep()
        world.drain()
    assert values(world, "k", "User") == [{"interests": ["go"]}]
    assert sorted(one["content"] for one in values(world, "k", "Note")) == ["fact 0", "fact 1", "fact 2"]
    assert len(world.chat.calls) == 2, "it was planned once"
    assert job_of(world, bank)["status"] == "completed"


def test_a_person_who_changes_the_document_between_plan_and_write_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = {"plan": "", "operations": [{"op": "add", "path": "/interests/-", "value": "jazz"}]}
    bank = bank_of(world, append, NOTHING, distillation="schemas")
    store = Store(world, "acme")
    store.put(("k", "User"), "User", {"interests": ["go"], "shoe_size": 43}, deadline=world.deadline())
    put, once = Store.put, iter([True])

    def met(self: Store, *args: Any, **rest: Any) -> Any:
        if next(once, False):
            put(self, ("k", "User"), "User", {"interests": ["go", "tea"], "shoe_size": 44}, deadline=world.deadline())
        return put(self, *args, **rest)

    monkeypatch.setattr(Store, "put", met)
    world.capture(bank, "I like jazz")
    world.quiet()
    assert values(world, "k", "User") == [{"interests": ["go", "tea", "jazz"], "shoe_size": 44}]


def test_what_no_longer_fits_is_planned_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    filled = {"value": {"user_name": "Bob"}}
    again = {"plan": "", "operations": [{"op": "add", "path": "/user_name", "value": "Bob"}]}
    bank = bank_of(world, filled, NOTHING, again, NOTHING, distillation="schemas")
    put, once = Store.put, iter([True])

    def met(self: Store, *args: Any, **rest: Any) -> Any:
        if next(once, False):
            put(self, ("k", "User"), "User", {"age": 41}, deadline=world.deadline())
        return put(self, *args, **rest)

    monkeypatch.setattr(Store, "put", met)
    world.capture(bank, "My name is Bob")
    world.quiet()
    assert values(world, "k", "User") == [{"age": 41, "user_name": "Bob"}]
    assert (len(world.chat.calls), job_of(world, bank)["status"]) == (4, "completed")


def test_a_bank_s_own_model_distils(world: World) -> None:
    world.others["openai/small"] = ScriptedChat("- by the small one", model="openai/small")
    bank = bank_of(world, "- by the service's", distillation="prompt", model="openai/small")
    world.capture(bank, "one")
    world.quiet()
    assert world.texts(bank) == ["- by the small one"]
    assert world.chat.calls == []

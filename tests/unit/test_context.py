"""Context for a prompt: summary, relevant and newest entries inside a budget."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks import tokens
from memory_banks.bank import DAY, Bank
from memory_banks.context import context

from tests.doubles.world import World


@pytest.fixture
def world() -> World:
    return World()


def give(world: World, bank: Bank, query: str | None = None, max_tokens: int = 1_000, key: str = "k") -> dict[str, Any]:
    given = context(world, world.again(bank), key, query, max_tokens)
    assert given["tokens"] == tokens.count(given["text"]) <= max_tokens
    return given


def said(given: dict[str, Any], part: str) -> list[str]:
    return [entry["content"] for entry in given["parts"][part]]


def talk(world: World, count: int = 60, **settings: Any) -> Bank:
    bank = world.bank(**settings)
    for n in range(count):
        world.write(
            bank, "the dog is called Rex" if n == 3 else f"turn number {n} about nothing at all", speaker="user" if n % 2 else "Ann"
        )
    world.drain()
    return bank


def test_a_key_that_was_never_written_gives_nothing(world: World) -> None:
    given = give(world, world.bank(), "anything")
    assert given == {"text": "", "messages": [], "parts": {"summary": None, "relevant": [], "recent": []}, "tokens": 0}


def test_the_newest_turns_in_order_and_without_a_gap(world: World) -> None:
    given = give(world, talk(world), max_tokens=150)
    recent = said(given, "recent")
    assert recent == [f"turn number {n} about nothing at all" for n in range(60 - len(recent), 60)]
    assert len(recent) > 3
    assert given["parts"]["relevant"] == []


def test_what_is_relevant_comes_back_from_far_away(world: World) -> None:
    given = give(world, talk(world), "what is the dog's name?", max_tokens=150)
    assert "the dog is called Rex" in said(given, "relevant")
    assert said(given, "recent")[-1] == "turn number 59 about nothing at all"
    assert "the dog is called Rex" in given["text"]
    assert "the dog is called Rex" in given["messages"][0]["content"]


def test_nothing_is_said_twice(world: World) -> None:
    bank = world.bank()
    world.write(bank, "apple pie", "apple pie", "plum cake", "the end")
    world.drain()
    given = give(world, bank, "apple pie plum cake the end")
    everything = said(given, "relevant") + said(given, "recent")
    ids = [entry["id"] for part in ("relevant", "recent") for entry in given["parts"][part]]
    assert len(ids) == len(set(ids))
    assert everything == ["apple pie", "apple pie", "plum cake", "the end"]  # a thread keeps what was said twice


def test_a_memory_written_twice_is_relevant_once(world: World) -> None:
    bank = world.bank(type="general")
    world.write(bank, "the code is 4711", "the code is 4711", *(f"note {n}" for n in range(50)))
    world.drain()
    given = give(world, bank, "what is the code", max_tokens=60)
    assert said(given, "relevant").count("the code is 4711") == 1


@pytest.mark.parametrize("max_tokens", [1, 5, 17, 40, 100, 1_000, 20_000])
def test_the_budget_holds(world: World, max_tokens: int) -> None:
    bank = world.bank()
    world.write(bank, "short", "é" * 500, "long " * 400, "🎉" * 100, "the end")
    world.drain()
    give(world, bank, "long short end", max_tokens=max_tokens)


def test_what_does_not_fit_is_left_out_whole(world: World) -> None:
    bank = world.bank()
    world.write(bank, "a short fact about zebras", "zebra " * 2_000, "the end")
    world.drain()
    given = give(world, bank, "zebra", max_tokens=80)
    assert said(given, "relevant") == ["a short fact about zebras"]
    assert said(given, "recent") == ["the end"]


def test_the_summary_comes_first(world: World) -> None:
    bank = talk(world, 20, max_turns=8, compaction_prompt="Summarise.")
    given = give(world, bank, "anything")
    assert given["parts"]["summary"]["kind"] == "summary"
    content = given["parts"]["summary"]["content"]
    assert given["text"].startswith(f"Summary of earlier memories:\n{content}\n\n")
    assert given["messages"][0] == {"role": "system", "content": given["text"].split("\n\nMost recent")[0]}
    assert given["parts"]["summary"]["id"] not in {entry["id"] for entry in given["parts"]["recent"] + given["parts"]["relevant"]}


def test_the_summary_is_found_behind_many_turns(world: World) -> None:
    bank = talk(world, 20, max_turns=8, compaction_prompt="Summarise.")
    from memory_banks import banks
    from memory_banks.requests import UpdateBank

    banks.update(world, bank.account, bank.id, UpdateBank(max_turns=0), "2026-10-21", deadline=world.deadline())
    for _ in range(2):
        world.write(bank, *(f"later turn {n}" for n in range(100)))
    world.drain()
    given = give(world, bank, None, max_tokens=300)
    assert given["parts"]["summary"]["kind"] == "summary"


def test_messages_have_chat_roles_and_name_other_speakers(world: World) -> None:
    bank = world.bank()
    for speaker, text in (("system", "Be kind."), ("user", "Hi."), ("assistant", "Hello!"), ("Ann", "Me too.")):
        world.write(bank, text, speaker=speaker)
    assert give(world, bank)["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Ann: Me too."},
    ]


def test_other_keys_stay_out(world: World) -> None:
    bank = world.bank()
    world.write(bank, "apple of a", key="a")
    world.write(bank, "apple of b", key="b")
    world.drain()
    given = give(world, bank, "apple", key="a")
    assert "apple of b" not in given["text"]
    assert said(given, "recent") == ["apple of a"]


def test_what_is_past_the_retention_stays_out(world: World) -> None:
    bank = talk(world, 10, retention_days=1)
    world.clock.advance(2 * DAY / 1000)
    assert give(world, bank, "dog")["text"] == ""

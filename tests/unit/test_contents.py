"""Contents against what Load gives, whatever was done before."""

from __future__ import annotations

import random

import pytest
from memory_banks import contents, corrections, deletion
from memory_banks.bank import Bank
from memory_banks.contents import Wanted

from tests.doubles.world import World

KEYS = ("a", "b", "c")


def everything(world: World, bank: Bank, order: str, limit: int) -> tuple[list[str], set[int]]:
    """The entry ids of all pages, and the totals they told."""
    found: list[str] = []
    totals: set[int] = set()
    page = 1
    while True:
        wanted = Wanted(page=page, limit=limit, order=order)  # type: ignore[arg-type]
        listed = contents.listed(world, world.again(bank), wanted, deadline=world.deadline())
        found += [row["entry_id"] for row in listed.contents]
        totals.add(listed.total)
        if page * limit >= listed.total:
            return found, totals
        page += 1


@pytest.mark.parametrize("seed", range(12))
def test_the_list_is_what_all_keys_load_whatever_was_done(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_BATCH", 7)
    chance = random.Random(seed)
    world = World(chance=random.Random(seed))
    kind = chance.choice(["conversation", "general"])
    bank = world.bank(type=kind, max_turns=6, compaction_prompt="p", retention_days=2)
    for number in range(60):
        key = chance.choice(KEYS)
        living = world.load(bank, key, limit=1000)
        match chance.randrange(10):
            case 0 if living:
                deletion.delete_entry(world, world.again(bank), chance.choice(living).id, deadline=world.deadline())
            case 1 if living:
                corrected = chance.choice(living).id
                corrections.correct(world, world.again(bank), corrected, content=f"new {number}", deadline=world.deadline())
            case 2 if number % 3 == 0:
                deletion.forget_key(world, world.again(bank), key, deadline=world.deadline())
            case 3:
                world.drain()
            case 4:
                world.clock.advance(chance.choice([0.001, 60, 4_000, 40_000]))
            case 5:
                world.settle(1)
            case _:
                named = {"id": f"own-{number}"} if chance.random() < 0.5 else {}
                world.write(bank, f"text {number}", key=key, **named)
        loaded = [entry for name in KEYS for entry in world.load(bank, name, limit=1000)]
        expected = sorted((entry.ulid, entry.sort, entry.id) for entry in loaded)
        for order in ("asc", "desc"):
            found, totals = everything(world, bank, order, chance.choice([1, 3, 100]))
            wanted = [one[2] for one in (expected if order == "asc" else expected[::-1])]
            assert found == wanted, (seed, number, order)
            assert totals == {len(expected)}

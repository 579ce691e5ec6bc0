"""Statistics of a bank over the API."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks import compaction

from .conftest import Client, World

DAY = 86_400_000


def stats(api: Client, bank: str, **query: Any) -> dict[str, Any]:
    answer = api("GET", f"/memory_banks/{bank}/stats", query=query)
    assert answer.status == 200, answer
    return dict(answer.json)


def test_a_new_bank_has_nothing_to_count(api: Client, world: World) -> None:
    nothing = {"avg": None, "p95": None, "min": None, "max": None}
    found = stats(api, api.bank())
    assert found.pop("as_of") == found["range"].pop("end_date")
    assert found == {
        "range": {"start_date": found["range"]["start_date"]},
        "summary": {
            "entries": 0,
            "keys": 0,
            "speakers": 0,
            "first_entry_at": None,
            "last_entry_at": None,
            "compaction_summaries": 0,
            "last_compacted_at": None,
        },
        "distributions": {"tokens": nothing, "age_days": nothing, "entries_per_key": nothing},
        "top_keys": [],
        "top_speakers": [],
        "top_tags": [],
    }


def test_what_was_written_counts_once_it_is_indexed(api: Client, world: World) -> None:
    bank = api.bank()
    first = api.write(bank, "x" * 400, key="a", tags=["red", "blue"])
    world.clock.advance(DAY / 1000)
    api.write(bank, "y" * 5_000, key="a", speaker="assistant", tags=["red"])  # several chunks
    last = api.write(bank, "z" * 40, key="b")
    assert stats(api, bank)["summary"]["entries"] == 0
    world.ingest()
    found = stats(api, bank)
    assert found["summary"] == {
        "entries": 3,
        "keys": 2,
        "speakers": 2,
        "first_entry_at": first["created_at"],
        "last_entry_at": last["created_at"],
        "compaction_summaries": 0,
        "last_compacted_at": None,
    }
    assert found["distributions"]["tokens"] == {"avg": 453.3333, "p95": 1250, "min": 10, "max": 1250}
    assert found["distributions"]["age_days"] == {"avg": 0.3333, "p95": 1, "min": 0, "max": 1}
    assert found["distributions"]["entries_per_key"] == {"avg": 1.5, "p95": 2, "min": 1, "max": 2}
    assert found["top_keys"] == [{"value": "a", "entries": 2}, {"value": "b", "entries": 1}]
    assert found["top_speakers"] == [{"value": "user", "entries": 2}, {"value": "assistant", "entries": 1}]
    assert found["top_tags"] == [{"value": "red", "entries": 2}, {"value": "blue", "entries": 1}]


def test_a_general_bank_has_no_speakers(api: Client, world: World) -> None:
    bank = api.bank(type="general")
    api.write(bank, speaker=None, key="")
    world.ingest()
    found = stats(api, bank)
    assert (found["summary"]["speakers"], found["top_speakers"]) == (None, [])
    assert found["top_keys"] == [{"value": "", "entries": 1}]


def test_ranges(api: Client, world: World) -> None:
    bank = api.bank(retention_days=None)
    times = []
    for _ in range(5):
        times.append(api.write(bank)["created_at"])
        world.clock.advance(DAY / 1000)
    world.ingest()

    def count(**query: Any) -> int:
        return int(stats(api, bank, **query)["summary"]["entries"])

    assert (count(), count(days=2), count(days=1)) == (5, 2, 1)
    assert count(start_date=times[1], end_date=times[3]) == 2
    assert count(start_date=times[1][:10], end_date=times[3][:10]) == 3
    assert count(end_date=times[2], days=1) == 1
    assert count(start_date=times[4]) == 1
    shown = stats(api, bank, start_date="2020-01-01", end_date="2020-01-31")["range"]
    assert shown == {"start_date": "2020-01-01T00:00:00.000Z", "end_date": "2020-02-01T00:00:00.000Z"}
    world.clock.advance(40 * DAY / 1000)
    assert (count(), count(days=730)) == (0, 5)
    assert count(start_date="1000-01-01", end_date="9999-12-30") == 5


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ({"days": "0"}, "days"),
        ({"days": "731"}, "days"),
        ({"start_date": "yesterday"}, "start_date"),
        ({"start_date": "2026-11-30T12:00:00"}, "start_date"),
        ({"start_date": "2026-13-01"}, "start_date"),
        ({"end_date": "9999-12-31"}, "end_date"),
        ({"start_date": "2026-02-01", "end_date": "2026-01-01"}, "start_date"),
        ({"start_date": "9000-01-01"}, "start_date"),
    ],
)
def test_wrong_ranges_are_named(api: Client, query: dict[str, str], name: str) -> None:
    answer = api("GET", f"/memory_banks/{api.bank()}/stats", query=query)
    assert answer.status == 422
    assert answer.json["detail"][0]["loc"] == ["query", name]


def test_what_is_past_the_retention_does_not_count_from_that_second(api: Client, world: World) -> None:
    bank = api.bank(retention_days=3)
    api.write(bank)
    world.clock.advance(DAY / 1000)
    api.write(bank, key="new")
    world.ingest()
    world.clock.advance(2 * DAY / 1000)
    found = stats(api, bank)
    assert (found["summary"]["entries"], found["top_keys"]) == (1, [{"value": "new", "entries": 1}])
    assert api("PUT", f"/memory_banks/{bank}", body={"retention_days": None}).status == 200
    assert stats(api, bank)["summary"]["entries"] == 2


def test_what_a_compaction_replaced_does_not_count_and_its_summary_is_told(api: Client, world: World) -> None:
    bank = api.bank(max_turns=4, compaction_prompt="Keep what matters.")
    for number in range(12):
        api.write(bank, f"The quick brown fox number {number} jumps over the lazy dog and runs far away home. " * 6)
    world.ingest()
    for message in list(world.compaction.sent):
        compaction.handle(world, message, deadline=world.clock.now() + 60_000)
    compacted_at = stats(api, bank)["summary"]["last_compacted_at"]
    keys = api("GET", f"/memory_banks/{bank}/keys").json["keys"]
    assert keys[0]["compaction"]["last_at"] == compacted_at
    world.ingest()  # the summary; what it replaced is removed six minutes later
    found = stats(api, bank)
    assert found["summary"]["compaction_summaries"] == 1
    assert found["summary"]["entries"] == keys[0]["entries"] < 12
    assert found["top_keys"] == [{"value": "k", "entries": keys[0]["entries"]}]
    summary = api("GET", f"/memory_banks/{bank}/entries", query={"key": "k"}).json["entries"][0]
    assert api("DELETE", f"/memory_banks/{bank}/entries/{summary['id']}").status == 204
    after = stats(api, bank)["summary"]
    assert (after["compaction_summaries"], after["entries"]) == (0, keys[0]["entries"])


def test_a_forgotten_key_is_not_told_even_before_its_clean_up(api: Client, world: World) -> None:
    bank = api.bank()
    api.write(bank, key="secret")
    api.write(bank, key="other")
    world.ingest()
    assert api("DELETE", f"/memory_banks/{bank}/entries", query={"key": "secret"}).status == 204
    found = stats(api, bank)
    assert (found["summary"]["entries"], found["top_keys"]) == (1, [{"value": "other", "entries": 1}])


def test_deleting_the_source_counts_at_once(api: Client, world: World) -> None:
    bank = api.bank()
    api.write(bank)
    world.ingest()
    assert api("DELETE", f"/memory_banks/{bank}/source").status == 204
    assert stats(api, bank)["summary"]["entries"] == 0


def test_no_entry_is_loaded(api: Client, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    bank = api.bank()
    for number in range(30):
        api.write(bank, key=f"k{number}")
    world.ingest()
    asked: list[str] = []
    query, read = world.table.query, world.table.read
    monkeypatch.setattr(world.table, "query", lambda pk, **rest: asked.append(pk) or query(pk, **rest))
    monkeypatch.setattr(world.table, "read", lambda keys: asked.extend(key.sk for key in keys) or read(keys))
    assert stats(api, bank)["summary"]["entries"] == 30
    assert asked
    assert not [name for name in asked if name.startswith(("P#", "E#"))]

"""The retention to the millisecond: shown by every route in the last one, by none from then on, with no sweep in between."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks import contents, exporting

from .conftest import Client, World

DAY_MS = 86_400_000


def shown(api: Client, world: World, bank: str, entry: str) -> dict[str, bool]:
    """By the name of a way to look: whether it shows the entry."""
    source = api("GET", f"/memory_banks/{bank}").json["source_connection_id"]
    at = f"/memory_banks/{bank}"
    content = contents.id_of(bank, entry)
    export = api("POST", f"/sources/{source}/exports", body={"format": "jsonl"}).json["id"]
    while world.exports.sent:
        exporting.handle(world, world.exports.sent.pop(), deadline=world.clock.now() + 900_000)
    ways: dict[str, Any] = {
        "load": api("GET", f"{at}/entries", query={"key": "k"}).json["entries"],
        "get": api("GET", f"{at}/entries/{entry}").status == 200,
        "search": api("POST", f"{at}/search", body={"query": "cello"}).json["results"],
        "keyword search": api("POST", f"{at}/search", body={"query": "cello", "mode": "keyword", "key": "k"}).json["results"],
        "context": "cello" in api("POST", f"{at}/context", body={"key": "k", "query": "cello", "max_tokens": 500}).text,
        "keys": [key for key in api("GET", f"{at}/keys").json["keys"] if key["entries"]],
        "statistics": api("GET", f"{at}/stats").json["summary"]["entries"],
        "export": api("GET", f"/sources/{source}/exports/{export}/download").text,
        "contents": api("GET", f"/sources/{source}/contents").json["data"],
        "content": api("GET", f"/contents/{content}").status == 200,
        "correction": api("PATCH", f"{at}/entries/{entry}", body={"tags": ["seen"]}).status == 200,
        "runs": api("GET", f"{at}/runs", query={"key": "k"}).json["runs"],
    }
    return {way: bool(found) for way, found in ways.items()}


@pytest.mark.parametrize("left", [1, 0, -1])
def test_nothing_shows_an_entry_from_the_moment_its_time_is_over(api: Client, world: World, left: int) -> None:
    bank = api.bank(retention_days=1, capture={"auto_capture": False})
    run = {"key": "k", "messages": [{"sender": "user", "text": "My sister plays the cello"}]}
    assert api("POST", f"/memory_banks/{bank}/runs", body=run).status == 201
    entry = api.write(bank, "My sister plays the cello")["id"]
    world.ingest()
    world.clock.advance(milliseconds=DAY_MS - left)
    found = shown(api, world, bank, entry)
    assert found == dict.fromkeys(found, left > 0)

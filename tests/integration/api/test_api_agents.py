"""Templates, and agents that use a bank."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks import versions
from memory_banks.requests import CreateBank
from memory_banks.templates import TEMPLATES

from .conftest import Client, World


@pytest.mark.parametrize("version", versions.KNOWN)
def test_templates_in_the_shape_of_their_version(world: World, api: Client, version: str) -> None:
    answer = Client(world, api.secret, version)("GET", "/memory_banks/templates").json
    if version < versions.ENVELOPES:
        items = answer
    else:
        items = answer["data"]
        count = len(items)
        page = {"page": 1, "limit": count, "total": count, "pages": 1, "has_next": False, "has_prev": False}
        assert answer["pagination"] == page
    assert len(items) >= 8
    assert all(set(item) == {"id", "name", "description", "use_case", "defaults"} for item in items)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.id)
def test_a_template_is_a_bank_to_be(world: World, api: Client, template: Any) -> None:
    defaults = template.shown()["defaults"]
    assert set(defaults) <= set(CreateBank.model_fields)
    made = Client(world, api.secret, versions.LATEST)("POST", "/memory_banks", body=defaults)
    assert made.status == 201, made
    assert {name: made.json[name] for name in defaults} == defaults
    if "compaction_prompt" in defaults:
        assert defaults.get("max_turns") or defaults.get("max_size_tokens"), "a prompt without a threshold never runs"


def test_templates_have_distinct_ids() -> None:
    assert len({template.id for template in TEMPLATES}) == len({template.name for template in TEMPLATES}) == len(TEMPLATES)


def agents_of(api: Client, bank: str) -> list[dict[str, Any]]:
    return list(api("GET", f"/memory_banks/{bank}/agents").json)


def test_an_agent_is_registered_changed_and_unregistered(api: Client) -> None:
    bank = api.bank()
    path = f"/memory_banks/{bank}/agents/planner"
    assert api("PUT", path).json == {"agent_id": "planner", "agent_name": "planner", "url": None}
    body = {"agent_name": "Der Plänemacher", "url": "https://agents.example/planner"}
    assert api("PUT", path, body=body).json == {"agent_id": "planner", **body}
    api("PUT", f"/memory_banks/{bank}/agents/a.b-c_1", body={"agent_name": "Another"})
    assert [agent["agent_id"] for agent in agents_of(api, bank)] == ["a.b-c_1", "planner"]
    assert api("PUT", path, body={"agent_name": "P"}).json["url"] is None
    assert api("DELETE", path).status == 204
    assert api("DELETE", path).status == 404
    assert [agent["agent_id"] for agent in agents_of(api, bank)] == ["a.b-c_1"]


def test_agents_come_in_an_envelope_from_its_version_on(world: World, api: Client) -> None:
    bank = api.bank()
    api("PUT", f"/memory_banks/{bank}/agents/planner")
    answer = Client(world, api.secret, versions.ENVELOPES)("GET", f"/memory_banks/{bank}/agents").json
    assert [agent["agent_id"] for agent in answer["data"]] == ["planner"]
    assert answer["pagination"] == {"page": 1, "limit": 1, "total": 1, "pages": 1, "has_next": False, "has_prev": False}


def test_whoever_a_request_names_is_an_agent_of_the_bank(api: Client, world: World) -> None:
    bank = api.bank()
    api("PUT", f"/memory_banks/{bank}/agents/writer", body={"agent_name": "The writer"})
    api.write(bank, agent_id="writer")
    api(
        "POST",
        f"/memory_banks/{bank}/entries",
        body={"entries": [{"content": "c", "key": "k", "speaker": "u"}], "agent_id": "batcher"},
    )
    api("GET", f"/memory_banks/{bank}/entries", query={"key": "k", "agent_id": "loader"})
    api("POST", f"/memory_banks/{bank}/search", body={"query": "c", "agent_id": "searcher"})
    api("POST", f"/memory_banks/{bank}/context", body={"key": "k", "agent_id": "asker"})
    found = {agent["agent_id"]: agent["agent_name"] for agent in agents_of(api, bank)}
    assert found == {name: name for name in ("batcher", "loader", "searcher", "asker")} | {"writer": "The writer"}
    reads = world.table.reads
    api("GET", f"/memory_banks/{bank}/entries", query={"key": "k"})
    plain = world.table.reads - reads
    api("GET", f"/memory_banks/{bank}/entries", query={"key": "k", "agent_id": "loader"})
    assert world.table.reads - reads == 2 * plain, "a known agent costs nothing"


def test_a_failed_request_notes_nobody(api: Client) -> None:
    bank = api.bank()
    refused = api("POST", f"/memory_banks/{bank}/entries", body={"content": "c", "agent_id": "writer"})
    assert refused.status == 422
    missing = api("POST", "/memory_banks/00000000-0000-4000-8000-000000000000/search", body={"query": "c", "agent_id": "writer"})
    assert missing.status == 404
    assert agents_of(api, bank) == []


def test_agents_stay_when_the_source_goes_and_go_with_the_bank(api: Client, world: World) -> None:
    bank, other = api.bank(max_turns=5), api.bank()
    for one in (bank, other):
        api("PUT", f"/memory_banks/{one}/agents/planner")
    api("POST", f"/memory_banks/{bank}/compact")
    api("DELETE", f"/memory_banks/{bank}/source")
    world.ingest()
    assert len(agents_of(api, bank)) == 1
    api("DELETE", f"/memory_banks/{bank}")
    world.ingest()
    left = [item for item in world.table.everything() if bank in item["pk"] and not item["sk"].startswith("X#")]
    assert left == []
    assert len(agents_of(api, other)) == 1


@pytest.mark.parametrize(
    ("agent", "body", "loc"),
    [
        ("a b", {}, ["path", "agent_id"]),
        ("x" * 129, {}, ["path", "agent_id"]),
        ("a", {"agent_name": ""}, ["body", "agent_name"]),
        ("a", {"url": "javascript:alert(1)"}, ["body", "url"]),
        ("a", {"name": "A"}, ["body", "name"]),
    ],
)
def test_what_is_no_agent(api: Client, agent: str, body: dict[str, Any], loc: list[str]) -> None:
    bank = api.bank()
    answer = api("PUT", f"/memory_banks/{bank}/agents/{agent}", body=body)
    assert (answer.status, answer.json["detail"][0]["loc"]) == (422, loc)
    assert agents_of(api, bank) == []
    named = api("POST", f"/memory_banks/{bank}/search", body={"query": "c", "agent_id": "a/b"})
    assert named.json["detail"][0]["loc"] == ["body", "agent_id"]


def test_a_bank_has_at_most_two_hundred_agents(api: Client) -> None:
    bank = api.bank()
    for number in range(200):
        assert api("PUT", f"/memory_banks/{bank}/agents/a{number}").status == 200
    refused = api("PUT", f"/memory_banks/{bank}/agents/one-more")
    assert (refused.status, refused.json["error"]["code"]) == (409, "too_many_agents")
    assert api("PUT", f"/memory_banks/{bank}/agents/a7", body={"agent_name": "Changed"}).status == 200
    assert api("GET", f"/memory_banks/{bank}/entries", query={"key": "k", "agent_id": "one-more"}).status == 200
    assert len(agents_of(api, bank)) == 200

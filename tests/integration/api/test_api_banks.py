"""Bank routes over real event shapes, in every version that changes them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from memory_banks import versions

from .conftest import Client, World

BEFORE = [version for version in versions.KNOWN if version < versions.ENVELOPES]
AFTER = [version for version in versions.KNOWN if version >= versions.ENVELOPES]


def test_a_bank_from_its_creation_to_its_end(api: Client, world: World) -> None:
    made = api("POST", "/memory_banks", body={"name": "Bücher 📚", "description": "d", "max_turns": 20})
    assert made.status == 201
    bank = made.json
    assert "Bücher 📚" in (made.text or ""), "JSON is not escaped to ASCII"
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", bank["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", bank["created_at"])
    assert set(bank) >= {
        "id", "name", "type", "mode", "created_at", "updated_at", "description", "compaction_prompt", "max_turns",
        "max_size_tokens", "max_age_days", "retention_days", "chunk_size", "chunk_overlap", "dimensions", "embedding_model",
        "source_connection_id", "strip_quoted_reply_chains",
    }  # fmt: skip
    assert not {"secret", "account", "generation", "version"} & set(bank)
    path = f"/memory_banks/{bank['id']}"
    assert api("GET", path).json == bank
    world.clock.advance(1)
    changed = api("PUT", path, body={"name": "Books", "max_turns": 0})
    assert (changed.status, changed.json["name"], changed.json["max_turns"]) == (200, "Books", None)
    assert changed.json["description"] == "d" and changed.json["updated_at"] > bank["updated_at"]
    gone = api("DELETE", path)
    assert (gone.status, gone.text) == (204, None)
    assert api("GET", path).status == api("PUT", path, body={}).status == api("DELETE", path).status == 404
    assert api("GET", "/memory_banks").json["total"] == 0


def test_deleting_the_source_forgets_entries_and_keeps_settings(api: Client) -> None:
    bank = api.bank(max_turns=9)
    entry = api.write(bank)
    assert api("DELETE", f"/memory_banks/{bank}/source").status == 204
    after = api("GET", f"/memory_banks/{bank}").json
    assert (after["max_turns"], after["source_connection_id"]) == (9, None)
    assert api("GET", f"/memory_banks/{bank}/entries", query={"key": "k"}).json["entries"] == []
    assert api("GET", f"/memory_banks/{bank}/entries/{entry['id']}").status == 404
    api.write(bank)
    assert api("GET", f"/memory_banks/{bank}").json["source_connection_id"]


@pytest.mark.parametrize("version", versions.KNOWN)
def test_the_shape_of_a_list_goes_by_the_version(world: World, api: Client, version: str) -> None:
    for number in range(3):
        api.bank(name=f"b{number}", type="general" if number == 1 else "conversation")
        world.clock.advance(1)
    versioned = Client(world, api.secret, version)
    found = versioned("GET", "/memory_banks", query={"limit": 2, "page": 2, "sort": "name", "order": "asc"})
    assert found.headers["seclai-version"] == version
    if version in BEFORE:
        assert set(found.json) == {"memory_banks", "page", "limit", "total"}
        assert (found.json["page"], found.json["limit"], found.json["total"]) == (2, 2, 3)
        names = found.json["memory_banks"]
    else:
        page = {"page": 2, "limit": 2, "total": 3, "pages": 2, "has_next": False, "has_prev": True}
        assert found.json["pagination"] == page and set(found.json) == {"data", "pagination"}
        names = found.json["data"]
    assert [bank["name"] for bank in names] == ["b2"]


def test_lists_are_newest_first_and_by_type(world: World, api: Client) -> None:
    for number, kind in enumerate(["conversation", "general", "conversation"]):
        api.bank(name=f"b{number}", type=kind)
        world.clock.advance(1)
    names = [bank["name"] for bank in api("GET", "/memory_banks").json["memory_banks"]]
    assert names == ["b2", "b1", "b0"]
    general = api("GET", "/memory_banks", query={"type": "general"}).json
    assert ([bank["name"] for bank in general["memory_banks"]], general["total"]) == (["b1"], 1)


@pytest.mark.parametrize("version", [*BEFORE, *AFTER[:1], versions.LATEST])
def test_undeclared_query_parameters_are_refused_from_their_gate_on(world: World, api: Client, version: str) -> None:
    versioned = Client(world, api.secret, version)
    for path in ("/memory_banks", f"/memory_banks/{api.bank()}", "/version"):
        answer = versioned("GET", path, query={"limit_": "5"})
        if version >= versions.STRICT_QUERIES:
            assert answer.status == 422
            assert answer.json["detail"][0]["loc"] == ["query", "limit_"]
        else:
            assert answer.status == 200


@pytest.mark.parametrize("version", versions.KNOWN)
def test_retention_and_age_go_by_the_version(world: World, api: Client, version: str) -> None:
    versioned = Client(world, api.secret, version)
    retired = version >= versions.AGE_RETIRED
    made = {kind: versioned("POST", "/memory_banks", body={"name": "b", "type": kind}).json for kind in ("conversation", "general")}
    assert made["conversation"]["retention_days"] == (90 if retired else 30)
    assert made["general"]["retention_days"] == (None if retired else 30)
    kept = versioned("POST", "/memory_banks", body={"name": "b", "retention_days": None}).json
    assert kept["retention_days"] is None
    path = f"/memory_banks/{kept['id']}"
    written = versioned("PUT", path, body={"max_age_days": 12})
    if retired:
        assert (written.status, written.json["error"]["code"]) == (400, "max_age_days_retired")
    else:
        assert (written.status, written.json["max_age_days"]) == (200, 12)
        assert Client(world, api.secret, versions.LATEST)("GET", path).json["max_age_days"] is None
    assert versioned("PUT", path, body={"max_age_days": 0}).status == 200
    assert versioned("PUT", path, body={"retention_days": 5}).json["retention_days"] == 5
    assert versioned("PUT", path, body={"retention_days": None}).json["retention_days"] is None


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"page": 0}, "page"),
        ({"page": "x"}, "page"),
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"sort": "size"}, "sort"),
        ({"order": "up"}, "order"),
        ({"type": "chat"}, "type"),
        ("page=%ff", None),
    ],
)
def test_wrong_parameters_of_the_list_are_named(api: Client, query: Any, field: str | None) -> None:
    answer = api("GET", "/memory_banks", query=query)
    assert answer.status == 422
    assert answer.json["detail"][0]["loc"] == (["query", field] if field else ["query"])


def test_banks_are_found_by_name(api: Client) -> None:
    bank = api.bank(name="Support, EMEA", description="mail")
    found = api("GET", "/search", query={"q": "port, e", "entity_type": "memory_bank"}).json
    assert found == {"results": [{"id": bank, "name": "Support, EMEA", "entity_type": "memory_bank", "description": "mail"}]}
    assert api("GET", "/search", query={"q": "support", "entity_type": "agent"}).json == {"results": []}
    for wrong in ({}, {"q": ""}, {"q": "x" * 201}, {"q": "x", "limit": 51}, {"q": "x", "limit": 0}):
        assert api("GET", "/search", query=wrong).status == 422

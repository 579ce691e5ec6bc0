"""Every route with another account's ids: a 404 like for ids that never were, and nothing changed."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks import banks, contents, jobs

from functions.api.routes import app

from .conftest import Client, World

BODIES: dict[tuple[str, str], Any] = {
    ("PUT", "/memory_banks/<bank_id>"): {"name": "Taken over"},
    ("POST", "/memory_banks/<bank_id>/entries"): {"content": "c", "key": "k", "speaker": "user"},
    ("PATCH", "/memory_banks/<bank_id>/entries/<entry_id>"): {"content": "Taken over"},
    ("POST", "/memory_banks/<bank_id>/search"): {"query": "secret"},
    ("POST", "/memory_banks/<bank_id>/context"): {"query": "secret", "key": "k", "max_tokens": 100},
    ("POST", "/memory_banks/<bank_id>/test-compaction"): {"compaction_prompt": "Keep all."},
    ("POST", "/sources/<source_connection_id>/exports"): {"format": "jsonl"},
    ("POST", "/sources/<source_connection_id>/exports/estimate"): {"format": "jsonl"},
    ("PATCH", "/memory_banks/ai-assistant/<conversation_id>"): {"accepted": True},
    ("PATCH", "/ai-assistant/memory-bank/<conversation_id>"): {"accepted": True},
    ("POST", "/memory_banks/<bank_id>/runs"): {"key": "k", "messages": [{"sender": "user", "text": "t"}]},
    ("PATCH", "/memory_banks/<bank_id>/messages/<message_id>"): {"text": "Taken over"},
    ("POST", "/memory_banks/<bank_id>/flush"): {"key": "k"},
    ("POST", "/memory_banks/<bank_id>/regenerate"): {"key": "k"},
    ("POST", "/memory_banks/<bank_id>/rename"): {"key": "k", "to": "taken over"},
}
ROUTES = sorted((route.method, route.path) for route in app.routes if "<" in route.path)


def test_there_are_routes_to_try() -> None:
    assert len(ROUTES) >= 13


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_another_accounts_ids_are_a_404(api: Client, stranger: Client, world: World, method: str, path: str) -> None:
    bank = api.bank(max_turns=5, capture={})
    run = api("POST", f"/memory_banks/{bank}/runs", body={"key": "k", "messages": [{"sender": "user", "text": "a secret"}]})
    message = run.json["message_ids"][0]
    entry = api.write(bank, "a secret")["id"]
    job = jobs.create(world, banks.get(world, "acme", bank), "compaction")["sk"]
    api("PUT", f"/memory_banks/{bank}/agents/planner")
    talk = api("POST", "/memory_banks/ai-assistant", body={"user_input": "a secret project"}).json["conversation_id"]
    source = api("GET", f"/memory_banks/{bank}").json["source_connection_id"]
    export = api("POST", f"/sources/{source}/exports", body={"format": "jsonl"}).json["id"]
    content = contents.id_of(bank, entry)
    ids = {"<source_connection_id>": source, "<export_id>": export, "<content_id>": content}
    ids |= {"<entry_id>": entry, "<job_id>": job, "<agent_id>": "planner", "<conversation_id>": talk}
    ids |= {"<message_id>": message}
    absent = "00000000-0000-4000-8000-000000000000"
    theirs, never = path.replace("<bank_id>", bank), path.replace("<bank_id>", absent)
    never = never.replace("<source_connection_id>", absent)
    if path.startswith("/contents/"):
        never = path.replace("<content_id>", contents.id_of(absent, entry))
    for name, value in ids.items():
        theirs, never = theirs.replace(name, value), never.replace(name, value)
    before = world.table.everything()
    sent = [len(queue.sent) for queue in (world.ingestion, world.compaction, world.exports, world.distillation)]
    request = {"body": BODIES.get((method, path)), "query": {"key": "k"}}
    answer = stranger(method, theirs, **request)
    assert answer.status == 404, answer
    assert answer == stranger(method, never, **request)
    assert "secret" not in (answer.text or "")
    assert [item for item in world.table.everything() if not item["pk"].startswith(("ACCOUNT#", "KEY#"))] == [
        item for item in before if not item["pk"].startswith(("ACCOUNT#", "KEY#"))
    ]
    assert [len(queue.sent) for queue in (world.ingestion, world.compaction, world.exports, world.distillation)] == sent


def test_a_bank_s_id_of_another_account_exports_nothing(api: Client, stranger: Client, world: World) -> None:
    body = {"resource_type": "memory_bank", "resource_id": api.bank()}
    assert stranger("POST", "/authenticated/resource-exports", body=body).status == 404
    assert world.exports.sent == []


def test_ids_of_one_bank_are_not_found_through_another(api: Client) -> None:
    one, two = api.bank(), api.bank()
    entry = api.write(one)["id"]
    named = api.write(one, "named", id="mine")["id"]
    for entry_id in (entry, named):
        path = f"/memory_banks/{two}/entries/{entry_id}"
        assert api("GET", path).status == 404
        assert api("PATCH", path, body={"content": "x"}).status == 404
        assert api("DELETE", path).status == 404
        assert api("GET", f"/memory_banks/{one}/entries/{entry_id}").status == 200


def test_exports_of_one_bank_are_not_found_through_another(api: Client) -> None:
    one, two = (api("GET", f"/memory_banks/{api.bank()}").json["source_connection_id"] for _ in range(2))
    export = api("POST", f"/sources/{one}/exports", body={"format": "jsonl"}).json["id"]
    for method, path in (("GET", ""), ("GET", "/download"), ("POST", "/cancel"), ("DELETE", "")):
        assert api(method, f"/sources/{two}/exports/{export}{path}").status == 404
    assert api("GET", f"/sources/{one}/exports/{export}").json["status"] == "queued"


def test_contents_of_one_bank_are_not_found_through_another(api: Client) -> None:
    one, two = api.bank(), api.bank()
    content = contents.id_of(one, api.write(one)["id"])
    source = api("GET", f"/memory_banks/{two}").json["source_connection_id"]
    assert api("GET", f"/sources/{source}/contents/{content}").status == 404
    assert api("GET", f"/sources/{source}/contents", query={"content_version_id": content}).json["data"] == []
    forged = contents.id_of(two, content[26:])
    assert api("GET", f"/contents/{forged}").status == api("DELETE", f"/contents/{forged}").status == 404
    assert api("GET", f"/contents/{content}").status == 200


def test_lists_and_names_show_only_ones_own(api: Client, stranger: Client) -> None:
    api.bank(name="Private")
    assert stranger("GET", "/memory_banks").json["total"] == 0
    assert stranger("GET", "/search", query={"q": "Private"}).json == {"results": []}


def test_a_cursor_of_another_bank_is_refused(api: Client) -> None:
    one, two = api.bank(), api.bank()
    for number in range(3):
        api.write(one, str(number))
        api.write(two, str(number))
    cursor = api("GET", f"/memory_banks/{one}/entries", query={"key": "k", "limit": 1}).json["next_cursor"]
    assert api("GET", f"/memory_banks/{one}/entries", query={"key": "k", "limit": 1, "cursor": cursor}).status == 200
    assert api("GET", f"/memory_banks/{two}/entries", query={"key": "k", "limit": 1, "cursor": cursor}).status == 422

"""Versions and access over the API."""

from __future__ import annotations

import pytest
from memory_banks import versions

from .conftest import Client, World


def test_the_version_is_shown_pinned_and_unpinned(api: Client, world: World) -> None:
    assert api("GET", "/version").json == {
        "pinned_version": None,
        "effective_version": "2026-07-01",
        "default_version": "2026-07-01",
        "latest_version": "2026-10-21",
        "known_versions": list(versions.KNOWN),
    }
    pinned = api("PUT", "/version", body={"version": "2026-08-03"})
    assert (pinned.status, pinned.json["pinned_version"], pinned.json["effective_version"]) == (200, "2026-08-03", "2026-07-01")
    assert api("GET", "/version").json["effective_version"] == "2026-08-03"
    assert "data" in api("GET", "/memory_banks").json
    header = Client(world, api.secret, "2026-07-01")
    assert header("GET", "/version").json["effective_version"] == "2026-07-01"
    assert "memory_banks" in header("GET", "/memory_banks").json
    assert api("PUT", "/version", body={"version": None}).json["pinned_version"] is None
    assert "memory_banks" in api("GET", "/memory_banks").json


def test_a_pin_is_its_accounts_own(api: Client, stranger: Client) -> None:
    api("PUT", "/version", body={"version": "2026-08-03"})
    assert stranger("GET", "/version").json["pinned_version"] is None


@pytest.mark.parametrize("wrong", ["2026-07-02", "latest", " ", "20260701"])
def test_an_unknown_version_is_a_400_wherever_it_is_named(world: World, api: Client, wrong: str) -> None:
    for answer in (
        Client(world, api.secret, wrong)("GET", "/memory_banks"),
        Client(world, api.secret, wrong)("GET", "/nowhere"),
        api("PUT", "/version", body={"version": wrong}),
    ):
        assert (answer.status, answer.json["error"]["code"]) == (400, "unknown_version")
    assert api("PUT", "/version", body={}).json["detail"][0]["loc"] == ["body", "version"]
    assert api("PUT", "/version", body={"version": 5}).status == 422


def test_without_a_valid_key_everything_is_a_401(world: World, api: Client) -> None:
    expired = world.key("acme", expires_at=world.clock.now())
    for secret in (None, "mb_wrong", expired):
        for method, path in [("GET", "/memory_banks"), ("POST", "/memory_banks"), ("GET", "/version"), ("GET", "/nowhere")]:
            answer = Client(world, secret)(method, path)
            assert (answer.status, answer.json["error"]["code"]) == (401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
    bearer = Client(world, None)("GET", "/memory_banks", headers={"Authorization": f"Bearer {api.secret}"})
    assert bearer.status == 200


def test_a_key_may_do_what_its_scopes_say(world: World, api: Client) -> None:
    bank = api.bank()
    entry = api.write(bank)["id"]
    reads = [
        ("GET", "/memory_banks"), ("GET", f"/memory_banks/{bank}"), ("GET", f"/memory_banks/{bank}/entries"),
        ("GET", f"/memory_banks/{bank}/entries/{entry}"), ("GET", f"/memory_banks/{bank}/keys"), ("GET", "/version"),
        ("GET", "/search"), ("GET", f"/memory_banks/{bank}/jobs"),
    ]  # fmt: skip
    writes = [
        ("POST", "/memory_banks"), ("PUT", f"/memory_banks/{bank}"), ("POST", f"/memory_banks/{bank}/entries"),
        ("PATCH", f"/memory_banks/{bank}/entries/{entry}"), ("DELETE", f"/memory_banks/{bank}/entries/{entry}"),
        ("DELETE", f"/memory_banks/{bank}/entries"), ("DELETE", f"/memory_banks/{bank}/source"),
        ("DELETE", f"/memory_banks/{bank}"),
    ]  # fmt: skip
    bodies = {
        ("POST", "/memory_banks"): {"name": "b"},
        ("PUT", f"/memory_banks/{bank}"): {"name": "c"},
        ("POST", f"/memory_banks/{bank}/entries"): {"content": "c", "key": "k", "speaker": "user"},
        ("PATCH", f"/memory_banks/{bank}/entries/{entry}"): {"content": "d"},
    }
    query = {"key": "k", "q": "x"}
    reader, writer = Client(world, world.key("acme", "read")), Client(world, world.key("acme", "write"))
    for method, path in writes:
        assert reader(method, path, query=query, body=bodies.get((method, path))).status == 403, (method, path)
    for method, path in reads:
        assert reader(method, path, query=query).status == 200, (method, path)
        assert writer(method, path, query=query).status == 403, (method, path)
    for method, path in writes:
        answer = writer(method, path, query=query, body=bodies.get((method, path)))
        assert answer.status in {200, 201, 204}, (method, path, answer)
    assert writer("PUT", "/version", body={"version": None}).status == 403


def test_open_paths_need_no_key_and_ask_nothing_remote(world: World) -> None:
    world.table = None
    nobody = Client(world, None)
    assert nobody("GET", "/health").json == {"status": "ok"}
    assert nobody("GET", "/openapi.json").json["openapi"].startswith("3.")
    docs = nobody("GET", "/docs")
    assert docs.status == 200 and docs.headers["content-type"].startswith("text/html")

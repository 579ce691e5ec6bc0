"""The published client `seclai`, unchanged, sync and async, against the whole service on this machine."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from memory_banks import versions
from seclai import AsyncSeclai, Seclai
from seclai.seclai import SeclaiAPIStatusError, SeclaiAPIValidationError

from tests.serving import Served, served

pytestmark = [pytest.mark.clients, pytest.mark.emulator]

VERSIONS = [None, *versions.KNOWN]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("seclai")
    with served(folder) as started:
        yield started


Call = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest, service: Served) -> Iterator[Callable[[str | None], Call]]:
    """For a version header (or none), a way to call the client's methods: `call("get_memory_bank", id)`."""
    loop = asyncio.new_event_loop()
    closing: list[Callable[[], Any]] = []

    def speaking(version: str | None) -> Call:
        options: dict[str, Any] = {"api_key": service.api_key} | ({"api_version": version} if version else {})
        if request.param == "sync":
            http = httpx.Client(base_url=service.url, timeout=60)
            seclai: Any = Seclai(http_client=http, **options)
            closing.append(http.close)
        else:
            async_http = httpx.AsyncClient(base_url=service.url, timeout=60)
            seclai = AsyncSeclai(http_client=async_http, **options)
            closing.append(lambda: loop.run_until_complete(async_http.aclose()))

        def call(method: str, *arguments: Any, **named: Any) -> Any:
            answer = getattr(seclai, method)(*arguments, **named)
            return loop.run_until_complete(answer) if inspect.isawaitable(answer) else answer

        return call

    yield speaking
    for close in closing:
        close()
    loop.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_life_of_a_bank(client: Callable[[str | None], Call], version: str | None) -> None:
    call = client(version)
    body = {"name": f"Support {version}", "type": "conversation", "description": "d", "max_turns": 20, "compaction_prompt": "p"}
    bank = call("create_memory_bank", body)
    assert {name: bank[name] for name in body} == body
    assert bank["retention_days"] == (90 if version and version >= versions.AGE_RETIRED else 30)
    assert call("get_memory_bank", bank["id"]) == bank
    listed = call("list_memory_banks", limit=100)
    assert bank["id"] in [one["id"] for one in listed["memory_banks"]]
    assert {"total", "page", "limit"} <= set(listed)
    changed = call("update_memory_bank", bank["id"], {"name": "Renamed", "max_turns": 0, "retention_days": None})
    assert (changed["name"], changed["max_turns"], changed["retention_days"]) == ("Renamed", None, None)
    found = call("search", query="renamed", entity_type="memory_bank")["results"]
    assert bank["id"] in [one["id"] for one in found]
    assert call("delete_memory_bank_source", bank["id"]) is None
    assert call("get_memory_bank", bank["id"])["source_connection_id"] is None
    assert call("delete_memory_bank", bank["id"]) is None
    with pytest.raises(SeclaiAPIStatusError) as gone:
        call("get_memory_bank", bank["id"])
    assert gone.value.status_code == 404


@pytest.mark.parametrize("version", VERSIONS)
def test_the_version_a_client_asked_for_is_the_one_it_gets(client: Callable[[str | None], Call], version: str | None) -> None:
    state = client(version)("get_api_version")
    assert state["effective_version"] == (version or versions.DEFAULT)
    assert state["known_versions"] == list(versions.KNOWN)


@pytest.mark.parametrize("version", VERSIONS)
def test_templates_and_agents_are_lists_in_every_version(
    client: Callable[[str | None], Call], service: Served, version: str | None
) -> None:
    call = client(version)
    templates = call("list_memory_bank_templates")
    assert len(templates) >= 8
    bank = call("create_memory_bank", templates[0]["defaults"])
    assert bank["name"] == templates[0]["name"]
    service.call("PUT", f"/memory_banks/{bank['id']}/agents/planner", {"agent_name": "The planner"})
    agents = call("get_agents_using_memory_bank", bank["id"])
    assert [(agent["agent_id"], agent["agent_name"]) for agent in agents] == [("planner", "The planner")]


def test_an_account_is_pinned_and_unpinned(client: Callable[[str | None], Call]) -> None:
    call = client(None)
    assert call("update_api_version", "2026-08-03")["pinned_version"] == "2026-08-03"
    try:
        assert call("get_api_version")["effective_version"] == "2026-08-03"
        assert call("create_memory_bank", {"name": "Pinned"})["retention_days"] == 90
        assert "memory_banks" in call("list_memory_banks")
    finally:
        assert call("update_api_version", None)["pinned_version"] is None
    assert call("get_api_version")["effective_version"] == "2026-07-01"


def test_compaction_is_asked_for(client: Callable[[str | None], Call]) -> None:
    call = client("2026-10-21")
    bank = call("create_memory_bank", {"name": "Compacted", "max_turns": 4})
    assert call("compact_memory_bank", bank["id"]) is None
    unlimited = call("create_memory_bank", {"name": "Unlimited"})
    with pytest.raises(SeclaiAPIStatusError) as refused:
        call("compact_memory_bank", unlimited["id"])
    assert refused.value.status_code == 400


def test_a_wrong_field_is_a_validation_error_to_the_client(client: Callable[[str | None], Call]) -> None:
    call = client("2026-10-21")
    with pytest.raises(SeclaiAPIValidationError) as refused:
        call("create_memory_bank", {"name": "", "max_turns": -1})
    detail = refused.value.validation_error.detail
    assert [one.loc for one in detail] == [["body", "name"], ["body", "max_turns"]]
    with pytest.raises(SeclaiAPIStatusError) as retired:
        call("create_memory_bank", {"name": "b", "max_age_days": 5})
    assert retired.value.status_code == 400


def test_a_wrong_key_is_a_401(service: Served) -> None:
    with httpx.Client(base_url=service.url) as http, pytest.raises(SeclaiAPIStatusError) as refused:
        Seclai(api_key="wrong", http_client=http).list_memory_banks()
    assert refused.value.status_code == 401

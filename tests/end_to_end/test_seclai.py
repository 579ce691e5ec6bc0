"""The published client `seclai`, unchanged, sync and async, against the whole service on this machine."""

from __future__ import annotations

import asyncio
import csv
import inspect
import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from memory_banks import versions
from pyarrow import parquet
from seclai import AsyncSeclai, Seclai
from seclai.seclai import SeclaiAPIStatusError, SeclaiAPIValidationError

from tests.doubles.model_server import ModelServer
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
            answer = loop.run_until_complete(answer) if inspect.isawaitable(answer) else answer
            return streamed(answer) if isinstance(answer, httpx.Response) else answer

        def streamed(answer: httpx.Response) -> bytes:
            """The body of a download, which the client leaves to be read."""
            if request.param == "sync":
                return b"".join(answer.iter_bytes())
            return loop.run_until_complete(answer.aread())

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


def written(service: Served, bank: str, *texts: str) -> list[dict[str, Any]]:
    """New entries of a conversation, searchable; the published client has no method for writing them."""
    body = {"entries": [{"content": text, "key": "k", "speaker": "user"} for text in texts]}
    entries = service.call("POST", f"/memory_banks/{bank}/entries", body, wait="true")["entries"]
    assert all(entry["indexed"] for entry in entries)
    return list(entries)


@pytest.mark.parametrize("version", VERSIONS)
def test_statistics(client: Callable[[str | None], Call], service: Served, version: str | None) -> None:
    call = client(version)
    bank = call("create_memory_bank", {"name": "Counted"})["id"]
    written(service, bank, "I like tea.", "I like coffee.")
    stats = call("get_memory_bank_stats", bank)
    assert (stats["summary"]["entries"], stats["summary"]["keys"], stats["summary"]["speakers"]) == (2, 1, 1)
    assert stats["top_keys"] == [{"value": "k", "entries": 2}]
    assert set(stats["distributions"]) == {"tokens", "age_days", "entries_per_key"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_prompt_is_tried_with_a_bank_and_without(
    client: Callable[[str | None], Call], service: Served, version: str | None
) -> None:
    call = client(version)
    bank = call("create_memory_bank", {"name": "Tried", "max_turns": 20, "compaction_prompt": "Keep decisions."})["id"]
    texts = [f"On day {number} we decided to buy machine number {number} for the bakery in Lyon." for number in range(4)]
    written(service, bank, *texts)
    for tried in (
        call("test_memory_bank_compaction", bank, {}),
        call("test_memory_bank_compaction", bank, {"sample_entries": texts}),
        call("test_compaction_prompt_standalone", {"compaction_prompt": "Keep decisions.", "sample_entries": texts}),
    ):
        assert tried["original_entries"] == [f"user: {text}" for text in texts]
        assert tried["surviving_entries"] == tried["original_entries"][2:] and tried["compaction_summary"]
        assert tried["evaluation"]["verdict"] in {"pass", "fail"} and 1 <= tried["evaluation"]["score"] <= 5
    with pytest.raises(SeclaiAPIStatusError) as without_model:
        call("test_memory_bank_compaction", bank, {"generate_direction": "a bakery", "entry_count": 4})
    assert without_model.value.status_code == 400
    stored = service.call("GET", f"/memory_banks/{bank}/entries", key="k")["entries"]
    assert [entry["content"] for entry in stored] == texts, "a trial changes nothing"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("propose", "history", "accept"),
    [
        ("generate_memory_bank_config", "get_memory_bank_ai_last_conversation", "accept_memory_bank_ai_suggestion"),
        ("ai_assistant_memory_bank", "get_ai_assistant_memory_bank_history", "accept_ai_memory_bank_suggestion"),
    ],
)
def test_the_assistant_proposes_and_a_decision_is_recorded(
    client: Callable[[str | None], Call], version: str | None, propose: str, history: str, accept: str
) -> None:
    call = client(version)
    banks = call("list_memory_banks")["total"]
    wish = f"Short-term session data, cleaned up weekly ({version})"
    proposed = call(propose, {"user_input": wish})
    assert proposed["success"] is True and proposed["example_prompts"]
    assert (proposed["config"]["retention_days"], proposed["config"]["max_age_days"]) == (7, None)
    for accepted in (True, False):
        assert call(accept, proposed["conversation_id"], {"accepted": accepted}) == {"ok": True}
        told = call(history)
        assert (told["user_input"], told["accepted"]) == (wish, accepted)
        assert told["turns"][-1]["conversation_id"] == proposed["conversation_id"]
    assert call("list_memory_banks")["total"] == banks, "a proposal is applied by nobody"
    made = call("create_memory_bank", {name: value for name, value in proposed["config"].items() if value is not None})
    assert made["retention_days"] == 7


class Talker(ModelServer):
    """A chat model that makes entries up, judges, proposes and summarises, each in the form that it is asked for."""

    def answer(self, path: str, body: dict[str, Any]) -> Any:
        asked = body["messages"][0]["content"]
        if "make up realistic test material" in asked:
            answer: Any = {"entries": [{"speaker": "user", "content": f"We sell {n} kinds of bread in Lyon."} for n in range(4)]}
        elif "You judge summaries" in asked:
            answer = {"verdict": "pass", "score": 5, "reasoning": "It keeps what was asked for."}
        elif "configuration" in asked:
            answer = {"note": "Here.", "config": {"name": "Notes", "type": "general", "mode": "balanced", "retention_days": 7}}
        else:
            answer = "They sell bread in Lyon."
        self.chat_text = answer if isinstance(answer, str) else json.dumps(answer)
        return super().answer(path, body)


def test_what_only_a_model_can_do(tmp_path: Path) -> None:
    """Generated entries, a judge and a proposal, by an OpenAI-compatible endpoint."""
    with Talker() as model:
        settings = {"MEMORY_BANKS_CHAT_MODEL": "openai/talker", "MEMORY_BANKS_OPENAI_BASE_URL": f"{model.url}/v1"}
        with served(tmp_path, environment=settings) as service, httpx.Client(base_url=service.url, timeout=60) as http:
            seclai = Seclai(api_key=service.api_key, http_client=http)
            body = {"compaction_prompt": "Keep numbers.", "generate_direction": "a bakery", "entry_count": 4}
            tried: Any = seclai.test_compaction_prompt_standalone(body)
            assert tried["generated"] is True and len(tried["original_entries"]) == 4
            assert (tried["compaction_summary"], tried["evaluation"]["score"]) == ("They sell bread in Lyon.", 5)
            proposed: Any = seclai.ai_assistant_memory_bank({"user_input": "meeting notes, cleaned weekly"})
            assert (proposed["note"], proposed["config"]["type"], proposed["config"]["retention_days"]) == ("Here.", "general", 7)


def test_both_names_of_the_assistant_tell_of_the_same_conversations(client: Callable[[str | None], Call]) -> None:
    call = client(None)
    proposed = call("generate_memory_bank_config", {"user_input": "Meeting notes"})["conversation_id"]
    further = call("ai_assistant_memory_bank", {"user_input": "for 20 days", "conversation_id": proposed})
    assert further["conversation_id"] == proposed
    assert call("accept_ai_memory_bank_suggestion", proposed, {"accepted": True}) == {"ok": True}
    assert call("get_memory_bank_ai_last_conversation") == call("get_ai_assistant_memory_bank_history")
    assert call("get_memory_bank_ai_last_conversation")["accepted"] is True


@pytest.mark.parametrize("version", VERSIONS)
def test_an_export_from_its_estimate_to_its_end(client: Callable[[str | None], Call], service: Served, version: str | None) -> None:
    call = client(version)
    bank = call("create_memory_bank", {"name": "Exported"})
    source = bank["source_connection_id"]
    texts = ["=SUM(A1)", 'a "quoted"\nline', "grün 🍵"]
    written(service, bank["id"], *texts)
    assert call("estimate_source_export", source, {"format": "jsonl"})["estimated_size_bytes"] > 0
    for format, read in READERS.items():
        export = call("create_source_export", source, {"format": format})
        assert (export["source_connection_id"], export["format"]) == (source, format)
        done = finished(lambda one=export["id"]: call("get_source_export", source, one))
        assert (done["status"], done["item_count"], done["error"]) == ("completed", 3, None)
        body = call("download_source_export", source, export["id"])
        assert read(body) == texts, format
        assert len(body) == done["file_size_bytes"]
        assert call("cancel_source_export", source, export["id"])["status"] == "completed", "it has ended"
    listed = call("list_source_exports", source)
    assert listed["pagination"]["total"] == len(READERS) and listed["data"][0]["id"] == export["id"]
    assert call("delete_source_export", source, export["id"]) is None
    with pytest.raises(SeclaiAPIStatusError) as gone:
        call("get_source_export", source, export["id"])
    assert gone.value.status_code == 404
    assert call("list_source_exports", source)["pagination"]["total"] == len(READERS) - 1


def finished(look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """An export once it has ended."""
    end = time.monotonic() + 60
    while (found := look())["status"] in {"queued", "running"}:
        assert time.monotonic() < end, found
        time.sleep(0.1)
    return found


def lines(body: bytes) -> list[str]:
    return [json.loads(line)["content"] for line in body.decode().splitlines()]


READERS: dict[str, Callable[[bytes], list[str]]] = {
    "jsonl": lines,
    "csv": lambda body: [row["content"] for row in csv.DictReader(io.StringIO(body.decode(), newline=""))],
    "parquet": lambda body: parquet.read_table(io.BytesIO(body)).column("content").to_pylist(),
    "zip": lambda body: lines(zipfile.ZipFile(io.BytesIO(body)).read("entries.jsonl")),
    "json": lambda body: [entry["content"] for entry in json.loads(body)["entries"]],
}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_contents_of_a_source(client: Callable[[str | None], Call], service: Served, version: str | None) -> None:
    call = client(version)
    bank = call("create_memory_bank", {"name": "Browsed", "mode": "custom", "chunk_size": 60, "chunk_overlap": 10})
    source, texts = bank["source_connection_id"], ["The first one", "The second one. " * 12]
    entries = written(service, bank["id"], *texts)
    page = call("list_source_contents", source, limit=1)
    assert page["pagination"]["total"] == 2 and page["pagination"]["has_next"] is True
    newest = page["data"][0]
    assert (newest["content_status"], newest["entry_id"]) == ("completed", entries[1]["id"])
    content = newest["source_connection_content_version_id"]
    oldest = call("list_source_contents", source, order="asc", sort="title", status="completed")["data"][0]
    polled = call("list_source_contents", source, content_version_ids=[oldest["content_version_id"], content])
    assert [one["title"] for one in polled["data"]] == [newest["title"], "The first one"]
    assert call("get_source_content_status", source, content) == newest
    detail = call("get_content_detail", content, start=4, end=10)
    assert (detail.text_content, detail.text_content_total_length) == ("second", len(texts[1]))
    assert (detail.source_connection_id, detail.source_name) == (source, "Browsed")
    assert {"name": "key", "value": "k"} in [one.additional_properties for one in detail.metadata]
    found = call("list_content_embeddings", content, page=1, limit=2)
    assert found.pagination.total > 2 and [len(one.vector) for one in found.data] == [bank["dimensions"]] * 2
    assert found.data[1].text == texts[1][found.data[1].text_start : found.data[1].text_end]
    assert call("delete_content", content) is None
    with pytest.raises(SeclaiAPIStatusError) as gone:
        call("get_content_detail", content)
    assert gone.value.status_code == 404
    assert [one["title"] for one in call("list_source_contents", source)["data"]] == ["The first one"]


@pytest.mark.parametrize("version", VERSIONS)
def test_compaction_is_asked_for(client: Callable[[str | None], Call], version: str | None) -> None:
    call = client(version)
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

"""The Langflow component in Langflow's own engine, against a running service. `make test-langflow` runs it: it needs `lfx`,
which is not among this project's packages, so its name keeps it out of the other suites."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lfx.components.input_output import ChatInput, ChatOutput
from lfx.custom.eval import eval_custom_component_code
from lfx.graph import Graph

from tests.serving import Served, served

FILE = Path(__file__).parents[2] / "clients" / "langflow" / "memory_bank.py"
# As Langflow loads it: from its text alone.
Component: Any = eval_custom_component_code(FILE.read_text())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("langflow")) as started:
        yield started


@pytest.fixture(scope="module")
def bank(service: Served) -> str:
    """A bank with what two sessions said."""
    made: str = service.call("POST", "/memory_banks", {"name": "talks", "type": "conversation"})["id"]
    entries = [
        {"key": "s1", "speaker": "user", "content": "My cat is called Mithril.", "tags": ["pet"], "metadata": {"mood": "glad"}},
        {"key": "s1", "speaker": "assistant", "content": "What a fine name for a cat."},
        {"key": "s2", "speaker": "user", "content": "Our dog is called Biscuit."},
        *({"key": "s1", "speaker": "user", "content": f"The weather of day {n} was dull."} for n in range(9)),
    ]
    service.call("POST", f"/memory_banks/{made}/entries", {"entries": entries}, wait="true")
    return made


def component(service: Served, bank: str, session: str | None = "s1", **values: Any) -> Any:
    made = Component(_parameters={"url": service.url, "api_key": service.api_key, "bank": bank, **values})
    for name, value in made._parameters.items():
        setattr(made, name, value)
    made._vertex = SimpleNamespace(graph=SimpleNamespace(session_id=session, flow_id="flow", run_id="run"))
    return made


def rows(service: Served, bank: str, **values: Any) -> list[dict[str, Any]]:
    return asyncio.run(component(service, bank, **values).retrieve()).to_dict(orient="records")


def test_five_memories_of_this_session_each_with_its_score(service: Served, bank: str) -> None:
    found = rows(service, bank, search_query="the cat's name")
    assert len(found) == 5
    assert {"session_id", "sender", "timestamp", "tags", "mood"} <= set(found[0])
    assert "My cat is called Mithril." in {row["content"] for row in found[:2]}
    assert {row["session_id"] for row in found} == {"s1"}
    scores = [row["_score"] for row in found]
    assert scores == sorted(scores, reverse=True) and 0 < scores[-1] <= scores[0] <= 1


def test_every_session_with_the_filter_off(service: Served, bank: str) -> None:
    assert "Biscuit" not in str(rows(service, bank, search_query="a dog called Biscuit"))
    [best] = rows(service, bank, search_query="a dog called Biscuit", filter_by_session=False, top_k=1)
    assert (best["content"], best["session_id"]) == ("Our dog is called Biscuit.", "s2")
    [bare] = rows(service, bank, session=None, search_query="dog", filter_by_session=False, top_k=1, include_metadata=False)
    assert set(bare) == {"content", "_score"}


def test_a_bank_by_name_and_a_context_for_a_prompt(service: Served, bank: str) -> None:
    assert rows(service, "talks", search_query="cat") == rows(service, bank, search_query="cat")
    text = asyncio.run(component(service, bank, search_query="the cat's name", max_tokens=200).give_context()).text
    assert "Mithril" in text and "day 8" in text and "Biscuit" not in text
    assert "Biscuit" in asyncio.run(component(service, bank, search_query="dog", filter_by_session=False).give_context()).text


def test_without_a_query_nothing_is_searched(service: Served, bank: str) -> None:
    assert rows(service, bank, search_query=" ") == []


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"session": None}, "session id"),
        ({"bank": "no such"}, "no such"),
        ({"api_key": "wrong"}, "401"),
        ({"top_k": 0}, "top_k"),
    ],
)
def test_says_what_is_wrong(service: Served, bank: str, values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        rows(service, **{"bank": bank, "search_query": "cat"} | values)


def test_a_turn_is_captured_once_and_becomes_memory(service: Served) -> None:
    capture = {"distillation": "none", "idle_seconds": 3_600}
    bank = service.call("POST", "/memory_banks", {"name": "captured", "type": "conversation", "capture": capture})["id"]
    said = {"user_message": "My cat is called Mithril.", "answer": "A fine name."}
    first = asyncio.run(component(service, bank, **said).capture())
    again = asyncio.run(component(service, bank, **said).capture())
    assert first.data["captured"] and again.data["captured"]
    assert again.data["pending_runs"] == first.data["pending_runs"] == 1
    assert not asyncio.run(component(service, bank).capture()).data["captured"]
    flushed(service, bank, "s1")
    found = rows(service, bank, search_query="cat")
    assert {(row["sender"], row["content"]) for row in found} == {
        ("user", "My cat is called Mithril."),
        ("assistant", "A fine name."),
    }


def test_in_a_flow(service: Served, bank: str) -> None:
    """Chat input → retrieve → chat output, run by Langflow's engine with a session id."""
    chat_in = ChatInput()
    memory = Component(_id="memory").set(url=service.url, api_key=service.api_key, bank=bank, search_query=chat_in.message_response)
    chat_out = ChatOutput().set(input_value=memory.give_context)
    graph = Graph(chat_in, chat_out)
    graph.session_id = "s1"
    results = list(graph.start(inputs=None, config={"output": {"cache": False}}))
    assert results
    assert "Mithril" in str(chat_out.get_output_by_method(chat_out.message_response).value or results)


def test_langflow_finds_it_in_a_folder_of_components(tmp_path: Path) -> None:
    from lfx.interface.components import aget_all_types_dict

    (tmp_path / "memory").mkdir()
    shutil.copy(FILE, tmp_path / "memory")
    found = asyncio.run(aget_all_types_dict([str(tmp_path)]))
    assert "MemoryBank" in str(found)


def flushed(service: Served, bank: str, key: str) -> None:
    job = service.call("POST", f"/memory_banks/{bank}/flush", {"key": key})
    path = f"/memory_banks/{bank}/jobs/{job['id']}"
    while job["status"] in {"queued", "running"}:
        job = service.call("GET", path)
    assert job["status"] == "completed", job

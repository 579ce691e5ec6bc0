"""The example's chatbot and memory graph against the whole service, with models of rules on both sides."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from examples import models
from examples.memory_service import chatbot, memory_graph
from examples.memory_service.connection import BANK, IDLE_SECONDS, Memory
from examples.offline import model_server
from examples.offline.distiller import distilled
from tests.serving import Served, served

pytestmark = [pytest.mark.clients, pytest.mark.emulator]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with (
        model_server.playing(distilled) as url,
        served(tmp_path_factory.mktemp("memory-service"), environment=model_server.settings(url)) as started,
    ):
        yield started


@pytest.fixture
def memory(service: Served, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Memory:
    """Connected as the graphs are, with a bank of the test's own."""
    for name, value in {
        "MEMORY_BANKS_URL": service.url,
        "MEMORY_BANKS_API_KEY": service.api_key,
        models.MODEL: models.OFFLINE,
        BANK: request.node.name,
        IDLE_SECONDS: "3600",
    }.items():
        monkeypatch.setenv(name, value)
    return Memory()


def say(bot: chatbot.Chatbot, text: str, user: str, thread: str) -> str:
    config: Any = {"configurable": {"user_id": user, "thread_id": thread}}
    return str(bot.invoke({"messages": [("user", text)]}, config)["messages"][-1].text)


def test_three_quick_turns_are_one_job_and_nothing_is_distilled_before_the_quiet_time(
    memory: Memory, service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = chatbot.build(memory, InMemorySaver())
    for text in ("Hi, my name is Bob.", "I like jazz and chess.", "My friend Ana plays the cello."):
        say(bot, text, "bob", "one")
    [job] = memory.bank.jobs()
    assert (job["key"], job["status"]) == ("one", "queued")
    assert memory.all("bob") == []
    service.call("PUT", f"/memory_banks/{memory.bank.id}", {"capture": {"idle_seconds": 1}})
    until = time.monotonic() + 60
    while memory.bank.jobs()[0]["status"] != "completed":
        assert time.monotonic() < until, memory.bank.jobs()
        time.sleep(0.1)
    assert [one["id"] for one in memory.bank.jobs()] == [job["id"]]
    found = {item.namespace: item.value for item in memory.all("bob")}
    assert found[("bob", "User")] == {"user_name": "Bob", "interests": ["jazz", "chess"]}
    assert "Ana plays the cello" in found[("bob", "Note")]["content"]


def test_memory_forms_on_demand_for_this_user_alone_and_another_thread_knows_it(memory: Memory) -> None:
    bot, graph = chatbot.build(memory, InMemorySaver()), memory_graph.build(memory)
    say(bot, "My name is Ana.", "ana@x.org", "one")
    answer = graph.invoke({"user_id": "ana@x.org", "thread_id": "one"})
    assert [(one["type"], one["value"]) for one in answer["memories"]] == [("User", {"user_name": "Ana"})]
    assert answer["job"]["status"] == "completed"
    assert say(bot, "What is my name?", "ana@x.org", "two") == "Your name is Ana."
    assert say(bot, "What is my name?", "ana", "three") == "You have not told me yet."
    say(bot, "Call me Anouk.", "ana@x.org", "two")
    [renamed] = graph.invoke({"user_id": "ana@x.org", "thread_id": "two"})["memories"]
    assert renamed["value"] == {"user_name": "Anouk"}
    assert graph.invoke({"user_id": "nobody", "thread_id": "unheard"})["memories"] == []


def test_the_guided_talk() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_BANKS_", "EXAMPLES_"))}
    command = [sys.executable, "-m", "examples.memory_service", "--offline", "--quiet", "5"]
    talk = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=180, check=False)
    assert (talk.returncode, talk.stderr) == (0, "")
    assert re.search(r"after \d+\.\d seconds: 1 job, completed", talk.stdout)
    assert "chatbot: Your name is Bob." in talk.stdout
    assert "chatbot: You have not told me yet." in talk.stdout
    assert "User: {'user_name': 'Robert', 'interests': ['jazz', 'chess']}" in talk.stdout

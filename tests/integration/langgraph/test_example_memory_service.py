"""The example's two graphs: what the chatbot recalls and hands in, what it does while the service is away, on-demand forming."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import SearchItem

from clients.cli.client import Refused
from clients.langgraph import MemoryBankStore, Unavailable
from examples.memory import NotDistilled
from examples.memory_service import chatbot, memory_graph
from examples.memory_service.connection import Memory
from examples.memory_service.scripted import ScriptedModel

FOLDER = Path(__file__).parents[3] / "examples" / "memory_service"


class Remembering(Memory):
    """A real store, and a bank that only notes down what it was asked."""

    def __init__(self, store: MemoryBankStore) -> None:
        self.__dict__["store"] = store
        self.__dict__["model"] = ScriptedModel()
        self.runs: list[dict[str, Any]] = []
        self.flushed: list[str] = []
        self.queries: list[str] = []
        self.away: Exception | None = None

    def recall(self, user_id: str, conversation: str) -> Sequence[SearchItem]:
        self.queries.append(conversation)
        if self.away is not None:
            raise Unavailable("away")
        return super().recall(user_id, conversation)

    def hand_in(self, run_id: str, *, thread_id: str, user_id: str, messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        if self.away is not None:
            raise self.away
        self.runs.append({"run_id": run_id, "key": thread_id, "user_id": user_id, "messages": list(messages)})
        return {}

    def form_now(self, thread_id: str) -> dict[str, Any]:
        if self.away is not None:
            raise self.away
        self.flushed.append(thread_id)
        return {"id": "j", "status": "completed"}


@pytest.fixture
def memory(store: MemoryBankStore) -> Remembering:
    return Remembering(store)


@pytest.fixture
def bot(memory: Remembering) -> chatbot.Chatbot:
    return chatbot.build(memory, InMemorySaver())


def say(bot: chatbot.Chatbot, text: str, *, user: str = "bob", thread: str = "t") -> str:
    config: Any = {"configurable": {"user_id": user, "thread_id": thread}}
    return str(bot.invoke({"messages": [("user", text)]}, config)["messages"][-1].text)


def test_it_recalls_what_the_service_formed_of_this_user(bot: chatbot.Chatbot, memory: Remembering) -> None:
    memory.store.put(("bob", "User"), "profile", {"user_name": "Bob", "interests": ["jazz", "chess"], "age": 34})
    memory.store.put(("bob", "Note"), "1", {"context": "friends", "content": "Friend Ana plays chess"})
    memory.store.put(("bobby", "User"), "profile", {"user_name": "Bobby"})
    assert say(bot, "What is my name?") == "Your name is Bob."
    assert say(bot, "What do I like?") == "You like jazz, chess."
    assert "Friend Ana plays chess" in say(bot, "What do you know about me?")
    assert say(bot, "What is my name?", user="eve", thread="e") == "You have not told me yet."
    assert memory.queries[0] == "What is my name?"
    assert memory.queries[1] == "What is my name?\nYour name is Bob.\nWhat do I like?"


def test_ten_memories_at_most_those_nearest_to_the_conversation(bot: chatbot.Chatbot, memory: Remembering) -> None:
    for n in range(30):
        memory.store.put(("bob", "Note"), f"{n}", {"context": "", "content": f"filler number {n}"})
    memory.store.put(("bob", "Note"), "needle", {"context": "", "content": "the umbrella is yellow"})
    for n in range(30, 40):
        memory.store.put(("bob", "Note"), f"{n}", {"context": "", "content": f"filler number {n}"})
    told = say(bot, "the umbrella is which colour?").splitlines()
    assert told[1] == "- the umbrella is yellow"
    assert len(told) == 11


def test_each_turn_is_handed_in_once(bot: chatbot.Chatbot, memory: Remembering) -> None:
    say(bot, "My name is Bob.")
    say(bot, "I like tea.")
    assert [run["messages"] for run in memory.runs] == [
        [{"sender": "user", "text": "My name is Bob."}, {"sender": "assistant", "text": "Nice to know, Bob."}],
        [{"sender": "user", "text": "I like tea."}, {"sender": "assistant", "text": "Nice to know, Bob."}],
    ]
    assert {(run["key"], run["user_id"]) for run in memory.runs} == {("t", "bob")}
    assert len({run["run_id"] for run in memory.runs}) == 2


def test_a_turn_tried_again_has_the_same_run_id(bot: chatbot.Chatbot, memory: Remembering) -> None:
    say(bot, "My name is Bob.")
    config: Any = {"configurable": {"user_id": "bob", "thread_id": "t"}}
    before = next(state for state in bot.get_state_history(config) if state.next == ("hand_in",))
    bot.invoke(None, {"configurable": config["configurable"] | before.config["configurable"]})
    assert len(memory.runs) == 2
    assert memory.runs[0] == memory.runs[1]


@pytest.mark.parametrize("error", [Refused(503, "busy"), Refused(500, "broken")])
def test_it_answers_while_the_service_is_away_and_hands_in_later(
    bot: chatbot.Chatbot, memory: Remembering, error: Exception
) -> None:
    memory.away = error
    assert say(bot, "My name is Bob.") == "Nice to know, Bob."
    assert say(bot, "I like tea.") == "Nice to know, Bob."
    memory.away = None
    say(bot, "I like chess.")
    assert [[one["text"] for one in run["messages"] if one["sender"] == "user"] for run in memory.runs] == [
        ["My name is Bob.", "I like tea.", "I like chess."]
    ]


def test_a_long_backlog_goes_in_several_runs(bot: chatbot.Chatbot, memory: Remembering) -> None:
    config: Any = {"configurable": {"user_id": "bob", "thread_id": "t"}}
    bot.invoke({"messages": [("user", f"line {n}") for n in range(90)]}, config)
    assert [len(run["messages"]) for run in memory.runs] == [40, 40, 11]
    assert len({run["run_id"] for run in memory.runs}) == 3


def test_nobody_in_particular_is_refused(bot: chatbot.Chatbot) -> None:
    with pytest.raises(ValueError, match="user_id"):
        bot.invoke({"messages": [("user", "hello")]}, {"configurable": {"thread_id": "t"}})


def test_memory_graph_forms_now_and_gives_the_users_memories(memory: Remembering) -> None:
    memory.store.put(("a%2Eb", "User"), "profile", {"user_name": "Ana"})
    memory.store.put(("a", "User"), "profile", {"user_name": "Other"})
    answer = memory_graph.build(memory).invoke({"user_id": "a.b", "thread_id": "t"})
    assert set(answer) == {"job", "memories"}
    [one] = answer["memories"]
    assert (one["type"], one["key"], one["value"]) == ("User", "profile", {"user_name": "Ana"})
    assert memory.flushed == ["t"]
    memory.away = NotDistilled("job j failed: no model")
    with pytest.raises(NotDistilled, match="no model"):
        memory_graph.build(memory).invoke({"user_id": "a.b", "thread_id": "t"})


def test_the_graphs_that_langgraph_json_names_import_by_path_and_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    named = json.loads((FOLDER / "langgraph.json").read_text())
    assert set(named["graphs"]) == {"chatbot", "memory_graph"}
    assert (FOLDER / named["dependencies"][0] / "pyproject.toml").exists()
    for name, place in named["graphs"].items():
        path, _, variable = place.partition(":")
        spec = importlib.util.spec_from_file_location(f"of_langgraph_json_{name}", FOLDER / path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        assert isinstance(getattr(module, variable), CompiledStateGraph)

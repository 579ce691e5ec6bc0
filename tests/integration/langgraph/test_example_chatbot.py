"""The example's chatbot on our store, over HTTP and direct: what it remembers, of whom, and what it does not lose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from pydantic import Field

from clients.langgraph import MemoryBankStore
from examples.chatbot import graph, prompts
from examples.chatbot.scripted import ScriptedModel

Hook = Callable[[list[BaseMessage]], str | None]


class Watched(ScriptedModel):
    """The scripted model, watched: `seen` is what it was given; `instead`, asked first, may answer for it."""

    seen: list[list[BaseMessage]] = Field(default_factory=list)
    instead: Hook = lambda _: None

    def _generate(self, messages: list[BaseMessage], *rest: Any, **named: Any) -> ChatResult:
        self.seen.append(messages)
        answer = self.instead(messages)
        if answer is not None:
            return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])
        return super()._generate(messages, *rest, **named)

    @property
    def notes(self) -> list[list[BaseMessage]]:
        """What it was given to write notes from."""
        return [messages for messages in self.seen if _is_note(messages)]


def _is_note(messages: list[BaseMessage]) -> bool:
    return prompts.CONVERSATION[:17] in messages[-1].text


class Chat:
    """The chatbot with conversations by name."""

    def __init__(self, store: BaseStore, model: Watched | None = None) -> None:
        self.store, self.model = store, model or Watched()
        self.graph = graph.build(self.model, store=store, checkpointer=InMemorySaver())

    def __call__(self, text: str, *, user: str = "bob", thread: str = "1") -> str:
        return str(self.graph.invoke({"messages": [("user", text)]}, self.config(user, thread))["messages"][-1].text)

    def config(self, user: str, thread: str) -> Any:
        return {"configurable": {"user_id": user, "thread_id": thread}}

    def note(self, user: str = "bob") -> str | None:
        item = self.store.get(("memory", user), "user_memory")
        return item.value["memory"] if item else None


@pytest.fixture
def chat(store: MemoryBankStore) -> Chat:
    return Chat(store)


def test_thread_two_of_a_user_knows_what_thread_one_learned_and_another_user_does_not(chat: Chat) -> None:
    chat("Hi, my name is Bob and I like jazz.", thread="1")
    assert chat("What is my name?", thread="2") == "Your name is Bob."
    assert chat("What do I like?", thread="2") == "You like jazz."
    assert chat("What is my name?", user="eve", thread="3") == "You have not told me yet."
    assert chat.note("eve") is None
    # A new thread has none of the old one's messages: it knew from the note alone.
    shown = chat.graph.get_state(chat.config("bob", "2")).values["messages"]
    assert "Hi, my name" not in " ".join(message.text for message in shown)


def test_one_note_a_user_overwritten_and_the_newest_wins(chat: Chat) -> None:
    chat("My name is Bob. I like jazz and I live in Lisbon.")
    chat("Call me Robert.", thread="2")
    chat("I moved to Porto and I'm 34.", thread="1")
    assert chat.note() == "- Name: Robert\n- Likes jazz\n- Lives in Porto\n- Age: 34"
    items = chat.store.search(("memory",))
    assert [(item.namespace, item.key, set(item.value)) for item in items] == [(("memory", "bob"), "user_memory", {"memory"})]


def test_the_model_is_told_that_there_is_no_memory_then_shown_it(chat: Chat) -> None:
    chat("I like tea.")
    chat("I like chess.")
    shown = [messages[0].text for messages in chat.model.seen]
    assert ["No existing memory found." in text for text in shown] == [True, True, False, False]
    assert ["- Likes tea" in text for text in shown] == [False, False, True, True]


def test_only_what_the_user_said_is_remembered(chat: Chat) -> None:
    chat.model.instead = lambda messages: None if _is_note(messages) else "I like opera, and my name is Hal."
    chat("I like tea.")
    assert chat.note() == "- Likes tea"


def test_the_note_is_written_from_what_is_new(chat: Chat) -> None:
    """An old message read again must not undo what another thread corrected since."""
    chat("My name is Bob.", thread="1")
    chat("Call me Robert.", thread="2")
    chat("I like tea.", thread="1")
    assert "Name: Robert" in (chat.note() or "")
    last = chat.model.notes[-1][-1].text
    assert "I like tea." in last
    assert "Nice to know, Bob." in last, "the message before the new ones, for what a yes refers to"
    assert "My name is Bob" not in last


def test_a_turn_whose_note_failed_is_taken_in_with_the_next(chat: Chat) -> None:
    def fails(messages: list[BaseMessage]) -> str | None:
        if _is_note(messages):
            raise ConnectionError("the model is away")
        return None

    chat.model.instead = fails
    with pytest.raises(ConnectionError):
        chat("My name is Bob.")
    chat.model.instead = lambda _: None
    chat("I like tea.")
    assert chat.note() == "- Name: Bob\n- Likes tea"


def test_a_blank_answer_wipes_nothing(chat: Chat) -> None:
    chat("My name is Bob.")
    chat.model.instead = lambda messages: " \n" if _is_note(messages) else None
    chat("I like tea.")
    assert chat.note() == "- Name: Bob"


def test_two_threads_of_a_user_that_end_at_once_lose_nothing(chat: Chat) -> None:
    chat("My name is Bob.")
    other = Chat(chat.store)
    rivals = ["I like chess.", "I live in Lisbon."]

    def meanwhile(messages: list[BaseMessage]) -> str | None:
        if _is_note(messages) and rivals:
            other(rivals.pop(), thread="other")
        return None

    chat.model.instead = meanwhile
    chat("I like tea.")
    assert sorted((chat.note() or "").splitlines()) == ["- Likes chess", "- Likes tea", "- Lives in Lisbon", "- Name: Bob"]


def test_a_user_called_by_an_e_mail_address(chat: Chat) -> None:
    chat("My name is Ana.", user="a.b@x.org")
    assert chat("What is my name?", user="a.b@x.org", thread="2") == "Your name is Ana."
    assert chat("What is my name?", user="a%2Eb@x.org", thread="3") == "You have not told me yet."


def test_awaited_and_on_another_store() -> None:
    bot = Chat(InMemoryStore())

    async def talk() -> str:
        await bot.graph.ainvoke({"messages": [("user", "I like tea.")]}, bot.config("bob", "1"))
        answer = await bot.graph.ainvoke({"messages": [("user", "What do I like?")]}, bot.config("bob", "2"))
        return str(answer["messages"][-1].text)

    assert asyncio.run(talk()) == "You like tea."

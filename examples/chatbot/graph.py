"""The graph: answer with what is remembered of the user, then write down what the user said.

Short-term memory is the checkpointer's, one conversation a thread. Long-term memory is the store's: one note a user, at namespace
("memory", user id) and key `user_memory`, as {"memory": text}, overwritten with each turn.
"""

from __future__ import annotations

from typing import Any, NotRequired

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage, get_buffer_string
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore, Item

from clients.langgraph import Conflict, MemoryBankStore
from examples.chatbot import prompts
from examples.memory import label

KEY = "user_memory"
TRIES = 5
"""How often a note is merged anew when another thread of the user has written it meanwhile."""


class State(MessagesState):
    """One conversation."""

    remembered: NotRequired[int]
    """How many of its messages the note has taken in. What a failed turn left is taken in with the next."""


Chatbot = CompiledStateGraph[State, None, State, State]


def build(model: BaseChatModel, *, store: BaseStore, checkpointer: BaseCheckpointSaver[Any]) -> Chatbot:
    """The chatbot. Invoke it with `configurable` {"thread_id", "user_id"}."""

    def answer(state: State, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
        system = SystemMessage(prompts.ANSWER.format(memory=_text(store.get(namespace(config), KEY))))
        return {"messages": [model.invoke([system, *state["messages"]])]}

    def remember(state: State, config: RunnableConfig, *, store: BaseStore) -> dict[str, Any]:
        # With the message before, which says what a "yes" means. Not the whole talk: what it said long ago is in the note,
        # and may have been corrected in another thread since.
        new = state["messages"][max(0, state.get("remembered", 0) - 1) :]
        done = {"remembered": len(state["messages"])}
        for attempt in range(TRIES):
            before = store.get(namespace(config), KEY)
            system = SystemMessage(prompts.REMEMBER.format(memory=_text(before)))
            talk = HumanMessage(prompts.CONVERSATION.format(conversation=get_buffer_string(new)))
            note = model.invoke([system, talk]).text.strip()
            # A model that has nothing to say must not wipe what is known.
            if not note or note == _text(before):
                return done
            try:
                _overwrite(store, namespace(config), note, before)
            except Conflict:
                if attempt == TRIES - 1:
                    raise
            else:
                break
        return done

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_node("remember", remember)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "remember")
    builder.add_edge("remember", END)
    return builder.compile(checkpointer=checkpointer, store=store)


def namespace(config: RunnableConfig) -> tuple[str, str]:
    """Where the user's note is."""
    return "memory", label(str(config["configurable"]["user_id"]))


def _text(item: Item | None) -> str:
    return str(item.value["memory"]) if item else prompts.NO_MEMORY


def _overwrite(store: BaseStore, place: tuple[str, str], note: str, before: Item | None) -> None:
    """Put the note over the one it was made from. Raises `Conflict` when that is not there any more."""
    value = {"memory": note}
    if isinstance(store, MemoryBankStore):
        # Compare and set: two threads of one user that end at once lose nothing.
        store.put_if(place, KEY, value, version=getattr(before, "version", None))
    else:
        store.put(place, KEY, value)

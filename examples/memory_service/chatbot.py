"""The graph `chatbot`: recalls, answers, and hands the turn to the memory service, which remembers in its own time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NotRequired

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import SearchItem

from clients.cli.client import Refused
from clients.cli.failure import Failure
from clients.langgraph import Unavailable
from examples.memory_service import prompts
from examples.memory_service.connection import Memory

logger = logging.getLogger(__name__)

QUERY_MESSAGES, QUERY_CHARACTERS = 3, 4_000
"""Of the conversation, what memories are looked for with: the end of it."""

RUN_MESSAGES = 40
"""In one run; the service takes no more."""

SENDERS = {"human": "user", "ai": "assistant"}


class State(MessagesState):
    """One conversation."""

    handed_in: NotRequired[int]
    """How many of its messages the memory service has."""


Chatbot = CompiledStateGraph[State, None, State, State]


def build(memory: Memory, checkpointer: BaseCheckpointSaver[Any] | None = None) -> Chatbot:
    """The chatbot. Invoke it with `configurable` {"thread_id", "user_id"}; `langgraph dev` brings its own checkpointer."""

    def answer(state: State, config: RunnableConfig) -> dict[str, Any]:
        system = prompts.ANSWER.format(memories=prompts.memories(recalled(state, config)))
        return {"messages": [memory.model.invoke([SystemMessage(system), *state["messages"]])]}

    def recalled(state: State, config: RunnableConfig) -> list[SearchItem]:
        try:
            return list(memory.recall(_user(config), query(state["messages"])))
        except Unavailable as error:
            # Better an answer that remembers nothing than none.
            logger.warning("answering without memories: %s", error)
            return []

    def hand_in(state: State, config: RunnableConfig) -> dict[str, Any]:
        done, messages = state.get("handed_in", 0), state["messages"]
        thread = str(config["configurable"]["thread_id"])
        try:
            while done < len(messages):
                turn = messages[done : done + RUN_MESSAGES]
                said = [{"sender": SENDERS[one.type], "text": one.text} for one in turn if one.type in SENDERS and one.text.strip()]
                if said:
                    # The same turn handed in again has the same id, and counts once.
                    memory.hand_in(f"{thread}:{turn[-1].id}", thread_id=thread, user_id=_user(config), messages=said)
                done += len(turn)
        except (Failure, Refused) as error:
            # The answer stands; what the service does not have yet comes with the next turn.
            logger.warning("handing in later: %s", error)
        return {"handed_in": done}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_node("hand_in", hand_in)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "hand_in")
    builder.add_edge("hand_in", END)
    return builder.compile(checkpointer=checkpointer)


def query(messages: Sequence[BaseMessage]) -> str:
    """The end of the conversation, as memories are looked for with it."""
    return "\n".join(message.text for message in messages[-QUERY_MESSAGES:])[-QUERY_CHARACTERS:]


def _user(config: RunnableConfig) -> str:
    user = config["configurable"].get("user_id")
    if not user:
        raise ValueError("configurable.user_id is needed: whose memory it is")
    return str(user)


graph = build(Memory())

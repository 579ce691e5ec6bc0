"""The graph `memory_graph`: forms a thread's memories now, for who can't wait until it has been quiet, and gives the user's."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from examples.memory_service.connection import Memory


class Asked(TypedDict):
    """The input."""

    user_id: str
    thread_id: str


class Formed(TypedDict):
    """The output."""

    job: dict[str, Any]
    """The distillation, as the service tells of it."""
    memories: list[dict[str, Any]]
    """All of the user's, the newest first: {"type", "key", "value", "updated_at"}."""


class State(Asked, Formed):
    """Both."""


MemoryGraph = CompiledStateGraph[State, None, Asked, Formed]


def build(memory: Memory) -> MemoryGraph:
    """The graph. It fails where the distillation does."""

    def form(state: State) -> dict[str, Any]:
        return {"job": memory.form_now(state["thread_id"])}

    def read(state: State) -> dict[str, Any]:
        items = memory.all(state["user_id"])
        return {
            "memories": [
                {"type": item.namespace[-1], "key": item.key, "value": item.value, "updated_at": item.updated_at.isoformat()}
                for item in items
            ]
        }

    builder = StateGraph(State, input_schema=Asked, output_schema=Formed)
    builder.add_node("form", form)
    builder.add_node("read", read)
    builder.add_edge(START, "form")
    builder.add_edge("form", "read")
    builder.add_edge("read", END)
    return builder.compile()


graph = build(Memory())

"""A chat model that needs no network: answers from the memories in its prompt and from the conversation, by rules."""

from __future__ import annotations

import json
import re
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from examples.chatbot.scripted import reply

_MEMORIES = re.compile(r"<memories>\n(.*?)\n</memories>", re.DOTALL)


class ScriptedModel(BaseChatModel):
    """Understands the sentences that `examples/offline/facts.py` does, and questions about them."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> ChatResult:
        found = _MEMORIES.search(messages[0].text)
        said = [message.text for message in messages if message.type == "human"]
        text = reply(_note(found[1] if found else ""), said)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def _note(memories: str) -> str:
    """Documents as the lines that the rules answer from."""
    lines: list[str] = []
    for memory in memories.splitlines():
        kind, _, value = memory.partition(": ")
        if kind == "User":
            lines += _profile(json.loads(value))
        elif value:
            lines.append(f"- {json.loads(value).get('content', '')}")
    return "\n".join(lines)


def _profile(user: dict[str, Any]) -> list[str]:
    starts = {"user_name": "- Name: ", "age": "- Age: ", "home": "- Lives in ", "occupation": "- Works as "}
    lines = [f"{start}{user[name]}" for name, start in starts.items() if user.get(name)]
    return lines + [f"- Likes {one}" for one in user.get("interests") or ()]

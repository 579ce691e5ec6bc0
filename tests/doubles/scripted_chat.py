"""A chat model that says what a test tells it to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory_banks.ports import Message

Answer = str | Exception | Callable[["Call"], str]


@dataclass(frozen=True)
class Call:
    """One call of the model."""

    system: str
    messages: tuple[Message, ...]
    max_tokens: int
    timeout_seconds: float

    @property
    def text(self) -> str:
        """All that the model was given."""
        return "\n".join([self.system, *(message.content for message in self.messages)])


class ScriptedChat:
    """Gives its answers in order, the last one for ever. An exception is raised; a function makes the answer from the call."""

    def __init__(self, *answers: Answer, window: int = 100_000, model: str = "scripted/chat") -> None:
        self.model = model
        self.window = window
        self.calls: list[Call] = []
        self._answers = list(answers)

    def complete(self, system: str, messages: Sequence[Message], *, max_tokens: int, timeout_seconds: float) -> str:
        call = Call(system, tuple(messages), max_tokens, timeout_seconds)
        self.calls.append(call)
        answer = self._answers[min(len(self.calls), len(self._answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else answer(call)

"""Structured answers of a chat model: JSON, validated, and asked for again with the reason when it is not valid.

What a model answers is data. All calls of one request share one deadline.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from .ports import AnswerCut, ChatModel, Clock, Message, ModelError, ModelUnavailable

Shape = TypeVar("Shape", bound=BaseModel)

ATTEMPTS = 3

_FENCED = re.compile(r"```(?:json)?\s*(.*?)```", re.DOTALL)


def is_rule_based(chat: ChatModel) -> bool:
    """Whether no model that can follow instructions is configured: then the answer has to come from rules."""
    return chat.model.startswith("embedded/")


def ask(
    chat: ChatModel,
    shape: type[Shape],
    system: str,
    messages: Sequence[Message],
    *,
    max_tokens: int,
    deadline: int,
    clock: Clock,
    check: Callable[[Shape], object] | None = None,
) -> Shape:
    """The model's answer as `shape`. `check` raises `ValueError`, with the reason, for one that is not good enough.

    Raises `ModelError` after three answers that are none, `ModelUnavailable` at the deadline (ms).
    """
    schema = json.dumps(shape.model_json_schema(), ensure_ascii=False)
    instructions = (
        f"{system}\n\nAnswer with one JSON object only, no other text. It must be valid under this JSON Schema:\n{schema}"
    )
    talk = list(messages)
    reason = ""
    for _ in range(ATTEMPTS):
        left = (deadline - clock.now()) / 1000
        if left <= 0:
            raise ModelUnavailable("The model took too long." + (f" Its last answer: {reason}" if reason else ""))
        try:
            answer = chat.complete(instructions, talk, max_tokens=max_tokens, timeout_seconds=left)
            made = shape.model_validate_json(_json_of(answer))
            if check:
                check(made)
            return made
        except AnswerCut as cut:
            answer, reason = cut.text, "it is too long and was cut off"
        except ValidationError as error:
            problems = [f"{'.'.join(map(str, one['loc'])) or 'answer'}: {one['msg']}" for one in error.errors()[:5]]
            reason = "; ".join(problems)
        except ValueError as error:
            reason = str(error)
        # Alternating roles are what every provider takes; an empty message is not.
        talk += [
            Message("assistant", answer if answer.strip() else "(no answer)"),
            Message("user", f"That is not valid: {reason}. Answer again, with the JSON object alone."),
        ]
    raise ModelError(f"The model gave no valid answer in {ATTEMPTS} attempts: {reason}")


def _json_of(answer: str) -> str:
    """The JSON object in an answer that may stand in a code fence or between words."""
    fenced = _FENCED.search(answer)
    text = fenced[1] if fenced else answer
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text

"""Which chat model an example talks with."""

from __future__ import annotations

import os

from langchain_core.language_models import BaseChatModel

MODEL = "EXAMPLES_MODEL"
"""Environment variable: a model as LangChain names it, such as `openai:gpt-4.1-mini`."""


OFFLINE = "offline"
"""As the name of a model: the example's own, of rules."""


class NoModel(Exception):
    """No model is chosen, or its package is not installed. The message says what to do."""


def chosen(name: str | None = None) -> BaseChatModel:
    """The model of this name, or of the variable. Endpoints and keys are read from the provider's own variables
    (`OPENAI_BASE_URL`, `OPENAI_API_KEY`, …). Raises `NoModel`."""
    name = name or os.environ.get(MODEL)
    if not name:
        raise NoModel(f"name a model: {MODEL}=openai:gpt-4.1-mini, or, for one of rules, {MODEL}={OFFLINE} or --offline")
    try:
        from langchain.chat_models import init_chat_model

        model: BaseChatModel = init_chat_model(name, temperature=0)
    except ImportError as error:
        raise NoModel(
            f'{name} needs packages that are not installed ({error}): run with `uv run --with "langchain[openai]" …`'
        ) from error
    except ValueError as error:
        raise NoModel(str(error)) from error
    return model

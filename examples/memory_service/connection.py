"""Where the memory service is, and what the two graphs ask of it. Nothing is connected before the first question."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.store.base import SearchItem

from clients.cli.client import Client
from clients.langgraph import MemoryBankStore
from examples import models
from examples.memory import FormingBank, label
from examples.offline import service

BANK, IDLE_SECONDS = "EXAMPLES_BANK", "EXAMPLES_IDLE_SECONDS"
"""Environment variables: the bank's name, and, where it is made anew, its quiet time."""

RECALLED = 10
LISTED = 100


class Memory:
    """The bank that forms memories and the store that has them, of the service that the environment names."""

    @cached_property
    def _service(self) -> service.Service:
        named = service.named()
        if named is None:
            raise service.NotStarted(
                f"name a memory service: {service.URL} and {service.API_KEY} (`memory-banks serve` prints both)"
            )
        return named

    @cached_property
    def bank(self) -> FormingBank:
        """The bank; made where there is none. User and Note are its memory types unless its settings say otherwise."""
        settings = {"distillation": "schemas", "idle_seconds": int(os.environ.get(IDLE_SECONDS) or 15), "max_wait_seconds": 600}
        name = os.environ.get(BANK) or "langgraph-memory"
        return FormingBank.called(Client(self._service.url, self._service.api_key), name, settings)

    @cached_property
    def store(self) -> MemoryBankStore:
        """The store of the same account."""
        return MemoryBankStore(self._service.url, self._service.api_key)

    @cached_property
    def model(self) -> BaseChatModel:
        """The chatbot's model."""
        if os.environ.get(models.MODEL) == models.OFFLINE:
            from examples.memory_service.scripted import ScriptedModel

            return ScriptedModel()
        return models.chosen()

    def recall(self, user_id: str, conversation: str) -> Sequence[SearchItem]:
        """The user's memories of all types, those nearest to the conversation first."""
        return self.store.search((label(user_id),), query=conversation, limit=RECALLED)

    def all(self, user_id: str) -> Sequence[SearchItem]:
        """The user's memories, the newest first."""
        return self.store.search((label(user_id),), limit=LISTED)

    def hand_in(self, run_id: str, *, thread_id: str, user_id: str, messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """Leave a finished turn with the service, which distils it when the thread has been quiet."""
        return self.bank.capture(run_id, key=thread_id, user_id=user_id, messages=messages)

    def form_now(self, thread_id: str) -> dict[str, Any]:
        """Have what waits of a thread distilled, and wait for it."""
        return self.bank.flush(thread_id)

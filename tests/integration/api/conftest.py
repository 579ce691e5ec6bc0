"""The `api` function over doubles of our own ports, called with real event shapes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from memory_banks import access, bootstrap, ingestion
from memory_banks.adapters.embedded.summariser import ExtractiveSummariser

from tests.doubles import world
from tests.doubles.clock import ManualClock
from tests.doubles.gateway import Reply, event, reply


@dataclass
class World(world.World):
    """All ports of one test, and the function on top of them; no chat model that needs an account."""

    chat: Any = field(default_factory=lambda: ExtractiveSummariser(100_000))

    def key(self, account: str = "acme", *scopes: str, expires_at: int | None = None) -> str:
        """The secret of a new API key."""
        return access.create_key(self, account, scopes=scopes or ("admin",), expires_at=expires_at)[1]

    def ingest(self) -> None:
        """Have everything that was announced indexed."""
        while taken := self.ingestion.take():
            for message in taken:
                ingestion.ingest(self, message)


@dataclass
class Client:
    """An account's way to the API."""

    world: World
    secret: str | None
    version: str | None = None

    def __call__(self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **request: Any) -> Reply:
        from functions.api.handler import handler

        sent = dict(headers or {})
        if self.secret is not None:
            sent.setdefault("x-api-key", self.secret)
        if self.version is not None:
            sent.setdefault("seclai-version", self.version)
        return reply(handler(event(method, path, headers=sent, **request), None))

    def bank(self, **settings: Any) -> str:
        """The id of a new bank."""
        made = self("POST", "/memory_banks", body={"name": "Support"} | settings)
        assert made.status == 201, made
        return str(made.json["id"])

    def write(self, bank: str, content: str = "hello", **entry: Any) -> dict[str, Any]:
        """A new entry of a conversation bank."""
        body = {"content": content, "key": "k", "speaker": "user"} | entry
        made = self("POST", f"/memory_banks/{bank}/entries", body=body)
        assert made.status == 201, made
        return dict(made.json["entries"][0])


@pytest.fixture
def world(clock: ManualClock, chance: random.Random) -> Iterator[World]:
    """Ports of this test alone."""
    made = World(clock, chance)
    bootstrap.use(made)
    yield made
    bootstrap.use(None)


@pytest.fixture
def api(world: World) -> Client:
    """The API as the account `acme` sees it, with all scopes and the default version."""
    return Client(world, world.key())


@pytest.fixture
def stranger(world: World) -> Client:
    """The API as another account sees it, with all scopes."""
    return Client(world, world.key("other"))

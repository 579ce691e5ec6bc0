"""`MemoryBankStore` in both modes: over HTTP, through the real `api` function, and direct over ports."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from memory_banks import access, bootstrap

from clients.langgraph import MemoryBankStore
from clients.langgraph.http import Http
from functions.api.handler import handler
from tests.doubles.gateway import event
from tests.doubles.world import World


class Gateway:
    """Carries requests of httpx to the function, and may be told to fail. `seen` are the paths that arrived."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.script: list[Any] = []
        """What becomes of the next requests: a status, an exception, or None for what the function answers."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(f"{request.method} {request.url.path}")
        fate = self.script.pop(0) if self.script else None
        if isinstance(fate, Exception):
            raise fate
        if isinstance(fate, int):
            return httpx.Response(fate, json={"error": {"code": "away", "message": "try again"}}, headers={"Retry-After": "0"})
        asked = event(
            request.method,
            request.url.path,
            query=request.url.query.decode(),
            headers=dict(request.headers),
            raw=request.content or None,
        )
        answer = handler(asked, None)
        return httpx.Response(answer["statusCode"], headers=answer["headers"], text=answer["body"] or "")


@pytest.fixture
def world() -> Iterator[World]:
    made = World(chance=random.Random(7))
    bootstrap.use(made)
    yield made
    bootstrap.use(None)


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def over_http(world: World, gateway: Gateway) -> Callable[..., MemoryBankStore]:
    """A store over HTTP: of `acme` with all scopes, unless said otherwise."""

    def made(account: str = "acme", *scopes: str, **rest: Any) -> MemoryBankStore:
        secret = access.create_key(world, account, scopes=scopes or ("admin",))[1]
        way = Http("http://api.test", secret, 30)
        way._settings["transport"] = httpx.MockTransport(gateway)
        return MemoryBankStore(way=way, **rest)

    return made


@pytest.fixture(params=["http", "direct"])
def store(request: pytest.FixtureRequest, world: World, over_http: Callable[..., MemoryBankStore]) -> MemoryBankStore:
    return over_http() if request.param == "http" else MemoryBankStore.direct("acme", ports=world)

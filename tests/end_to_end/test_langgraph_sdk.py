"""LangGraph's published clients against the whole service on this machine: `langgraph_sdk`'s store, sync and async, and graphs'
`BaseStore` on a real table, bucket and embedding model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk import get_client, get_sync_client

from clients.langgraph import Conflict, MemoryBankStore
from tests.serving import Served, served

pytestmark = [pytest.mark.clients, pytest.mark.emulator]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("langgraph")
    with served(folder) as started:
        yield started


Call = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def call(request: pytest.FixtureRequest, service: Served) -> Iterator[Call]:
    """A way to call the methods of the client's store: `call("put_item", ["a"], key="k", value={})`."""
    loop = asyncio.new_event_loop()

    def store() -> Any:
        if request.param == "sync":
            return get_sync_client(url=service.url, api_key=service.api_key).store
        return get_client(url=service.url, api_key=service.api_key).store

    async def made() -> Any:
        return store()

    client = store() if request.param == "sync" else loop.run_until_complete(made())

    def answered(method: str, *arguments: Any, **named: Any) -> Any:
        answer = getattr(client, method)(*arguments, **named)
        return loop.run_until_complete(answer) if inspect.isawaitable(answer) else answer

    yield answered
    if request.param == "async":
        loop.run_until_complete(client.http.client.aclose())
    else:
        client.http.client.close()
    loop.close()


@pytest.fixture
def root() -> str:
    return f"test {uuid4().hex[:8]}"


def test_an_item_lives_its_life(call: Call, root: str) -> None:
    namespace = [root, "42: ä_%*"]
    value = {"theme": "dark", "score": 4.5, "whole": 2.0, "deep": {"list": [1, None, True, "日本"]}}
    assert call("put_item", namespace, key="prefs", value=value) is None
    item = call("get_item", namespace, key="prefs")
    assert (item["namespace"], item["key"], item["value"]) == (namespace, "prefs", value)
    assert isinstance(item["value"]["whole"], float)
    assert call("search_items", [root])["items"] == [item | {"score": None}]
    assert call("list_namespaces", prefix=[root])["namespaces"] == [namespace]
    call("put_item", namespace, key="prefs", value={"theme": "light"}, index=False)
    again = call("get_item", namespace, key="prefs")
    assert again["created_at"] == item["created_at"]
    assert again["updated_at"] > item["updated_at"]
    assert call("delete_item", namespace, key="prefs") is None
    assert call("get_item", namespace, key="prefs") is None
    assert call("search_items", [root])["items"] == []
    assert call("list_namespaces", prefix=[root])["namespaces"] == []


def test_it_finds_by_meaning_at_once_and_under_whole_labels_only(call: Call, root: str) -> None:
    texts = {"food": "She loves spicy Thai curry", "work": "He repairs old church organs", "pet": "Their cat is called Miso"}
    for key, text in texts.items():
        call("put_item", [root, "notes"], key=key, value={"text": text}, index=["text"])
        [first, *_] = call("search_items", [root], query=text)["items"]
        assert (first["key"], first["score"] > 0.99) == (key, True)
    call("put_item", [root + "x"], key="other", value={"text": texts["food"]})
    found = call("search_items", [root], query="a pet animal's name")["items"]
    assert found[0]["key"] == "pet"
    assert {one["key"] for one in found} == set(texts)
    assert [one["key"] for one in call("search_items", [root], filter={"text": {"$gt": "T"}})["items"]] == ["pet"]
    pages = [call("search_items", [root], query="curry", limit=1, offset=n)["items"][0]["key"] for n in range(3)]
    assert pages == [one["key"] for one in call("search_items", [root], query="curry")["items"]]


def test_ttl_and_listing(call: Call, root: str) -> None:
    call("put_item", [root, "a", "b"], key="k", value={}, ttl=5)
    call("put_item", [root, "a", "c"], key="k", value={})
    assert call("get_item", [root, "a", "b"], key="k", refresh_ttl=False) is not None
    assert call("list_namespaces", prefix=[root], max_depth=2)["namespaces"] == [[root, "a"]]
    assert call("list_namespaces", prefix=[root], suffix=["c"])["namespaces"] == [[root, "a", "c"]]
    assert call("list_namespaces", prefix=[root], limit=1, offset=1)["namespaces"] == [[root, "a", "c"]]


def test_what_is_refused(call: Call, root: str) -> None:
    for namespace, status in (([], 400), (["langgraph"], 400), ([root, ""], 422), ([root, "a\0"], 422)):
        with pytest.raises(httpx.HTTPStatusError) as failure:
            call("put_item", namespace, key="k", value={})
        assert failure.value.response.status_code == status
    with pytest.raises(httpx.HTTPStatusError) as failure:
        call("search_items", [root], filter={"x": {"$foo": 1}})
    assert failure.value.response.status_code == 400


def test_a_graphs_store(service: Served, root: str) -> None:
    with MemoryBankStore(service.url, service.api_key) as store:
        store.put((root, "a"), "long", {"text": "x" * 900_000}, index=False)
        assert len(store.get((root, "a"), "long").value["text"]) == 900_000  # type: ignore[union-attr]
        version = store.put_if((root, "a"), "k", {"memory": "likes tea"}, version=None)
        with pytest.raises(Conflict):
            store.put_if((root, "a"), "k", {"memory": "likes coffee"}, version=None)
        store.put_if((root, "a"), "k", {"memory": "likes coffee"}, version=version)
        assert [one.key for one in store.search((root,), query="coffee")] == ["k", "long"]

    async def together() -> None:
        async with MemoryBankStore(service.url, service.api_key) as store:
            await asyncio.gather(*(store.aput((root, f"n{n}"), "k", {"n": n}) for n in range(60)))
            found = await store.asearch((root,), filter={"n": {"$gte": 58}})
            assert {one.value["n"] for one in found} == {58, 59}
            assert len(await store.alist_namespaces(prefix=(root,))) == 61

    asyncio.run(together())

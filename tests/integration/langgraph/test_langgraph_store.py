"""`MemoryBankStore` is a `BaseStore` in both modes: sync and async, in batches, with ttl, and no error is swallowed."""

from __future__ import annotations

import asyncio
from collections import UserDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)
from memory_banks.ports import IndexUnavailable

from clients.langgraph import Conflict, MemoryBankStore, Refused, StoredItem, Unavailable
from clients.langgraph import http as over_the_wire
from clients.langgraph.errors import Forbidden
from tests.doubles.world import World

from .conftest import Gateway


def test_an_item_lives_its_life(store: MemoryBankStore, world: World) -> None:
    store.put(("users", "42"), "prefs", {"theme": "dark", "score": 4.5})
    item = store.get(("users", "42"), "prefs")
    assert isinstance(item, Item)
    assert (item.namespace, item.key, item.value) == (("users", "42"), "prefs", {"theme": "dark", "score": 4.5})
    assert item.created_at == item.updated_at == datetime.fromtimestamp(world.clock.now() / 1000, UTC)
    [found] = store.search(("users",), query="theme dark", filter={"score": {"$gt": 4}})
    assert isinstance(found, SearchItem)
    assert found.score is not None
    assert found.score > 0.3
    assert store.search(("users",))[0].score is None
    assert store.list_namespaces() == [("users", "42")]
    world.clock.advance(1)
    store.put(("users", "42"), "prefs", {"theme": "light"})
    again = store.get(("users", "42"), "prefs")
    assert again is not None
    assert (again.created_at, again.updated_at > item.updated_at) == (item.created_at, True)
    store.delete(("users", "42"), "prefs")
    assert store.get(("users", "42"), "prefs") is None
    assert store.search(()) == store.list_namespaces() == []


def test_the_same_awaited(store: MemoryBankStore) -> None:
    async def life() -> None:
        async with store:
            await asyncio.gather(*(store.aput(("a", str(n)), f"k{n}", {"n": n}) for n in range(20)))
            found = await asyncio.gather(*(store.aget(("a", str(n)), f"k{n}") for n in range(20)))
            assert [one and one.value for one in found] == [{"n": n} for n in range(20)]
            assert len(await store.asearch(("a",), limit=50)) == 20
            assert len(await store.asearch(("a",), query="n", filter={"n": {"$lt": 5}})) == 5
            assert await store.alist_namespaces(prefix=("a",), limit=2) == [("a", "0"), ("a", "1")]
            await store.adelete(("a", "0"), "k0")
            assert await store.aget(("a", "0"), "k0") is None

    asyncio.run(life())
    asyncio.run(life())


def test_a_batch_is_answered_in_order_and_reads_what_was_before(store: MemoryBankStore) -> None:
    store.put(("a",), "old", {"n": 1})
    results = store.batch(
        [
            PutOp(("a",), "new", {"n": 0}),
            GetOp(["a"], "old"),  # type: ignore[arg-type]
            GetOp(("a",), "new"),
            SearchOp(("a",), filter={"n": 1}),
            ListNamespacesOp((MatchCondition("prefix", ("*",)),)),
            PutOp(("a",), "old", None),
            PutOp(("a",), "new", {"n": 2}),
        ]
    )
    assert [type(one) for one in results[:3]] == [type(None), StoredItem, type(None)]
    assert [one.key for one in results[3]] == ["old"]  # type: ignore[union-attr]
    assert results[4] == [("a",)]
    assert results[5:] == [None, None]
    assert [(one.key, one.value) for one in store.search(())] == [("new", {"n": 2})]
    assert store.batch([]) == []


def test_a_batch_with_one_bad_label_writes_nothing(store: MemoryBankStore) -> None:
    for bad in (PutOp(("a.b",), "k", {}), GetOp(("",), "k"), SearchOp((1,))):  # type: ignore[arg-type]
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(("a",), "good", {}), bad])
        with pytest.raises(InvalidNamespaceError):
            asyncio.run(store.abatch([PutOp(("a",), "good", {}), bad]))
    assert store.search(()) == []


def test_what_is_refused_says_why(store: MemoryBankStore) -> None:
    with pytest.raises(ValueError, match=r"\$foo is no known operator"):
        store.search((), filter={"x": {"$foo": 1}})
    with pytest.raises(Refused, match=r"above 0|greater than 0"):
        store.put(("a",), "k", {}, ttl=0)
    with pytest.raises(Refused):
        store.put(("a",), "k", {"x": object()})
    with pytest.raises(Refused):
        store.put(("a",), "k", {"x": float("nan")})
    with pytest.raises(Refused, match="1,048,576"):
        store.put(("a",), "k", {"x": "y" * 1_100_000})
    with pytest.raises(Refused):
        store.search((), limit=-1)
    for index in ("text", True, [1]):
        with pytest.raises(Refused, match="index must be"):
            store.put(("a",), "k", {}, index=index)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="query must be a text"):
        store.search((), query=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="match type"):
        store.batch([ListNamespacesOp((MatchCondition("middle", ("a",)),))])  # type: ignore[arg-type]
    assert store.search(()) == []


def test_a_text_is_no_namespace_of_letters(store: MemoryBankStore) -> None:
    for call in (
        lambda: store.put("abc", "k", {}),  # type: ignore[arg-type]
        lambda: store.get("abc", "k"),  # type: ignore[arg-type]
        lambda: store.search("abc"),  # type: ignore[arg-type]
        lambda: store.batch([PutOp("abc", "k", {})]),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidNamespaceError, match="not a text"):
            call()
    store.put(["a", "b"], "k", {})  # type: ignore[arg-type]
    assert store.list_namespaces() == [("a", "b")]
    # In a condition it is one label: LangGraph's own suites leave out the comma.
    assert store.list_namespaces(prefix="a") == [("a", "b")]  # type: ignore[arg-type]
    assert store.list_namespaces(prefix="ab") == []  # type: ignore[arg-type]


def test_a_conversation_may_be_the_query(store: MemoryBankStore) -> None:
    store.put(("a",), "apple", {"text": "apple"}, index=["text"])
    store.put(("a",), "pear", {"text": "pear"}, index=["text"])
    found = store.search(("a",), query="apple " * 5_000 + "pear " * 1_600)
    assert [one.key for one in found] == ["pear", "apple"]


def test_long_values_of_any_script_and_what_is_no_text(store: MemoryBankStore) -> None:
    store.put(("a",), "long", {"text": "é" * 520_000}, index=False)
    assert len(store.get(("a",), "long").value["text"]) == 520_000  # type: ignore[union-attr]
    store.put_if(("a",), "set", {"text": "é" * 520_000}, version=None, index=False)
    for call in (
        lambda: store.put(("a",), "k", {"text": "\ud800"}),
        lambda: store.put(("a",), "\ud800", {}),
        lambda: store.put(("\ud800",), "k", {}),
    ):
        with pytest.raises(ValueError, match="Unicode"):
            call()


def test_an_outage_is_told_and_not_an_empty_answer(store: MemoryBankStore, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_the_wire, "FIRST_PAUSE", 0)
    store.put(("a",), "k", {"text": "apple"})

    def away(*_: Any, **__: Any) -> Any:
        raise IndexUnavailable("away")

    monkeypatch.setattr(world.index, "search", away)
    with pytest.raises(Unavailable):
        store.search((), query="apple")
    monkeypatch.setattr(world.index, "write", away)
    with pytest.raises(Unavailable):
        store.put(("a",), "k", {"text": "pear"})
    assert store.search(())[0].value == {"text": "apple"}


def test_ttl_as_configured(world: World, over_http: Callable[..., MemoryBankStore]) -> None:
    config: Any = {"default_ttl": 1.5, "refresh_on_read": False}
    for store in (over_http(ttl=config), MemoryBankStore.direct("acme", ports=world, ttl=config)):
        store.put(("a",), "default", {})
        store.put(("a",), "own", {}, ttl=10)
        store.put(("a",), "none", {}, ttl=None)
        world.clock.advance(80)
        assert store.get(("a",), "default") is not None
        assert store.get(("a",), "own", refresh_ttl=True) is not None
        world.clock.advance(10)
        assert store.get(("a",), "default") is None
        assert {one.key for one in store.search(("a",))} == {"own", "none"}
        world.clock.advance(540)
        assert {one.key for one in store.search(("a",))} == {"own", "none"}
        world.clock.advance(60)
        assert {one.key for one in store.search(("a",))} == {"none"}


def test_compare_and_set(store: MemoryBankStore) -> None:
    first = store.put_if(("a",), "k", {"n": 1}, version=None)
    with pytest.raises(Conflict):
        store.put_if(("a",), "k", {"n": 2}, version=None)
    read = store.get(("a",), "k")
    assert isinstance(read, StoredItem)
    assert read.version == first
    second = asyncio.run(store.aput_if(("a",), "k", {"n": 2}, version=first))
    assert second > first
    with pytest.raises(Conflict):
        asyncio.run(store.aput_if(("a",), "k", {"n": 3}, version=first))
    with pytest.raises(InvalidNamespaceError):
        store.put_if((), "k", {}, version=None)
    assert store.search(())[0].value == {"n": 2}


def test_values_of_any_mapping_and_large_ones(store: MemoryBankStore) -> None:
    store.put(("a",), "mapping", UserDict({"t": (1, 2), "m": UserDict({"x": 1})}))  # type: ignore[arg-type]
    assert store.get(("a",), "mapping").value == {"t": [1, 2], "m": {"x": 1}}  # type: ignore[union-attr]
    for number in range(8):
        store.put(("large",), f"k{number}", {"text": f"{number}" * 1_000_000}, index=False)
    found = store.search(("large",))
    assert [one.key for one in found] == [f"k{number}" for number in reversed(range(8))]
    assert {len(one.value["text"]) for one in asyncio.run(store.asearch(("large",)))} == {1_000_000}


# --------------------------------------------------------------------------------------------------------------------
# Requests


def test_a_batch_is_one_request_for_reads_and_one_for_writes(over_http: Callable[..., MemoryBankStore], gateway: Gateway) -> None:
    store = over_http()
    store.batch([*(PutOp(("a",), f"k{n}", {"n": n}) for n in range(50)), GetOp(("a",), "k0"), SearchOp(())])
    assert gateway.seen == ["POST /store/batch"] * 2
    gateway.seen.clear()
    store.batch([GetOp(("a",), f"k{n}") for n in range(150)])
    assert len(gateway.seen) == 2
    gateway.seen.clear()
    store.batch([PutOp(("a",), "same", {"n": n}) for n in range(500)])
    assert len(gateway.seen) == 1
    gateway.seen.clear()
    store.batch([PutOp(("a",), f"k{n}", {"text": "x" * 900_000}, index=False) for n in range(5)])
    assert len(gateway.seen) == 3


def test_what_is_awaited_at_once_shares_a_request_and_no_mistakes(
    over_http: Callable[..., MemoryBankStore], gateway: Gateway
) -> None:
    store = over_http()

    async def together() -> list[Any]:
        await asyncio.gather(*(store.aput(("a",), f"k{n}", {"n": n}) for n in range(30)))
        assert gateway.seen == ["POST /store/batch"]
        gateway.seen.clear()
        return await asyncio.gather(
            store.aget(("a",), "k1"),
            store.asearch((), filter={"x": {"$foo": 1}}),
            store.aget(("a",), "k2"),
            return_exceptions=True,
        )

    first, wrong, second = asyncio.run(together())
    assert (first.value, second.value) == ({"n": 1}, {"n": 2})
    assert isinstance(wrong, Refused)


def test_one_caller_that_is_cancelled_harms_nobody(over_http: Callable[..., MemoryBankStore]) -> None:
    store = over_http()

    async def together() -> Any:
        impatient = asyncio.create_task(store.aput(("a",), "k", {"n": 1}))
        patient = asyncio.create_task(store.alist_namespaces())
        await asyncio.sleep(0)
        impatient.cancel()
        return await patient

    assert isinstance(asyncio.run(together()), list)


@pytest.mark.parametrize("fate", [503, 429, 502, httpx.ConnectError("refused"), httpx.ReadTimeout("slow")])
def test_a_brief_absence_is_waited_out(
    over_http: Callable[..., MemoryBankStore], gateway: Gateway, monkeypatch: pytest.MonkeyPatch, fate: Any
) -> None:
    monkeypatch.setattr(over_the_wire, "FIRST_PAUSE", 0)
    store = over_http()
    gateway.script = [fate, fate]
    store.put(("a",), "k", {"n": 1})
    gateway.script = [fate]
    assert asyncio.run(store.aget(("a",), "k")) is not None
    gateway.script = [fate] * 5
    with pytest.raises(Unavailable):
        store.get(("a",), "k")
    gateway.script = [fate] * 5
    with pytest.raises(Unavailable):
        asyncio.run(store.aget(("a",), "k"))
    gateway.script = [fate]
    with pytest.raises(Unavailable):
        store.put_if(("a",), "k", {"n": 2}, version=None)


def test_a_key_without_the_scope(over_http: Callable[..., MemoryBankStore]) -> None:
    reader = over_http("acme", "read")
    assert reader.get(("a",), "k") is None
    with pytest.raises(Forbidden):
        reader.put(("a",), "k", {})


def test_long_pages_are_read_in_parts(over_http: Callable[..., MemoryBankStore], gateway: Gateway) -> None:
    store = over_http()
    store.batch([PutOp(("a", f"n{n}"), "k", {"n": n}, index=False) for n in range(30)])
    gateway.seen.clear()
    assert len(store.search((), limit=5_000)) == 30
    assert len(store.list_namespaces(limit=5_000)) == 30
    assert len(gateway.seen) == 2


def test_url_and_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEMORY_BANKS_URL", "MEMORY_BANKS_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="MEMORY_BANKS_URL"):
        MemoryBankStore()
    monkeypatch.setenv("MEMORY_BANKS_URL", "http://127.0.0.1:1")
    with pytest.raises(ValueError, match="MEMORY_BANKS_API_KEY"):
        MemoryBankStore()
    monkeypatch.setenv("MEMORY_BANKS_API_KEY", "mb_x")
    MemoryBankStore().close()


def test_an_embedding_of_ones_own(world: World) -> None:
    async def embed(texts: list[str]) -> list[list[float]]:
        return [[float(text.count(letter)) + 0.01 for letter in "abc"] for text in texts]

    store = MemoryBankStore.direct("acme", ports=world, index={"dims": 3, "embed": embed, "fields": ["t"]})
    store.put(("a",), "x", {"t": "aaa", "other": "bbb"})
    store.put(("a",), "y", {"t": "bbb"})

    async def inside() -> list[str]:
        return [one.key for one in await store.asearch((), query="b")]

    assert [one.key for one in store.search((), query="a")] == ["x", "y"]
    assert asyncio.run(inside()) == ["y", "x"]

"""`MemoryBankStore`: LangGraph's `BaseStore` on Memory Banks.

    store = MemoryBankStore("https://…", api_key="mb_…")
    graph = builder.compile(store=store)

`MemoryBankStore.direct(…)` goes straight to table and index, for code that runs inside AWS.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from langgraph.store.base import BaseStore, IndexConfig, InvalidNamespaceError, Op, PutOp, Result, TTLConfig

from clients.langgraph import wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memory_banks.ports import Ports

URL, API_KEY = "MEMORY_BANKS_URL", "MEMORY_BANKS_API_KEY"
"""Environment variables that are read where url or key are not given."""


class Way(Protocol):
    """How operations reach the store."""

    def batch(self, ops: Sequence[Op]) -> list[Result]: ...
    async def abatch(self, ops: Sequence[Op]) -> list[Result]: ...
    def put_if(self, op: PutOp, version: str | None) -> str: ...
    async def aput_if(self, op: PutOp, version: str | None) -> str: ...
    def close(self) -> None: ...
    async def aclose(self) -> None: ...


class MemoryBankStore(BaseStore):
    """LangGraph's long-term memory, kept in Memory Banks.

    Parameters
    ----------
    url, api_key
        The service and its key; else `MEMORY_BANKS_URL` and `MEMORY_BANKS_API_KEY`. The service embeds, with its model.
    ttl
        LangGraph's configuration: `default_ttl` (minutes) of items that are put without one, and `refresh_on_read`. Expired
        items are never given, and the service removes them by itself.
    timeout
        Seconds a request may take.
    """

    supports_ttl = True

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        ttl: TTLConfig | None = None,
        timeout: float = 30,
        way: Way | None = None,
    ) -> None:
        self.ttl_config = ttl
        self.index_config: IndexConfig | None = None
        if way is None:
            from clients.langgraph.http import Http

            way = Http(_given(url, URL, "url"), _given(api_key, API_KEY, "api_key"), timeout)
        self._way = way

    @classmethod
    def direct(
        cls,
        account: str,
        *,
        ports: Ports | None = None,
        index: IndexConfig | Literal["service"] | None = "service",
        index_name: str | None = None,
        ttl: TTLConfig | None = None,
    ) -> Self:
        """The store of an account, over this process's ports (`MEMORY_BANKS_…` variables) or those given.

        `index`: the service's embedding model, or LangGraph's configuration with an embedding of your own (kept apart under
        `index_name`; name one for each embedding that an account uses), or None for no search by meaning.
        """
        from memory_banks import bootstrap

        from clients.langgraph.direct import Direct, indexing

        embedding = index if index is None or isinstance(index, str) else indexing(index, index_name)
        store = cls(ttl=ttl, way=Direct(ports or bootstrap.ports(), account, embedding))
        store.index_config = None if index is None or isinstance(index, str) else index
        return store

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations; results in their order. Reads see the state before, puts come last, the last put to a key wins."""
        made = wire.checked(ops)
        return self._way.batch(made) if made else []

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch`, awaited. Over HTTP, what is asked for at the same moment shares requests."""
        made = wire.checked(ops)
        return await self._way.abatch(made) if made else []

    # ----------------------------------------------------------------------------------------------------------------
    # Beyond LangGraph: compare and set

    def put_if(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        *,
        version: str | None,
        index: Literal[False] | list[str] | None = None,
        ttl: float | None = None,
    ) -> str:
        """Put only over the item that has this `version` (None: only where there is no item). Gives the new version.

        Raises `Conflict` otherwise: read the item again (`get(…).version`), merge, and try again.
        """
        return self._way.put_if(_put(namespace, key, value, index, ttl), version)

    async def aput_if(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        *,
        version: str | None,
        index: Literal[False] | list[str] | None = None,
        ttl: float | None = None,
    ) -> str:
        """`put_if`, awaited."""
        return await self._way.aput_if(_put(namespace, key, value, index, ttl), version)

    # ----------------------------------------------------------------------------------------------------------------
    # Connections

    def close(self) -> None:
        """Close connections; the next call opens others."""
        self._way.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._way.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()


def _put(
    namespace: tuple[str, ...], key: str, value: Mapping[str, Any], index: Literal[False] | list[str] | None, ttl: float | None
) -> PutOp:
    if not namespace:
        raise InvalidNamespaceError("Namespace cannot be empty.")
    [op] = wire.checked([PutOp(tuple(namespace), str(key), dict(value), index=index, ttl=ttl)])
    assert isinstance(op, PutOp)
    return op


def _given(value: str | None, variable: str, name: str) -> str:
    found = value or os.environ.get(variable)
    if not found:
        raise ValueError(f"{name} is needed, or the environment variable {variable}")
    return found

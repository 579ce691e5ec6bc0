"""Straight to table and index, for code that runs inside AWS (or a test) and needs no HTTP."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, TypeVar

from langgraph.store.base import Embeddings, GetOp, IndexConfig, ListNamespacesOp, Op, PutOp, Result, SearchOp, ensure_embeddings
from memory_banks.errors import BadRequest, Invalid, MemoryBanksError, PreconditionFailed, TooLarge
from memory_banks.ports import BlobsUnavailable, Contended, IndexUnavailable, ModelError, Ports, TableUnavailable
from memory_banks.store.document import Document
from memory_banks.store.indexing import Indexing
from memory_banks.store.namespaces import Condition
from memory_banks.store.operations import Get, Listing, Operation, Search
from memory_banks.store.searching import Found
from memory_banks.store.store import Store
from memory_banks.store.writing import Write

from clients.langgraph import wire
from clients.langgraph.errors import Conflict, Refused, Unavailable

PATIENCE = 25_000
"""How long a write is tried again while others write to the same item, ms."""

Answer = TypeVar("Answer")


class LangChainEmbedder:
    """`ports.Embedder` over LangChain's embeddings; a function that can only be awaited runs in a thread of its own."""

    def __init__(self, embeddings: Embeddings, dimensions: int) -> None:
        self._embeddings = embeddings
        self.dimensions = dimensions

    @property
    def model(self) -> str:
        """Its class."""
        return f"langchain/{type(self._embeddings).__name__}"

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector a text."""
        if self._only_async:
            return _awaited(self._embeddings.aembed_documents(list(texts)))
        return self._embeddings.embed_documents(list(texts))

    def embed_query(self, text: str) -> Sequence[float]:
        """The vector of a query."""
        return _awaited(self._embeddings.aembed_query(text)) if self._only_async else self._embeddings.embed_query(text)

    @property
    def _only_async(self) -> bool:
        return hasattr(self._embeddings, "afunc") and not hasattr(self._embeddings, "func")


def _awaited(wanted: Coroutine[Any, Any, Answer]) -> Answer:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, wanted).result()


def indexing(config: IndexConfig, index: str | None) -> Indexing:
    """What LangGraph's configuration of an index means here."""
    embedder = LangChainEmbedder(ensure_embeddings(config.get("embed")), config["dims"])
    fields = config.get("fields") or config.get("text_fields") or ["$"]
    return Indexing(index or f"memory-banks-langgraph-{config['dims']}", config["dims"], embedder, tuple(fields))  # type: ignore[arg-type]


class Direct:
    """The store of an account over this process's ports."""

    def __init__(self, ports: Ports, account: str, embedding: Indexing | Literal["service"] | None) -> None:
        self._ports = ports
        self._store = Store(ports, account, embedding)

    def batch(self, ops: Sequence[Op]) -> list[Result]:
        """Do them. Values come back as copies."""
        operations = [_operation(op) for op in ops]
        results = _told(lambda: self._store.batch(operations, deadline=self._deadline()))
        return [wire.result(op, _shown(one)) for op, one in zip(ops, results, strict=True)]

    async def abatch(self, ops: Sequence[Op]) -> list[Result]:
        """Do them in a thread."""
        return await asyncio.to_thread(self.batch, ops)

    def put_if(self, op: PutOp, version: str | None) -> str:
        """Write over this version, or where there is none; the new version."""
        assert op.value is not None
        written = _told(
            lambda: self._store.put(
                op.namespace,
                op.key,
                wire.plain(op.value),
                index=op.index,
                ttl=op.ttl,
                if_version=version,
                if_absent=version is None,
                deadline=self._deadline(),
            )
        )
        return written.version

    async def aput_if(self, op: PutOp, version: str | None) -> str:
        """`put_if` in a thread."""
        return await asyncio.to_thread(self.put_if, op, version)

    def close(self) -> None:
        """Nothing is held."""

    async def aclose(self) -> None:
        """Nothing is held."""

    def _deadline(self) -> int:
        return self._ports.clock.now() + PATIENCE


def _operation(op: Op) -> Operation:
    match op:
        case GetOp():
            return Get(op.namespace, op.key, op.refresh_ttl)
        case SearchOp():
            return Search(op.namespace_prefix, op.filter, op.query, op.limit, op.offset, op.refresh_ttl)
        case ListNamespacesOp():
            conditions = tuple(Condition(one.match_type, tuple(one.path)) for one in op.match_conditions or ())
            return Listing(conditions, op.max_depth, op.limit, op.offset)
        case PutOp():
            return Write(op.namespace, op.key, wire.plain(op.value), op.index, op.ttl)


def _shown(result: Any) -> Any:
    """As the service would answer it."""
    if isinstance(result, Document):
        return result.shown()
    if isinstance(result, list) and all(isinstance(one, Found) for one in result):
        return {"items": [one.document.shown() | {"score": one.score} for one in result], "namespaces": []}
    return {"namespaces": result} if isinstance(result, list) else result


def _told(call: Callable[[], Answer]) -> Answer:
    """The call's answer, its errors by the client's names."""
    try:
        return call()
    except Invalid as error:
        raise Refused(f"{'.'.join(map(str, error.loc))}: {error.message}") from error
    except (BadRequest, TooLarge) as error:
        raise Refused(error.message) from error
    except PreconditionFailed as error:
        raise Conflict(error.message) from error
    except MemoryBanksError as error:
        raise Unavailable(error.message) from error
    except (TableUnavailable, IndexUnavailable, BlobsUnavailable, Contended, ModelError) as error:
        raise Unavailable(str(error)) from error

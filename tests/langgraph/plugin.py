"""A pytest plugin that puts our store in the place of LangGraph's own, for LangGraph's own test files.

It is loaded before any test module (`-p plugin`), so that what they import is ours. Nothing of theirs is
changed: a database file, or a PostgreSQL database, is a store of ours under that name, and what has no meaning here (set-up,
pools, a sweeper of their own) does nothing. The few statements of SQL that tests run behind the store's back do the same to our
table, any other is refused.
"""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
# Their tests are a package of the same name as ours: ours is imported where theirs can't be seen, and then forgotten.
_paths = sys.path[:]
sys.path[:] = [str(PROJECT), str(PROJECT / "layers/memory_banks/python")]
sys.path += [path for path in _paths if not (Path(path or ".") / "tests" / "__init__.py").exists()]
world_module = importlib.import_module("tests.doubles.world")
for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
    del sys.modules[name]
sys.path[:] = [*_paths, str(PROJECT / "layers/memory_banks/python")]
sys.path.append(str(PROJECT))

from memory_banks import ids  # noqa: E402
from memory_banks.clock import SystemClock  # noqa: E402
from memory_banks.ports import Delete, Key, Put  # noqa: E402
from memory_banks.store import namespaces  # noqa: E402

from clients.langgraph import MemoryBankStore  # noqa: E402
from clients.langgraph.direct import Direct, indexing  # noqa: E402


def world() -> Any:
    """A service of its own: the real domain and index over a table in memory, in real time."""
    return world_module.World(clock=SystemClock(), chance=random.Random())


class Swapped(MemoryBankStore):
    """Our store with the constructor of LangGraph's in-memory one."""

    def __init__(self, *, index: Any = None, ttl: Any = None, ports: Any = None) -> None:
        self.ports = ports or world()
        super().__init__(ttl=ttl, way=Direct(self.ports, "acme", indexing(index, None) if index else None))
        self.index_config = index
        if index:
            from langgraph.store.base import ensure_embeddings

            self.embeddings = ensure_embeddings(index["embed"])


WORLDS: dict[str, Any] = {}
"""By connection string: what is opened again is what was there."""


def opened(conn_string: str, index: Any, ttl: Any, kind: Callable[..., Any]) -> Any:
    """The store of a connection string; one in memory is always new."""
    ports = world() if conn_string == ":memory:" else WORLDS.setdefault(conn_string, world())
    return kind(index=index, ttl=dict(ttl) if ttl else None, ports=ports)


class SwappedFile(Swapped):
    """Our store with the ways in of LangGraph's SQLite and PostgreSQL ones."""

    MIGRATIONS: tuple[str, ...] = ()

    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str, *, index: Any = None, ttl: Any = None, **_: Any) -> Iterator[Any]:
        yield opened(conn_string, index, ttl, cls)

    def setup(self) -> None:
        """A table needs none."""

    def start_ttl_sweeper(self, *_: Any, **__: Any) -> None:
        """The service sweeps by itself."""

    def stop_ttl_sweeper(self, *_: Any, **__: Any) -> bool:
        """The service sweeps by itself."""
        return True

    @contextmanager
    def _cursor(self, **_: Any) -> Iterator[Any]:
        yield Cursor(self.ports)


class SwappedAsyncFile(Swapped):
    """The same for their asynchronous ones."""

    MIGRATIONS: tuple[str, ...] = ()

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, conn_string: str, *, index: Any = None, ttl: Any = None, **_: Any) -> AsyncIterator[Any]:
        yield opened(conn_string, index, ttl, cls)

    async def setup(self) -> None:
        """A table needs none."""

    async def start_ttl_sweeper(self, *_: Any, **__: Any) -> None:
        """The service sweeps by itself."""

    async def stop_ttl_sweeper(self, *_: Any, **__: Any) -> bool:
        """The service sweeps by itself."""
        return True

    @asynccontextmanager
    async def _cursor(self, **_: Any) -> AsyncIterator[Any]:
        yield AsyncCursor(self.ports)


class Cursor:
    """Instead of SQL behind the store: does to our table what their tests do to theirs, and refuses anything else."""

    def __init__(self, ports: Any = None) -> None:
        self.ports = ports
        self.row: Any = None

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        """Nothing, where a set-up is meant."""
        if statement.startswith(("CREATE DATABASE", "DROP DATABASE", "DROP TABLE IF EXISTS store_migrations", "DELETE FROM")):
            return
        *rest, prefix, key = values
        place = namespaces.place(tuple(prefix.split(".")), key)
        found = [item for item in self.ports.table.everything() if place in (item["sk"], item.get("place"))]
        if statement.startswith("UPDATE store SET expires_at = NOW() - INTERVAL '1 minute'"):
            for item in found:
                self.ports.table.write(Put(item | {"expires_at": self.ports.clock.now() - 60_000}))
        elif statement.startswith("UPDATE store SET updated_at = NOW() - (%s * INTERVAL '1 second')"):
            self._date_back(found, rest[0])
        elif statement.startswith("SELECT COUNT(*) AS n FROM store"):
            self.row = {"n": sum(item["sk"] == place for item in found)}
        elif statement.startswith("SELECT expires_at FROM store"):
            self.row = {"expires_at": next(item["expires_at"] for item in found if item["sk"] == place)}
        else:
            raise NotImplementedError(f"there is no SQL behind this store: {statement[:60]}")

    def _date_back(self, found: list[Any], seconds: int) -> None:
        [version] = ids.ulids(self.ports.clock.now() - 1000 * seconds, ids.LOWEST, 1, self.ports.chance)
        for item in found:
            if "place" in item:
                self.ports.table.write(Delete(Key(item["pk"], item["sk"])))
                self.ports.table.write(Put(item | {"sk": version}))
            else:
                self.ports.table.write(Put(item | {"version": version}))

    def fetchone(self) -> Any:
        """The row of the last statement."""
        return self.row


class AsyncCursor:
    """The same, awaited."""

    def __init__(self, ports: Any = None) -> None:
        self.cursor = Cursor(ports)

    async def execute(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        """See `Cursor.execute`."""
        self.cursor.execute(statement, values)

    async def fetchone(self) -> Any:
        """See `Cursor.fetchone`."""
        return self.cursor.row


@contextmanager
def connected(*_: Any, **__: Any) -> Iterator[Cursor]:
    """Instead of a connection to a PostgreSQL server."""
    yield Cursor()


async def aconnected(*_: Any, **__: Any) -> Any:
    """The same, awaited."""

    @asynccontextmanager
    async def connection() -> AsyncIterator[AsyncCursor]:
        yield AsyncCursor()

    return connection()


def swap() -> None:
    """Put ours in place, wherever theirs is installed."""
    memory = importlib.import_module("langgraph.store.memory")
    memory.InMemoryStore = Swapped
    for name, sync, later in (
        ("langgraph.store.sqlite", "SqliteStore", "AsyncSqliteStore"),
        ("langgraph.store.postgres", "PostgresStore", "AsyncPostgresStore"),
    ):
        try:
            module = importlib.import_module(name)
            aio = importlib.import_module(f"{name}.aio")
        except ImportError:
            continue
        setattr(module, sync, SwappedFile)
        for place in (module, aio):
            setattr(place, later, SwappedAsyncFile)
    try:
        psycopg = importlib.import_module("psycopg")
    except ImportError:
        return
    psycopg.Connection.connect = connected
    psycopg.AsyncConnection.connect = aconnected


swap()

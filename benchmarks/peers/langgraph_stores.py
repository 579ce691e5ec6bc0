"""LangGraph's own stores under the common workload. Prints a line of JSON a figure.

Runs in an environment where they are installed (`benchmarks.stores` makes it). PostgreSQL is that of the package `pgserver`,
started for this run in a folder of its own, by another user where this one is root; it counts the rows that it reads.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from hashed import DIMENSIONS, embed
from langgraph.store.memory import InMemoryStore
from workload import FIELDS, fill, measure

Used = Callable[[], dict[str, float]]
INDEX: Any = {"dims": DIMENSIONS, "embed": lambda texts: [embed(text) for text in texts], "fields": FIELDS}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, nargs="+", required=True)
    parser.add_argument("--repeat", type=int, required=True)
    arguments = parser.parse_args()
    for name, opened in (("InMemoryStore", memory), ("SqliteStore", sqlite), ("PostgresStore", postgres)):
        for count in arguments.documents:
            with opened() as (store, used):
                tell(store=name, documents=count, operation="fill", rate=fill(store, count))
                for one in measure(store, count, arguments.repeat, used):
                    tell(store=name, documents=count, operation=one.operation, seconds=one.seconds, used=one.used)


def tell(**figure: Any) -> None:
    """A line."""
    print(json.dumps(figure), flush=True)


@contextmanager
def memory() -> Iterator[tuple[Any, Used]]:
    """Dictionaries."""
    yield InMemoryStore(index=INDEX), dict


@contextmanager
def sqlite() -> Iterator[tuple[Any, Used]]:
    """A file, with sqlite-vec."""
    from langgraph.store.sqlite import SqliteStore

    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(f"{folder}/store.db", check_same_thread=False, isolation_level=None)
        with closing(connection):
            store = SqliteStore(connection, index=INDEX)
            store.setup()
            yield store, dict


@contextmanager
def postgres() -> Iterator[tuple[Any, Used]]:
    """A server of its own, with pgvector and its index (HNSW), over a socket."""
    from langgraph.store.postgres import PostgresStore

    with server() as address, PostgresStore.from_conn_string(address, index=INDEX) as store:
        store.setup()

        def rows() -> dict[str, float]:
            store.conn.execute("SELECT pg_stat_force_next_flush()")
            found: Any = store.conn.execute(
                "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) AS n FROM pg_stat_user_tables"
            ).fetchone()
            return {"rows": float(found["n"] or 0)}

        yield store, rows


@contextmanager
def server() -> Iterator[str]:
    """The address of a PostgreSQL that runs meanwhile."""
    found = importlib.util.find_spec("pgserver")
    assert found and found.origin
    programs = Path(found.origin).parent / "pginstall" / "bin"
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    user: Any = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
    if user:
        shutil.chown(folder, **user)

    def run(*command: Any) -> None:
        subprocess.run([programs / command[0], *command[1:]], stdout=subprocess.DEVNULL, check=True, cwd=folder, **user)

    try:
        run("initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8")
        options = f"-c listen_addresses='' -c unix_socket_directories='{folder}'"
        run("pg_ctl", "-D", folder / "data", "-l", folder / "log", "-o", options, "-w", "start")
        try:
            yield f"host={folder} user=postgres dbname=postgres"
        finally:
            run("pg_ctl", "-D", folder / "data", "-m", "fast", "-w", "stop")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

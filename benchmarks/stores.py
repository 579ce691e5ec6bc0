"""Our store for LangGraph beside LangGraph's own: requests and rows that operations read, and the time they take.

    uv run python -m benchmarks.stores [--documents 1000 10000] [--repeat 30]

The same documents and operations, the same hash embedding of 384 dimensions, on one machine, one store at a time. Ours twice:
direct, over the DynamoDB of the AWS emulator and the embedded index, and over HTTP against a `serve` of its own; LangGraph's
InMemoryStore, SqliteStore (a file, sqlite-vec) and PostgresStore (a server of its own, pgvector) in an environment that uv
makes under `.build/`. Requests are calls to AWS, or HTTP requests; items are what DynamoDB read (ScannedCount), rows what
PostgreSQL counts itself. DynamoDB is an emulator in Python here, which looks through a whole partition for each query: the time
in its calls says nothing about AWS, so our own is told apart from it (`own`: this process, embedding and index included).
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import hashed_service
from benchmarks.peers import environment, workload
from benchmarks.peers.hashed import DIMENSIONS, embed
from clients.langgraph import MemoryBankStore
from tests.serving import served

PACKAGES = (
    "langgraph-checkpoint==4.3.2",
    "langgraph-checkpoint-sqlite==3.1.2",
    "langgraph-checkpoint-postgres==3.2.0",
    "psycopg[binary,pool]",
    "pgserver==0.1.4",
    "numpy",
)
OURS, HTTP = "direct", "HTTP"
THEIRS = ("InMemoryStore", "SqliteStore", "PostgresStore")

Used = Callable[[], dict[str, float]]


@contextmanager
def direct() -> Iterator[tuple[MemoryBankStore, Used]]:
    """Straight to the emulator's table, nothing in between."""
    from memory_banks.bootstrap import Wiring

    from local import aws
    from local.emulator import Emulator
    from local.wiring import settings

    counted: dict[str, float] = {"requests": 0, "items": 0, "written": 0, "seconds": 0}

    def answered(parsed: dict[str, Any], model: Any, **_: Any) -> None:
        counted["seconds"] += time.perf_counter()
        counted["requests"] += 1
        counted["items"] += parsed.get("ScannedCount", 0)
        if model.name == "BatchGetItem":
            counted["items"] += sum(map(len, parsed["Responses"].values()))

    def asked(params: dict[str, Any], model: Any, **_: Any) -> None:
        counted["written"] += len(params.get("TransactItems", ())) or model.name in {"PutItem", "UpdateItem", "DeleteItem"}

    def called(**_: Any) -> None:
        counted["seconds"] -= time.perf_counter()

    class Plain(Wiring):
        def _client(self, service: str) -> Any:
            client = aws.client(service, self.settings.aws_endpoint_url or "")
            client.meta.events.register_last("before-call", called)
            client.meta.events.register_first("after-call", answered)
            client.meta.events.register("provide-client-params", asked)
            return client

    with TemporaryDirectory() as folder, Emulator.started() as emulator:
        wiring = Plain(settings({}, emulator.endpoint, emulator.resources, str(Path(folder) / "index")))
        index: Any = {"dims": DIMENSIONS, "embed": lambda texts: [embed(text) for text in texts], "fields": workload.FIELDS}
        yield MemoryBankStore.direct("bench", ports=wiring, index=index), lambda: dict(counted)


@contextmanager
def over_http() -> Iterator[tuple[MemoryBankStore, Used]]:
    """A service of its own, in another process."""
    counted: dict[str, float] = {"requests": 0}

    def sent(_: Any) -> None:
        counted["requests"] += 1

    with (
        TemporaryDirectory() as folder,
        served(Path(folder), program=hashed_service.__name__) as service,
        MemoryBankStore(service.url, service.api_key) as store,
    ):
        store._way._settings["event_hooks"] = {"request": [sent]}  # type: ignore[attr-defined]
        yield store, lambda: dict(counted)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--repeat", type=int, default=30)
    arguments = parser.parse_args()
    figures: dict[int, dict[str, dict[str, dict[str, Any]]]] = defaultdict(lambda: defaultdict(dict))
    python = environment.made("stores", *PACKAGES)
    sizes = [str(count) for count in arguments.documents]
    for line in environment.run(python, "langgraph_stores.py", "--documents", *sizes, "--repeat", str(arguments.repeat)):
        figures[line["documents"]][line["operation"]][line["store"]] = line
    for count in arguments.documents:
        for name, opened in ((OURS, direct), (HTTP, over_http)):
            with opened() as (store, used):
                figures[count]["fill"][name] = {"rate": workload.fill(store, count)}
                for one in workload.measure(store, count, arguments.repeat, used):
                    own = one.mean - one.used.get("seconds", 0)
                    figures[count][one.operation][name] = {"seconds": one.seconds, "own": own, "used": one.used}
    for count in arguments.documents:
        show(count, figures[count])


def show(count: int, figures: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Two tables: what is read, and the time."""
    rates = figures.pop("fill")
    print(f"\n{count:,} documents. What an operation uses")
    print(
        f"{'':22}{'AWS calls':>10}{'items read':>11}{'written':>9}{'HTTP requests':>15}{'rows, PostgreSQL':>18}"
        f"{'found':>7}{'there':>7}"
    )
    for operation, by_store in figures.items():
        ours = by_store[OURS]["used"]
        rows, requests = by_store["PostgresStore"]["used"]["rows"], by_store[HTTP]["used"]["requests"]
        print(
            f"{operation:22}{ours['requests']:10.1f}{ours['items']:11.1f}{ours['written']:9.1f}{requests:15.1f}{rows:18.1f}"
            f"{ours['found']:7.1f}{by_store['PostgresStore']['used']['found']:7.1f}"
        )
    print(f"\n{count:,} documents. Median ms; in brackets our own time as a multiple of the store's")
    print(f"{'':22}{OURS:>9}{'own':>9}{HTTP:>9}" + "".join(f"{name:>24}" for name in THEIRS))
    for operation, by_store in figures.items():
        whole = by_store[OURS]["seconds"] * 1000
        own = by_store[OURS]["own"] * 1000
        line = f"{operation:22}{whole:9.2f}{own:9.2f}{by_store[HTTP]['seconds'] * 1000:9.2f}"
        for name in THEIRS:
            theirs = by_store[name]["seconds"] * 1000
            line += f"{theirs:13.3f} ({_ratio(own / theirs)})"
        print(line)
    shown = "".join(f"{rates[name]['rate']:24,.0f}" for name in THEIRS)
    print(f"{'filled, documents/s':22}{rates[OURS]['rate']:9,.0f}{'':9}{rates[HTTP]['rate']:9,.0f}{shown}")


def _ratio(ratio: float) -> str:
    return f"{ratio:7,.0f}×" if ratio >= 10 else f"{ratio:7.2f}×"


if __name__ == "__main__":
    main()

"""Evidence recall: of the turns that hold the answer to a question, how many are among the first k entries found?

The conversations of a LoCoMo file (`--data` or MEMORY_BANKS_LOCOMO) go into one bank, each as one key. Recall at k is the
share of a question's evidence among the first k, averaged over the questions of categories 1 to 4.

    uv run python -m benchmarks.recall --data locomo.json                # the HTTP API of a `serve` of its own
    uv run python -m benchmarks.recall --data locomo.json --url http://127.0.0.1:8000 --api-key KEY
    uv run python -m benchmarks.recall --data locomo.json --in-process   # the domain over a table in memory

Goal with the default embedded model: R@10 at least 0.73, R@25 at least 0.81.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol
from urllib.parse import urlsplit

from benchmarks.locomo import Conversation, conversations

DEPTHS = (5, 10, 25, 50)
GOALS = {10: 0.73, 25: 0.81}
BATCH = 100
VERSION = "2026-10-21"


class Memory(Protocol):
    """What the measure needs of a service."""

    def write(self, key: str, entries: Sequence[dict[str, Any]]) -> list[str]:
        """Write up to 100 entries of a key; their ids in order."""
        ...

    def settle(self) -> None:
        """Return when everything that was written is searchable."""
        ...

    def find(self, key: str, query: str, top_k: int) -> list[str]:
        """The ids of the best entries of a key, best first."""
        ...


class OverHttp:
    """A running service, as its callers see it."""

    def __init__(self, url: str, api_key: str, kind: str = "conversation") -> None:
        address = urlsplit(url)
        connection = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        self._connection = connection(address.netloc, timeout=120)
        self._prefix = address.path.rstrip("/")
        self._headers = {"Content-Type": "application/json", "X-API-Key": api_key, "Seclai-Version": VERSION}
        self._bank = self._call("POST", "/memory_banks", {"name": "benchmark of recall", "type": kind})["id"]
        self._waiting: list[str] = []

    def write(self, key: str, entries: Sequence[dict[str, Any]]) -> list[str]:
        body = {"entries": [{"key": key} | entry for entry in entries]}
        ids = [one["id"] for one in self._call("POST", f"/memory_banks/{self._bank}/entries", body)["entries"]]
        self._waiting += ids
        return ids

    def settle(self) -> None:
        for entry in self._waiting:
            while not self._call("GET", f"/memory_banks/{self._bank}/entries/{entry}")["indexed"]:
                time.sleep(0.2)
        self._waiting = []

    def find(self, key: str, query: str, top_k: int) -> list[str]:
        body = {"query": query, "key": key, "top_k": top_k}
        return [hit["entry"]["id"] for hit in self._call("POST", f"/memory_banks/{self._bank}/search", body)["results"]]

    def close(self) -> None:
        """Delete the bank again."""
        self._call("DELETE", f"/memory_banks/{self._bank}")
        self._connection.close()

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        payload = None if body is None else json.dumps(body).encode()
        self._connection.request(method, self._prefix + path, payload, self._headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status >= 300:
            raise SystemExit(f"{method} {path}: {response.status} {answer.decode(errors='replace')}")
        return json.loads(answer) if answer else None


class InProcess:
    """The domain over a table in memory and the embedded index, without any server."""

    def __init__(self, folder: Path, kind: str = "conversation") -> None:
        from memory_banks.adapters.embedded.index import EmbeddedIndex
        from memory_banks.adapters.models import embedders
        from memory_banks.settings import Settings

        from local.wiring import EMBEDDING_MODEL
        from tests.doubles.world import World

        models = embedders(Settings(embedding_model=EMBEDDING_MODEL))
        self._world = World(index=EmbeddedIndex(str(folder / "index.sqlite")), embedders=models)
        self._bank = self._world.bank(type=kind)

    def write(self, key: str, entries: Sequence[dict[str, Any]]) -> list[str]:
        from memory_banks import limits, writing
        from memory_banks.entries import NewEntry

        new = [
            NewEntry(
                one["content"],
                key,
                one.get("speaker"),
                occurred_at=limits.milliseconds(one["occurred_at"]) if "occurred_at" in one else None,
            )
            for one in entries
        ]
        written = writing.write(self._world, self._bank.account, self._bank.id, new, deadline=self._world.deadline())
        return [one.entry.id for one in written]

    def settle(self) -> None:
        self._world.drain()

    def find(self, key: str, query: str, top_k: int) -> list[str]:
        from memory_banks.search import SearchRequest, search

        return [found.entry.id for found in search(self._world, self._bank, SearchRequest(query, keys=(key,), top_k=top_k))]

    def close(self) -> None:
        """Nothing is left behind."""


def remember(memory: Memory, all_conversations: Sequence[Conversation]) -> dict[str, dict[str, str]]:
    """Write every conversation; for each, the entry's id of a turn's id."""
    ids: dict[str, dict[str, str]] = {}
    for conversation in all_conversations:
        known: dict[str, str] = {}
        for first in range(0, len(conversation.turns), BATCH):
            turns = conversation.turns[first : first + BATCH]
            entries = [{"speaker": turn.speaker, "content": turn.content, "occurred_at": turn.occurred_at} for turn in turns]
            known |= dict(zip((turn.id for turn in turns), memory.write(conversation.id, entries), strict=True))
        ids[conversation.id] = known
    memory.settle()
    return ids


def recall(found: Sequence[str], evidence: Sequence[str | None]) -> list[float]:
    """The share of the evidence among the first 5, 10, 25 and 50; evidence that names no turn counts as not found."""
    return [sum(one in found[:depth] for one in evidence) / len(evidence) for depth in DEPTHS]


def measure(memory: Memory, data: Path) -> bool:
    """Print recall by conversation and in all, and the time of a search. Whether the goals are met."""
    all_conversations = list(conversations(data))
    began = time.perf_counter()
    ids = remember(memory, all_conversations)
    turns = sum(len(conversation.turns) for conversation in all_conversations)
    print(f"{turns} turns searchable after {time.perf_counter() - began:.0f} s")
    print(f"{'':24}{'questions':>10}" + "".join(f"{f'R@{depth}':>8}" for depth in DEPTHS))
    everything: list[list[float]] = []
    seconds: list[float] = []
    for conversation in all_conversations:
        rows = []
        for question in conversation.questions:
            began = time.perf_counter()
            found = memory.find(conversation.id, question.text, DEPTHS[-1])
            seconds.append(time.perf_counter() - began)
            rows.append(recall(found, [ids[conversation.id].get(turn) for turn in sorted(question.evidence)]))
        print(_row(conversation.id, rows))
        everything += rows
    print(_row("all", everything))
    seconds.sort()
    median, p95 = statistics.median(seconds), seconds[len(seconds) * 95 // 100]
    print(f"a search: median {median * 1000:.1f} ms, p95 {p95 * 1000:.1f} ms")
    means = dict(zip(DEPTHS, map(statistics.fmean, zip(*everything, strict=True)), strict=True))
    missed = [f"R@{depth} {means[depth]:.3f} < {goal}" for depth, goal in GOALS.items() if means[depth] < goal]
    print("goals met" if not missed else "missed: " + ", ".join(missed))
    return not missed


def _row(name: str, rows: Sequence[Sequence[float]]) -> str:
    means = map(statistics.fmean, zip(*rows, strict=True))
    return f"{name:24}{len(rows):10}" + "".join(f"{mean:8.3f}" for mean in means)


@contextlib.contextmanager
def chosen(arguments: argparse.Namespace, kind: str = "conversation") -> Iterator[Memory]:
    """The service that the arguments name, with a new bank of this type."""
    memory: OverHttp | InProcess
    with contextlib.ExitStack() as stack:
        if arguments.in_process:
            memory = InProcess(Path(stack.enter_context(TemporaryDirectory())), kind)
        elif arguments.url:
            memory = OverHttp(arguments.url, arguments.api_key, kind)
        else:
            from tests.serving import served

            service = stack.enter_context(served(Path(stack.enter_context(TemporaryDirectory()))))
            memory = OverHttp(service.url, service.api_key, kind)
        try:
            yield memory
        finally:
            memory.close()


def add_service(parser: argparse.ArgumentParser) -> None:
    """The arguments that choose a service."""
    parser.add_argument("--url", help="a running service, instead of one of its own")
    parser.add_argument("--api-key", default=os.environ.get("MEMORY_BANKS_API_KEY", ""), help="its key (write scope)")
    parser.add_argument("--in-process", action="store_true", help="the domain alone, no HTTP")


def main() -> int:
    """Measure and print; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = os.environ.get("MEMORY_BANKS_LOCOMO")
    parser.add_argument("--data", type=Path, default=known, required=known is None, help="the conversations' file")
    add_service(parser)
    arguments = parser.parse_args()
    with chosen(arguments) as memory:
        return 0 if measure(memory, Path(arguments.data)) else 1


if __name__ == "__main__":
    sys.exit(main())

"""What is asked of every store that is compared: the same documents, the same operations in the same order."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

try:
    from hashed import texts
except ImportError:
    from benchmarks.peers.hashed import texts

from langgraph.store.base import PutOp

EACH = 20
"""Documents of a user."""
TOPICS = ("food", "work", "home", "travel", "people")
BATCH = 100
FIELDS = ["text"]
PATIENCE = 20
"""Seconds after which an operation is not repeated again."""


class Figure(NamedTuple):
    """An operation's time, seconds, median and mean, and what it used on average, by the name of what is counted."""

    operation: str
    seconds: float
    mean: float
    used: dict[str, float]


def user(number: int) -> tuple[str, ...]:
    """The namespace of a user."""
    return ("memory", f"user{number:05}", "notes")


def documents(count: int) -> Iterator[PutOp]:
    """Puts of so many documents, `EACH` a user."""
    for number, text in enumerate(islice(texts(3, words=20), count)):
        value = {"text": text, "n": number, "topic": TOPICS[number % len(TOPICS)]}
        yield PutOp(user(number // EACH), f"k{number}", value, index=FIELDS)


def fill(store: Any, count: int) -> float:
    """Put them in batches; documents a second."""
    puts = list(documents(count))
    began = time.perf_counter()
    for start in range(0, count, BATCH):
        store.batch(puts[start : start + BATCH])
    return count / (time.perf_counter() - began)


def measure(store: Any, count: int, repeat: int, used: Callable[[], dict[str, float]]) -> Iterator[Figure]:
    """The operations on a store of `count` documents. `used` tells what was used so far."""
    new = texts(4, words=20)
    asked = texts(5, words=6)
    spread = [(number * 37) % (count // EACH) for number in range(repeat)]

    def put(number: int) -> None:
        store.put(user(spread[number]), f"new{number}", {"text": next(new), "n": -1, "topic": "new"}, index=FIELDS)

    def put_over(number: int) -> None:
        store.put(user(spread[number]), f"new{number}", {"text": next(new), "n": -1, "topic": "new"}, index=FIELDS)

    def put_batch(number: int) -> None:
        value = {"n": -1, "topic": "new"}
        store.batch(
            PutOp(("batch", f"b{number}"), f"k{one}", value | {"text": text}, index=FIELDS)
            for one, text in enumerate(islice(new, BATCH))
        )

    seen: list[int] = []

    def shown(found: Any, least: int) -> None:
        seen.append(len(found))
        assert len(found) >= least, found

    operations: dict[str, Callable[[int], None]] = {
        "put, new": put,
        "put, over": put_over,
        "put, 100 in a batch": put_batch,
        "get": lambda number: shown([store.get(user(spread[number]), f"k{spread[number] * EACH}").value], 1),
        "get, 100 in a batch": lambda number: shown(_got(store, spread[number], count), 100),
        "search, a user": lambda number: shown(store.search(user(spread[number])[:2]), 10),
        "search, everything": lambda _: shown(store.search(("memory",)), 10),
        "filter, a user": lambda number: shown(store.search(user(spread[number])[:2], filter={"topic": "home"}), 4),
        "filter, everything": lambda _: shown(store.search(("memory",), filter={"n": {"$lt": 3, "$gte": 0}}), 3),
        "query, a user": lambda number: shown(store.search(user(spread[number])[:2], query=next(asked)), 0),
        "query, everything": lambda _: shown(store.search(("memory",), query=next(asked)), 0),
        "query and filter": lambda _: shown(store.search(("memory",), query=next(asked), filter={"topic": "home"}), 0),
        "list namespaces": lambda _: shown(store.list_namespaces(prefix=("memory",), max_depth=2, limit=50), 50),
    }
    for name, operation in operations.items():
        times = []
        seen.clear()
        before = used()
        for number in range(repeat):
            began = time.perf_counter()
            operation(number)
            times.append(time.perf_counter() - began)
            if sum(times) > PATIENCE:
                break
        after = used()
        each = {one: (after[one] - before[one]) / len(times) for one in after}
        each["found"] = statistics.fmean(seen) if seen else 0
        yield Figure(name, statistics.median(times), statistics.fmean(times), each)


def _got(store: Any, first: int, count: int) -> list[Any]:
    from langgraph.store.base import GetOp

    wanted = [(first * EACH + number) % count for number in range(BATCH)]
    return [one for one in store.batch(GetOp(user(number // EACH), f"k{number}") for number in wanted) if one is not None]

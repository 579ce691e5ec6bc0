"""Search as the index grows: k-NN recall against exact search, latency with a key filter, our time on top of OpenSearch's.

    uv run python -m benchmarks.search_scale --data locomo.json [--sizes 10000 200000]

Goals: recall ≥ 0.98 at top 10 (ties counted), unfiltered and with filters that keep 10 %, 1 % and 0.01 %; p95 with a key
filter grows at most 1.3 times from the smallest to the largest index; the time of our whole search on top of the raw
`_msearch` is under a quarter of it at the median. The embedding of queries and the table's reads are no part of it.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import urllib3
from memory_banks import bank as banks
from memory_banks import entries, ids, partitions
from memory_banks.adapters.opensearch import queries
from memory_banks.bank import Bank
from memory_banks.clock import SystemClock
from memory_banks.ports import Filter, Form, Index, Item, Key
from memory_banks.search import DEPTH, SearchRequest, search

from benchmarks import node
from benchmarks.sentences import BLOCK, Vectors, questions, sentences, vectors

TOP = 10
BATCH = 500
WARM = 30
FORMS: tuple[Form, ...] = ("chunk",)


class Question(NamedTuple):
    """A query with its vector."""

    text: str
    vector: list[float]


class Measured(NamedTuple):
    """One index of one size, and the bank that reads it."""

    bank: Bank
    size: int

    @property
    def name(self) -> str:
        """The index's name."""
        return self.bank.reads.index


def measured_of(size: int) -> Measured:
    """A new index's place."""
    return Measured(replace(node.BANK, embedding_model=f"bench {random.SystemRandom().getrandbits(40):x}"), size)


class Prepared:
    """The ports of a search whose query has its vector already and whose table answers from memory, on the clock."""

    clock = SystemClock()
    reranker = None

    def __init__(self, index: Index, bank: Bank, texts: Sequence[str]) -> None:
        self.index = index
        self.table = self
        self.seconds = 0.0
        self.vector: list[float] = []
        self._items: dict[Key, Item] = {}
        self._keep(banks.to_item(bank))
        for number, text in enumerate(texts):
            entry = node.entry_of(number, text)
            if partitions.head_key(bank, entry.partition) not in self._items:
                self._keep(partitions.new_head(bank, entry.partition, entry.key))
            self._keep(entries.to_item(entry, partitions.partition_pk(bank, entry.partition)))

    def _keep(self, item: Item) -> None:
        self._items[Key(item["pk"], item["sk"])] = item

    def read(self, keys: Sequence[Key]) -> list[Item | None]:
        """As `ports.Table.read`."""
        began = time.perf_counter()
        found = [self._items.get(key) for key in keys]
        self.seconds += time.perf_counter() - began
        return found

    def embedders(self, *_: object) -> Prepared:
        """As `ports.Embedders`: the embedder is this."""
        return self

    def embed_query(self, _: str) -> list[float]:
        """The prepared vector."""
        return self.vector


def kept(share: str) -> Filter:
    """The filter that keeps this share of an index."""
    chosen: dict[str, dict[str, Any]] = {
        "all": {},
        "10 %": {"speakers": ("tenth",)},
        "1 %": {"tags_any": ("hundredth",)},
        "0.01 %": {"above": {node.partition_of("few"): ids.LOWEST}},
    }
    return Filter(node.BANK.id, node.BANK.generation, **chosen[share])


def passes(share: str, number: int) -> bool:
    """Whether the n-th document is among those that the filter keeps."""
    return {
        "all": True,
        "10 %": number % 10 == 3,
        "1 %": number % 100 == 7,
        "0.01 %": number % node.FRACTIONS["0.01 %"] == 0,
    }[share]


def fill(found: node.Opened, measured: Measured, texts: Sequence[str]) -> None:
    """Index the first `size` texts and say how long it took, without the embedding."""
    began = time.perf_counter()
    embedding = 0.0
    for first in range(0, measured.size, BLOCK):
        block = texts[first : min(first + BLOCK, measured.size)]
        embedding += timed(lambda block=block: vectors(block)) / 1000  # type: ignore[misc]
        documents = node.documents(block, vectors(block), first)
        for start in range(0, len(documents), BATCH):
            node.write(found.index, measured.name, documents[start : start + BATCH])
    written = time.perf_counter() - began - embedding
    segments = node.settled(found.client, measured.name)
    settled = time.perf_counter() - began - embedding
    print(f"{measured.size:>9,} documents indexed in {written:.0f} s, merged in {settled:.0f} s: {segments} segments", flush=True)


def recall(found: node.Opened, measured: Measured, made: Vectors, asked: Sequence[Question], share: str) -> float:
    """The mean share of the exact top 10 that is found. A hit as near as the tenth counts, whichever it is."""
    numbers = np.array([number for number in range(measured.size) if passes(share, number)])
    exact = made[numbers] @ np.array([question.vector for question in asked], np.float32).T
    shares = []
    for column, question in enumerate(asked):
        cosines = exact[:, column]
        wanted = min(TOP, len(numbers))
        least = np.partition(cosines, -wanted)[-wanted]
        (ranking,) = found.index.search(measured.name, kept(share), vector=question.vector, text=None, forms=FORMS, size=TOP)
        near = sum(2 * hit.score - 1 >= least - 1e-4 for hit in ranking.hits)
        shares.append(min(near, wanted) / wanted)
    return statistics.fmean(shares)


def timed(call: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return float(np.percentile(values, 95))


class Latencies(NamedTuple):
    """Milliseconds of the same searches: by the whole of our search, the table's reads left out; and of their bare `_msearch`."""

    ours: list[float]
    raw: list[float]


def latencies(
    found: node.Opened, indexes: Sequence[Measured], texts: Sequence[str], asked: Sequence[Question], rounds: int
) -> dict[int, Latencies]:
    """Hybrid searches in one random key each, on every index by turns, so that what else the machine does hits all alike."""
    chance = random.Random(3)
    pool = urllib3.connection_from_url(str(found.settings.opensearch_url), maxsize=1)
    headers = {"content-type": "application/x-ndjson"}
    measured = {one.size: Latencies([], []) for one in indexes}
    prepared = {one.size: Prepared(found.index, one.bank, texts[: one.size]) for one in indexes}
    for turn in range(WARM + rounds):
        question = chance.choice(asked)
        for one in indexes:
            key = f"key{chance.randrange(1, one.size // node.KEY_SIZE)}"
            ports = prepared[one.size]
            ports.vector = question.vector

            chosen = Filter(one.bank.id, one.bank.generation, above={node.partition_of(key): ids.LOWEST})
            wanted: dict[str, Any] = {"vector": question.vector, "text": question.text, "forms": FORMS, "size": DEPTH}
            searches = queries.searches(chosen, **wanted, ef_search=found.settings.opensearch_ef_search)
            body = queries.msearch(one.name, one.bank.id, [asked for _, _, asked in searches if asked])

            def bare(body: bytes = body) -> None:
                answer = pool.urlopen("POST", "/_msearch", body=body, headers=headers)
                assert answer.status == 200

            def ours(ports: Any = ports, one: Measured = one, key: str = key, text: str = question.text) -> None:
                ports.seconds = 0.0
                assert search(ports, one.bank, SearchRequest(text, keys=[key]))

            bare()  # what is asked first reads cold pages, whoever asks
            times = {}
            for name, call in chance.sample([("raw", bare), ("ours", ours)], 2):
                times[name] = timed(call)
            if turn >= WARM:
                measured[one.size].ours.append(times["ours"] - ports.seconds * 1000)
                measured[one.size].raw.append(times["raw"])
    return measured


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("MEMORY_BANKS_LOCOMO"), required="MEMORY_BANKS_LOCOMO" not in os.environ
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 200_000])
    parser.add_argument("--queries", type=int, default=200, help="queries whose recall is measured")
    parser.add_argument("--rounds", type=int, default=400, help="searches an index whose time is measured")
    parser.add_argument("--heap", default="2g", help="of the local node")
    arguments = parser.parse_args()
    data, largest = Path(arguments.data), max(arguments.sizes)
    texts = sentences(data, largest)
    words = questions(data, arguments.queries)
    asked = [Question(text, vector) for text, vector in zip(words, vectors(words).tolist(), strict=True)]
    with node.opened(arguments.heap) as found:
        print(node.told(found), flush=True)
        indexes = [measured_of(size) for size in arguments.sizes]
        try:
            for one in indexes:
                fill(found, one, texts)
            made = vectors(texts)
            for one in indexes:
                figures = {share: recall(found, one, made, asked, share) for share in ("all", *node.FRACTIONS)}
                shown = ", ".join(f"{share} {figure:.4f}" for share, figure in figures.items())
                verdict = "met" if min(figures.values()) >= 0.98 else "MISSED"
                print(f"{one.size:>9,} recall at {TOP}, kept by the filter: {shown} (goal 0.98: {verdict})", flush=True)
            measured = latencies(found, indexes, texts, asked, arguments.rounds)
            for size, times in measured.items():
                extra = statistics.median(ours - raw for ours, raw in zip(times.ours, times.raw, strict=True))
                raw = statistics.median(times.raw)
                verdict = "met" if extra < 0.25 * raw else "MISSED"
                print(
                    f"{size:>9,} with a key filter: p50 {statistics.median(times.ours):.1f} ms, p95 {p95(times.ours):.1f} ms; "
                    f"raw _msearch p50 {raw:.1f} ms, p95 {p95(times.raw):.1f} ms; ours on top {extra:.2f} ms = {extra / raw:.0%} "
                    f"(goal under 25 %: {verdict})"
                )
            growth = p95(measured[largest].ours) / p95(measured[min(arguments.sizes)].ours)
            print(f"p95 grows {growth:.2f} times (goal at most 1.3: {'met' if growth <= 1.3 else 'MISSED'})")
        finally:
            for one in indexes:
                found.client.indices.delete(index=one.name, ignore_unavailable=True)
                found.client.indices.delete_index_template(name=one.name, ignore=404)


if __name__ == "__main__":
    main()

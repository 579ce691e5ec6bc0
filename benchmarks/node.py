"""The OpenSearch that is measured: `OPENSEARCH_URL`, or a local node of its own."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from memory_banks import ids
from memory_banks.adapters.embedded.embedder import DIMENSIONS
from memory_banks.adapters.opensearch import OpenSearchIndex
from memory_banks.adapters.opensearch.client import connect
from memory_banks.bank import Bank
from memory_banks.clock import SystemClock
from memory_banks.documents import chunk_id
from memory_banks.entries import Entry
from memory_banks.ports import IndexDocument, IndexUnavailable, Member
from memory_banks.settings import Settings

from benchmarks.sentences import Vectors
from local.opensearch import LocalNode

BANK = Bank(
    account="bench",
    id="bench",
    name="bench",
    type="general",
    mode="custom",
    created_at=0,
    updated_at=0,
    embedding_model="bench",
    dimensions=DIMENSIONS,
    chunk_size=1_000,
    chunk_overlap=0,
    secret="",
)
START = 1_790_000_000_000
KEY_SIZE = 100
"""Entries a key has, whatever the size of the index."""
FRACTIONS = {"10 %": 10, "1 %": 100, "0.01 %": 10_000}


class Opened(NamedTuple):
    """The index under measure, a client of its own, and its settings."""

    index: OpenSearchIndex
    client: Any
    settings: Settings


@contextmanager
def opened(heap: str, **changed: Any) -> Iterator[Opened]:
    """An OpenSearch for one measurement. Indexes are refreshed by hand; a local node buffers half its heap."""
    chosen = {"opensearch_auth": "none"} | Settings.from_environment().model_dump(exclude_unset=True)
    chosen |= {"opensearch_replicas": 0, "opensearch_refresh_seconds": -1} | changed
    given = os.environ.get("OPENSEARCH_URL")
    if given:
        yield _opened(chosen | {"opensearch_url": given})
        return
    with LocalNode.started(heap=heap, settings={"indices.memory.index_buffer_size": "40%"}) as node:
        yield _opened(chosen | {"opensearch_url": node.url})


def _opened(values: dict[str, Any]) -> Opened:
    settings = Settings.model_validate(values)
    return Opened(OpenSearchIndex.from_settings(settings, SystemClock(), random.SystemRandom()), connect(settings), settings)


def told(found: Opened) -> str:
    """The node's version and the index's settings, for the head of a report."""
    version = found.client.info()["version"]
    settings = found.settings
    return (
        f"OpenSearch {version['number']} (Lucene {version['lucene_version']}), {settings.opensearch_engine} HNSW: "
        f"m {settings.opensearch_m}, ef_construction {settings.opensearch_ef_construction}, "
        f"ef_search {settings.opensearch_ef_search}; {settings.opensearch_shards} shard, {settings.opensearch_replicas} replicas"
    )


def key_of(number: int) -> str:
    """The key of the n-th document: one in ten thousand is of the key `few`, the others fill keys of `KEY_SIZE`."""
    return "few" if number % FRACTIONS["0.01 %"] == 0 else f"key{number // KEY_SIZE}"


def partition_of(key: str) -> str:
    """The partition of a key of the bank."""
    return ids.partition_of(BANK.id, key)


def entry_of(number: int, text: str) -> Entry:
    """The n-th entry, as the table has it."""
    key = key_of(number)
    sort = ids.at(START + number)
    return Entry(sort=sort, partition=partition_of(key), key=key, content=text, occurred_at=START + number)


def documents(texts: Sequence[str], vectors: Vectors, first: int = 0) -> list[IndexDocument]:
    """One chunk a text, numbered from `first`. One in ten is said by `tenth`, one in a hundred is tagged `hundredth`."""
    paired = zip(texts, vectors.tolist(), strict=True)
    return [_document(number, text, vector) for number, (text, vector) in enumerate(paired, first)]


def _document(number: int, text: str, vector: list[float]) -> IndexDocument:
    entry = entry_of(number, text)
    return IndexDocument(
        id=chunk_id(entry.internal_id, 0),
        bank=BANK.id,
        generation=BANK.generation,
        partition=entry.partition,
        entry=entry.internal_id,
        form="chunk",
        kind="entry",
        version=1,
        members=(Member(entry.internal_id, 1),),
        previous=None,
        start=0,
        end=len(text),
        speaker="tenth" if number % 10 == 3 else "other",
        tags=("hundredth",) if number % 100 == 7 else (),
        metadata={"number": number, "source": {"kind": "benchmark"}},
        occurred_at=entry.occurred_at,
        created_at=entry.created_at,
        text=text,
        vector=vector,
    )


def write(index: OpenSearchIndex, name: str, documents: Sequence[IndexDocument]) -> None:
    """Write documents; a machine that is too busy to take them in time is asked again, as the queue would."""
    while True:
        try:
            outcomes = index.write(name, documents, len(documents[0].vector))
        except IndexUnavailable as problem:
            print(f"again: {problem}", flush=True)
            continue
        assert all(outcome.status == "written" for outcome in outcomes)
        return


def settled(client: Any, name: str) -> int:
    """Make everything visible, wait for running merges, and tell how many segments there are."""
    patient = {"request_timeout": 600}
    client.indices.refresh(index=name, params=patient)
    while client.indices.stats(index=name, metric="merge", params=patient)["_all"]["total"]["merges"]["current"]:
        time.sleep(0.5)
    client.indices.refresh(index=name, params=patient)
    shards = client.indices.segments(index=name, params=patient)["indices"][name]["shards"].values()
    return sum(len(copy["segments"]) for copies in shards for copy in copies)

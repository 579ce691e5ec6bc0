"""Statistics of a large bank: how long they take over a real OpenSearch, and whether they equal a recount.

    uv run python -m benchmarks.statistics [--entries 100000]

A conversation bank of 5,000 keys, most of them small and some very large, over the last 60 days; a fifth of the entries have a
second chunk, every one has its window, and one key in ten was compacted within the last hour. Vectors are tiny: statistics do
not read them. The index is OpenSearch, the table is in memory; how often it is asked is told instead of its time.

Goals: 300 ms at the median. Equal to a recount: counts and most frequent values exactly, the 95th percentiles within 2 %,
distinct keys within 1 %.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from memory_banks import bank as banks
from memory_banks import ids, partitions, stats
from memory_banks.adapters.opensearch import OpenSearchIndex
from memory_banks.bank import DAY, Bank
from memory_banks.clock import SystemClock, iso
from memory_banks.documents import chunk_id, window_id
from memory_banks.ports import IndexDocument, Item, Member

from benchmarks import node
from tests.doubles.memory_table import MemoryTable

KEYS = 5_000
SPEAKERS = 300
TAGS = 200
DAYS = 60
DIMENSIONS = 2
BATCH = 1_000
WARM = 10


@dataclass(frozen=True, slots=True)
class Fact:
    """What statistics know of an entry or a summary."""

    key: str
    id: ids.EntryId
    created_at: int
    tokens: int
    speaker: str | None
    tags: tuple[str, ...]


def facts(bank: Bank, count: int, now: int, chance: random.Random) -> list[Fact]:
    """The entries, and a summary for every tenth key."""
    made = []
    for number in range(count):
        key = f"key {min(int(chance.paretovariate(0.3)), chance.randrange(1, KEYS + 1))}"
        at = now - chance.randrange(1, DAYS * DAY)
        tags = tuple({f"tag {min(chance.randrange(TAGS), chance.randrange(TAGS))}" for _ in range(chance.randrange(4))})
        speaker = f"speaker {min(chance.randrange(SPEAKERS), chance.randrange(SPEAKERS))}"
        tokens = 1 + int(chance.lognormvariate(4, 1.2))
        made.append(Fact(key, _id(bank, key, at, number), at, tokens, speaker, tags))
    for number in range(0, KEYS, 10):
        key, at = f"key {number + 1}", now - DAYS * DAY
        made.append(Fact(key, _id(bank, key, at, count + number, summary=True), at, 120, None, ("compaction-summary",)))
    return made


def _id(bank: Bank, key: str, at: int, number: int, summary: bool = False) -> ids.EntryId:
    return ids.EntryId(ids.encode((at << 80) + number), ids.partition_of(bank.id, key), summary)


def documents(bank: Bank, found: Sequence[Fact], chance: random.Random) -> list[IndexDocument]:
    """One or two chunks each, and the window of an entry."""
    made = []
    for fact in found:
        made.append(_document(bank, fact, chunk_id(str(fact.id), 0), fact.tokens))
        if chance.random() < 0.2:
            made.append(_document(bank, fact, chunk_id(str(fact.id), 1), None))
        if not fact.id.summary:
            made.append(_document(bank, fact, window_id(str(fact.id)), None))
    return made


def _document(bank: Bank, fact: Fact, id: str, tokens: int | None) -> IndexDocument:
    angle = zlib.crc32(id.encode())  # a graph of equal vectors would take hours to build
    return IndexDocument(
        id=id,
        bank=bank.id,
        generation=bank.generation,
        partition=fact.id.partition,
        entry=str(fact.id),
        form="window" if id.endswith("w") else "chunk",
        kind="summary" if fact.id.summary else "entry",
        version=1,
        members=(Member(str(fact.id), 1),),
        previous=None,
        start=0,
        end=0,
        speaker=fact.speaker,
        tags=fact.tags,
        metadata={},
        occurred_at=fact.created_at,
        created_at=fact.created_at,
        text="a few words",
        vector=(math.cos(angle), math.sin(angle)),
        tokens=tokens,
    )


def items(bank: Bank, found: Sequence[Fact], now: int) -> list[Item]:
    """The table's part of it: the bank, heads and shards."""
    made = [banks.to_item(bank)]
    counts = Counter(fact.key for fact in found if not fact.id.summary)
    compacted = {fact.key: fact for fact in found if fact.id.summary}
    for key in sorted(counts.keys() | compacted.keys()):
        partition = ids.partition_of(bank.id, key)
        head = partitions.new_head(bank, partition, key)
        if key in compacted:
            one = compacted[key]
            head |= {"watermark": one.id.ulid, "summary": one.id.sort, "compacted_at": now - 7 * 60_000}
        at = partitions.shard_key(bank, partition, 0)
        made += [head, {"pk": at.pk, "sk": at.sk, "entries": counts[key], "tokens": 0, "chunks": 0, "last_at": now}]
    return made


def recount(found: Sequence[Fact], since: int, until: int, now: int, bank: Bank) -> dict[str, Any]:
    """The plain way, in the shape of the answer."""
    inside = [fact for fact in found if since <= fact.created_at < until]
    entries = [fact for fact in inside if not fact.id.summary]
    sizes = Counter(fact.key for fact in entries)
    times = [fact.created_at for fact in entries]
    return {
        "summary": {
            "entries": len(entries),
            "keys": len(sizes),
            "speakers": len({fact.speaker for fact in entries}),
            "first_entry_at": iso(min(times)),
            "last_entry_at": iso(max(times)),
            "compaction_summaries": len(inside) - len(entries),
        },
        "distributions": {
            "tokens": spread([fact.tokens for fact in entries]),
            "age_days": spread([(now - at) / DAY for at in times]),
            "entries_per_key": spread(list(sizes.values())),
        },
        "top_keys": by_partition(bank, sizes),
        "top_speakers": most(Counter(fact.speaker or "" for fact in entries)),
        "top_tags": most(Counter(tag for fact in entries for tag in fact.tags)),
    }


def spread(numbers: Sequence[float]) -> dict[str, float]:
    """With the 95th percentile by nearest rank."""
    ordered = sorted(numbers)
    p95 = ordered[-(-len(ordered) * 95 // 100) - 1]
    return {"avg": sum(ordered) / len(ordered), "p95": p95, "min": ordered[0], "max": ordered[-1]}


def most(counts: Counter[str]) -> list[dict[str, Any]]:
    """The most frequent, ties by value."""
    ranked = sorted(counts, key=lambda value: (-counts[value], value))
    return [{"value": value, "entries": counts[value]} for value in ranked[: stats.TOP]]


def by_partition(bank: Bank, counts: Counter[str]) -> list[dict[str, Any]]:
    """The most frequent keys. Which of several equal ones are still among the first is decided by their partitions."""
    ranked = sorted(counts, key=lambda key: (-counts[key], ids.partition_of(bank.id, key)))
    return most(Counter({key: counts[key] for key in ranked[: stats.TOP]}))


def differences(told: dict[str, Any], plain: dict[str, Any]) -> list[str]:
    """Where an answer is further from the recount than it may be."""
    wrong = [
        f"{name}: {told[name]} is not {plain[name]}"
        for name in ("top_keys", "top_speakers", "top_tags")
        if told[name] != plain[name]
    ]
    for name, value in plain["summary"].items():
        off = abs(told["summary"][name] - value) > value / 100 if name in {"keys", "speakers"} else told["summary"][name] != value
        wrong += [f"{name}: {told['summary'][name]} is not {value}"] if off else []
    for name, values in plain["distributions"].items():
        for figure, value in values.items():
            allowed = max(0.001, value * (0.02 if figure == "p95" else 0.0001))
            if abs(told["distributions"][name][figure] - value) > allowed:
                wrong.append(f"{name}.{figure}: {told['distributions'][name][figure]} is not {value}")
    return wrong


class Asked(MemoryTable):
    """A table that counts its calls."""

    calls = 0

    def read(self, keys: Any) -> Any:
        self.calls += 1
        return super().read(keys)

    def query(self, *arguments: Any, **named: Any) -> Any:
        self.calls += 1
        return super().query(*arguments, **named)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--heap", default="1g", help="of the local node")
    arguments = parser.parse_args()
    chance = random.Random(0)
    clock = SystemClock()
    model = f"bench {random.SystemRandom().getrandbits(40):x}"
    bank = Bank(
        account="bench", id="bench", name="bench", type="conversation", mode="custom", created_at=0, updated_at=0,
        embedding_model=model, dimensions=DIMENSIONS, chunk_size=1_000, chunk_overlap=0, secret="",
    )  # fmt: skip
    now = clock.now()
    found = facts(bank, arguments.entries, now, chance)
    made = documents(bank, found, chance)
    table = Asked()
    table.fill(items(bank, found, now))
    with node.opened(arguments.heap) as opened:
        print(node.told(opened), flush=True)
        index: OpenSearchIndex = opened.index
        name = bank.reads.index
        began = time.perf_counter()
        for start in range(0, len(made), BATCH):
            node.write(index, name, made[start : start + BATCH])
        segments = node.settled(opened.client, name)
        seconds = time.perf_counter() - began
        print(f"{arguments.entries:,} entries in {len(made):,} documents, {seconds:.0f} s, {segments} segments", flush=True)
        ports: Any = SimpleNamespace(clock=clock, table=table, index=index)
        wanted = {
            "30 days": stats.Range(),
            "730 days": stats.Range(730),
            "5 days, in the past": stats.Range(5, until=now - 20 * DAY),
        }
        failed = False
        for title, range_ in wanted.items():
            for _ in range(WARM):
                stats.of_bank(ports, bank, range_)
            took, table.calls = [], 0
            for _ in range(arguments.rounds):
                began = time.perf_counter()
                told = stats.of_bank(ports, bank, range_)
                took.append((time.perf_counter() - began) * 1_000)
            as_of = clock.now()
            end = range_.until or as_of + DAY
            wrong = differences(told, recount(found, (range_.until or as_of) - range_.days * DAY, end, as_of, bank))
            median, p95 = statistics.median(took), sorted(took)[-(-len(took) * 95 // 100) - 1]
            goal = "met" if median < 300 else "MISSED"
            equal = "equal to a recount" if not wrong else "NOT equal to a recount: " + "; ".join(wrong)
            print(
                f"{title:>20}: {told['summary']['entries']:>7,} entries, p50 {median:.0f} ms (goal under 300: {goal}), "
                f"p95 {p95:.0f} ms, {table.calls / arguments.rounds:.0f} calls of the table; {equal}",
                flush=True,
            )
            failed |= bool(wrong) or median >= 300
        opened.client.indices.delete(index=name)
        opened.client.indices.delete_index_template(name=name)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()

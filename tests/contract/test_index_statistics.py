"""The contract of `ports.Index.statistics`, on every adapter: equal to a recount of the documents."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from memory_banks import ids
from memory_banks.adapters.embedded.index import EmbeddedIndex
from memory_banks.ports import Counted, Index, IndexDocument, Spread, Statistics, Tally

from tests.contract.test_index import DIMENSIONS, START, chunk, index, name, partition, put, window

__all__ = ["index", "name"]

EVER = Counted("bank", 1, 0, START * 2)


def p95(numbers: Sequence[int]) -> int:
    """By nearest rank."""
    return sorted(numbers)[-(-len(numbers) * 95 // 100) - 1]


def spread(numbers: Sequence[int]) -> Spread:
    return Spread(pytest.approx(sum(numbers) / len(numbers)), p95(numbers), min(numbers), max(numbers))


def most(values: Sequence[str], top: int) -> tuple[Tally, ...]:
    counts = Counter(values)
    return tuple(Tally(value, counts[value]) for value in sorted(counts, key=lambda value: (-counts[value], value))[:top])


def recount(documents: Sequence[IndexDocument], top: int = 3) -> Statistics:
    """The plain way."""
    entries = [one for one in documents if one.kind == "entry"]
    times = [one.created_at for one in entries]
    early = -p95([-time for time in times])
    sizes = list(Counter(one.partition for one in entries).values())
    return Statistics(
        entries=len(entries),
        summaries=len(documents) - len(entries),
        partitions=len(sizes),
        speakers=len({one.speaker for one in entries if one.speaker}),
        tokens=spread([one.tokens or 0 for one in entries]),
        created_at=Spread(pytest.approx(sum(times) / len(times)), early, min(times), max(times)),
        entries_per_partition=spread(sizes),
        top_partitions=most([one.partition for one in entries], top),
        top_speakers=most([one.speaker for one in entries if one.speaker], top),
        top_tags=most([tag for one in entries for tag in one.tags], top),
    )


def some(count: int, keys: int) -> list[IndexDocument]:
    chance = random.Random(count)
    return [
        chunk(
            n,
            key=f"key {min(chance.randrange(keys), chance.randrange(keys))}",
            speaker=chance.choice([None, "Ann", "Bob", "Cleo", "Dan"]),
            tags=tuple(chance.sample(["w", "x", "y", "z"], chance.randrange(4))),
            tokens=chance.randrange(1, 5_000),
        )
        for n in range(count)
    ]


@pytest.mark.parametrize(("count", "keys"), [(1, 1), (7, 3), (20, 20), (900, 60)])
def test_statistics_equal_a_recount(index: Index, name: str, count: int, keys: int) -> None:
    documents = some(count, keys)
    put(index, name, *documents)
    assert index.statistics(name, EVER, 3) == recount(documents)


def test_an_entry_counts_once_and_a_summary_apart(index: Index, name: str) -> None:
    """However many chunks it has, and whatever windows it is in."""
    first, second = chunk(1, tokens=5), chunk(2, tokens=7)
    summary = chunk(0, summary=True, tokens=900, tags=("compaction-summary",))
    put(index, name, first, chunk(1, piece=1), chunk(1, piece=2), second, window(1, [1, 2]), summary)
    assert index.statistics(name, EVER, 3) == recount([first, second, summary])


def test_a_correction_and_a_delete_count(index: Index, name: str) -> None:
    put(index, name, chunk(1, tokens=5), chunk(2, tokens=7), chunk(3, tokens=9))
    put(index, name, chunk(1, tokens=50, version=2))
    index.delete_entries(name, "bank", [chunk(2).entry])
    index.refresh(name)
    assert index.statistics(name, EVER, 3) == recount([chunk(1, tokens=50), chunk(3, tokens=9)])


def test_only_the_range_of_this_bank_and_generation_counts(index: Index, name: str) -> None:
    documents = [chunk(n, tokens=n + 1) for n in range(10)]
    put(index, name, *documents, chunk(4, bank="other", tokens=1), chunk(5, key="old", generation=2, tokens=1))
    inside = Counted("bank", 1, START + 3_000, START + 7_000)
    assert index.statistics(name, inside, 3) == recount(documents[3:7])


@pytest.mark.parametrize("others", [0, 30])
def test_what_is_hidden_does_not_count(index: Index, name: str, others: int) -> None:
    """What a compaction replaced counts no more, its summary does; other keys are not touched. Many watermarks hide nothing."""
    documents = [chunk(n, key=key, tokens=n + 1) for n in range(6) for key in "ab"]
    documents += [chunk(9, key=f"other {n}", tokens=5) for n in range(others)]
    summary = chunk(3, key="a", summary=True, tokens=2)
    put(index, name, *documents, summary)
    empty = {partition(f"other {n}"): ids.at(START + 8_000) for n in range(others)}
    hidden = empty | {partition("a"): ids.at(START + 3_000)[:10] + "Z" * 16}
    left = [one for one in documents if one.partition != partition("a") or one.created_at > START + 3_000]
    assert index.statistics(name, Counted("bank", 1, 0, START * 2, hidden), 3) == recount(left)
    hidden = empty | {partition("a"): summary.entry[:26]}
    assert index.statistics(name, Counted("bank", 1, 0, START * 2, hidden), 3) == recount([*left, summary])
    older = chunk(2, key="a", summary=True, tokens=2)
    put(index, name, older)
    assert index.statistics(name, Counted("bank", 1, 0, START * 2, hidden), 3) == recount([*left, summary])
    gone = empty | {partition("a"): summary.entry[:26] + "S"}
    assert index.statistics(name, Counted("bank", 1, 0, START * 2, gone), 3) == recount(left)


@pytest.mark.parametrize("others", [0, 30])
def test_an_erased_summary_is_hidden_though_nothing_else_is_left_there(index: Index, name: str, others: int) -> None:
    summary, kept = chunk(3, key="a", summary=True, tokens=2), chunk(4, key="a", tokens=7)
    put(index, name, summary, kept)
    gone = {partition(f"other {n}"): ids.at(START) for n in range(others)} | {partition("a"): summary.entry[:26] + "S"}
    assert index.statistics(name, Counted("bank", 1, 0, START * 2, gone), 3) == recount([kept])


def test_many_hidden_watermarks_are_possible(index: Index, name: str) -> None:
    put(index, name, chunk(1, tokens=1))
    hidden = {partition(f"gone {n}"): ids.at(START) for n in range(500)}
    assert index.statistics(name, Counted("bank", 1, 0, START * 2, hidden), 3).entries == 1


def test_without_entries_there_is_nothing_to_tell(index: Index, name: str) -> None:
    assert index.statistics(name, EVER, 3) == Statistics()
    put(index, name, chunk(1, summary=True, tokens=1))
    assert index.statistics(name, EVER, 3) == Statistics(summaries=1)


def test_a_file_of_an_earlier_version_is_taken_over(tmp_path: Path) -> None:
    path = str(tmp_path / "index.sqlite")
    before = EmbeddedIndex(path)
    put(before, "n", chunk(1, tokens=3))
    before.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP INDEX documents_markers")
        connection.execute("ALTER TABLE documents DROP COLUMN tokens")
    after = EmbeddedIndex(path)
    assert after.statistics("n", EVER, 3) == Statistics()
    assert [outcome.status for outcome in after.write("n", [chunk(1, tokens=3)], DIMENSIONS)] == ["written"]
    assert after.statistics("n", EVER, 3).entries == 1
    after.close()

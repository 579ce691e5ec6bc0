"""The contract of `ports.Index`, on every adapter: the embedded one, and OpenSearch on a real node."""

from __future__ import annotations

import math
import os
import random
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from memory_banks import ids
from memory_banks.adapters.embedded.index import EmbeddedIndex
from memory_banks.ports import (
    Filter,
    Form,
    Hit,
    Index,
    IndexDocument,
    IndexUnavailable,
    Member,
    MetadataTest,
    Outcome,
)
from memory_banks.texts import BM25_B, BM25_K1

DIMENSIONS = 8
DAY = 86_400_000
START = 1_790_000_000_000
"""When the first entry of every test is written."""


@pytest.fixture(params=["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Index]:
    if request.param == "opensearch":
        yield request.getfixturevalue("opensearch_index")
        return
    embedded = EmbeddedIndex(str(tmp_path / "index.sqlite"))
    yield embedded
    embedded.close()


@pytest.fixture
def name() -> str:
    """An index that no other test uses."""
    return f"memory-banks-test-{random.SystemRandom().getrandbits(64):x}"


def partition(key: str, bank: str = "bank") -> str:
    return ids.partition_of(bank, key)


def entry(n: int, key: str = "k", *, summary: bool = False, bank: str = "bank") -> str:
    """The internal id of the n-th entry; ids grow with n, one a second."""
    return ids.at(START + n * 1000) + partition(key, bank) + ("S" if summary else "")


def towards(degrees: float) -> list[float]:
    """A unit vector at an angle from `towards(0)`: cosines are plain to see."""
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))] + [0.0] * (DIMENSIONS - 2)


def chunk(
    n: int, text: str = "text", *, key: str = "k", piece: int = 0, summary: bool = False, bank: str = "bank", **changed: Any
) -> IndexDocument:
    whole = entry(n, key, summary=summary, bank=bank)
    values: dict[str, Any] = {
        "id": f"{whole}#{piece}",
        "bank": bank,
        "generation": 1,
        "partition": partition(key, bank),
        "entry": whole,
        "form": "chunk",
        "kind": "summary" if summary else "entry",
        "version": 1,
        "members": (Member(whole, changed.get("version", 1)),),
        "previous": None,
        "start": 0,
        "end": len(text),
        "speaker": None,
        "tags": (),
        "metadata": {},
        "occurred_at": START + n * 1000,
        "created_at": START + n * 1000,
        "text": text,
        "vector": towards(n),
    }
    return IndexDocument(**values | changed)


def window(n: int, around: Sequence[int], text: str = "text", *, key: str = "k", **changed: Any) -> IndexDocument:
    members = tuple(Member(entry(m, key), 1) for m in around)
    return chunk(
        n, text, key=key, **{"id": f"{entry(n, key)}#w", "form": "window", "members": members, "start": 0, "end": 0} | changed
    )


def put(index: Index, name: str, *documents: IndexDocument) -> list[Outcome]:
    outcomes = index.write(name, documents, DIMENSIONS)
    index.refresh(name)
    return outcomes


def find(
    index: Index,
    name: str,
    *,
    vector: Sequence[float] | None = None,
    text: str | None = None,
    form: Form = "chunk",
    size: int = 100,
    bank: str = "bank",
    generation: int = 1,
    **filters: Any,
) -> list[Hit]:
    """The hits of one ranking."""
    rankings = index.search(name, Filter(bank, generation, **filters), vector=vector, text=text, forms=(form,), size=size)
    assert len(rankings) == 1
    return rankings[0].hits


def near(index: Index, name: str, **options: Any) -> list[str]:
    """Document ids nearest to `towards(0)`, sorted: which documents a filter lets through."""
    return sorted(hit.id for hit in find(index, name, vector=towards(0), **options))


# --------------------------------------------------------------------------------------------------------------------
# Writes


def test_what_is_written_is_found_with_all_that_a_hit_carries(index: Index, name: str) -> None:
    outcomes = put(
        index, name, chunk(3, "the red bicycle", piece=2, version=4, previous=entry(2), start=10, end=25, occurred_at=77)
    )
    assert outcomes == [Outcome(f"{entry(3)}#2", "written")]
    for found in ({"vector": towards(3)}, {"text": "bicycle"}):
        (hit,) = find(index, name, **found)
        assert (hit.id, hit.entry, hit.form) == (f"{entry(3)}#2", entry(3), "chunk")
        assert hit.members == (Member(entry(3), 4),)
        assert (hit.previous, hit.start, hit.end, hit.occurred_at) == (entry(2), 10, 25, 77)
    (hit,) = find(index, name, vector=towards(3))
    assert hit.score == pytest.approx(1, abs=1e-3)


def test_a_window_lists_its_members(index: Index, name: str) -> None:
    put(index, name, window(2, (1, 2, 3), "three turns"))
    (hit,) = find(index, name, text="turns", form="window")
    assert hit.form == "window"
    assert hit.entry == entry(2)
    assert hit.members == (Member(entry(1), 1), Member(entry(2), 1), Member(entry(3), 1))
    assert find(index, name, text="turns") == []


def test_writing_again_changes_nothing(index: Index, name: str) -> None:
    for _ in range(3):
        assert [outcome.status for outcome in put(index, name, chunk(1), chunk(2))] == ["written", "written"]
    assert near(index, name) == [f"{entry(1)}#0", f"{entry(2)}#0"]
    assert len(list(index.scan(name, "bank", 1))) == 2


def test_a_newer_version_replaces_an_older_one(index: Index, name: str) -> None:
    put(index, name, chunk(1, "the old wording", version=1))
    put(index, name, chunk(1, "a new text", version=2, tags=("t",)))
    assert find(index, name, text="wording") == []
    (hit,) = find(index, name, text="new", tags_any=("t",))
    assert hit.members == (Member(entry(1), 2),)


def test_an_older_version_never_replaces_a_newer_one(index: Index, name: str) -> None:
    put(index, name, chunk(1, "new text", version=2))
    outcomes = put(index, name, chunk(1, "old text", version=1), chunk(2, "another", version=1))
    assert [outcome.status for outcome in outcomes] == ["stale", "written"]
    assert find(index, name, text="old") == []
    assert len(find(index, name, text="new")) == 1


def test_one_batch_may_hold_a_document_twice(index: Index, name: str) -> None:
    outcomes = put(index, name, chunk(1, "first", version=1), chunk(1, "second", version=2), chunk(1, "late", version=1))
    assert [outcome.status for outcome in outcomes] == ["written", "written", "stale"]
    assert len(find(index, name, text="second")) == 1
    assert len(list(index.scan(name, "bank", 1))) == 1


def test_a_document_that_is_refused_does_not_stop_the_others(index: Index, name: str) -> None:
    outcomes = put(
        index,
        name,
        chunk(1),
        chunk(2, vector=[1.0] * (DIMENSIONS - 1)),
        chunk(3, vector=[0.0] * DIMENSIONS),
        chunk(4, vector=[math.nan] + [1.0] * (DIMENSIONS - 1)),
        chunk(5),
    )
    assert [outcome.status for outcome in outcomes] == ["written", "failed", "failed", "failed", "written"]
    assert all(outcome.reason for outcome in outcomes if outcome.status == "failed")
    assert near(index, name) == [f"{entry(1)}#0", f"{entry(5)}#0"]


def test_nothing_to_write_is_no_error(index: Index, name: str) -> None:
    assert put(index, name) == []
    assert near(index, name) == []


# --------------------------------------------------------------------------------------------------------------------
# Rankings


def test_vectors_rank_by_cosine_shown_as_half_of_one_plus_it(index: Index, name: str) -> None:
    put(index, name, *(chunk(n, vector=[x * 5 for x in towards(n)]) for n in (170, 30, 90, 0, 60)))
    hits = find(index, name, vector=towards(0))
    assert [hit.entry for hit in hits] == [entry(n) for n in (0, 30, 60, 90, 170)]
    expected = [(1 + math.cos(math.radians(n))) / 2 for n in (0, 30, 60, 90, 170)]
    assert [hit.score for hit in hits] == pytest.approx(expected, abs=1e-3)


def test_size_limits_each_ranking(index: Index, name: str) -> None:
    put(index, name, *(chunk(n, f"word number{n}") for n in range(20)))
    assert [hit.entry for hit in find(index, name, vector=towards(0), size=3)] == [entry(0), entry(1), entry(2)]
    assert len(find(index, name, text="word", size=3)) == 3


def test_one_search_gives_a_ranking_for_each_form_and_method(index: Index, name: str) -> None:
    put(index, name, chunk(1, "apple"), window(1, (0, 1, 2), "apple pie"), chunk(2, "pear"))
    rankings = index.search(name, Filter("bank", 1), vector=towards(1), text="apple", forms=("chunk", "window"), size=10)
    assert {(ranking.form, ranking.method): len(ranking.hits) for ranking in rankings} == {
        ("chunk", "vector"): 2,
        ("chunk", "keyword"): 1,
        ("window", "vector"): 1,
        ("window", "keyword"): 1,
    }
    for method, options in {"vector": {"vector": towards(1), "text": None}, "keyword": {"vector": None, "text": "apple"}}.items():
        rankings = index.search(name, Filter("bank", 1), forms=("window", "chunk"), size=10, **options)  # type: ignore[arg-type]
        assert {(ranking.form, ranking.method) for ranking in rankings} == {("chunk", method), ("window", method)}


def lucene(documents: dict[str, list[str]], query: list[str]) -> dict[str, float]:
    """BM25 by Lucene's formula, written out."""
    average = sum(map(len, documents.values())) / len(documents)
    scores: dict[str, float] = {}
    for term in query:
        having = sum(term in words for words in documents.values())
        idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        for id, words in documents.items():
            if term in words:
                frequency = words.count(term)
                scores[id] = scores.get(id, 0) + idf * frequency / (
                    frequency + BM25_K1 * (1 - BM25_B + BM25_B * len(words) / average)
                )
    return scores


def test_words_rank_as_lucene_ranks_them(index: Index, name: str) -> None:
    """Up to a constant factor, which differs between Lucene's versions."""
    random.seed(1)
    vocabulary = [f"w{n}x" for n in range(30)]  # no stems, no stop words
    texts = {n: random.choices(vocabulary, weights=[1 / (i + 1) for i in range(30)], k=random.randint(1, 35)) for n in range(60)}
    put(index, name, *(chunk(n, " ".join(words)) for n, words in texts.items()))
    for query in (["w0x"], ["w3x", "w20x"], ["w1x", "w2x", "w5x", "w29x"], ["w4x", "w4x", "w7x"]):
        hits = find(index, name, text=" ".join(query))
        expected = lucene({entry(n): words for n, words in texts.items()}, query)
        assert {hit.entry for hit in hits} == set(expected)
        factor = hits[0].score / expected[hits[0].entry]
        assert {hit.entry: hit.score / factor for hit in hits} == pytest.approx(expected, rel=1e-3)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_deleted_documents_leave_the_statistics_or_at_least_the_answers(index: Index, name: str) -> None:
    put(index, name, *(chunk(n, "common rare" if n == 7 else "common") for n in range(10)))
    index.delete(name, "bank", [f"{entry(n)}#0" for n in range(5)])
    index.refresh(name)
    hits = find(index, name, text="common rare")
    assert hits[0].entry == entry(7)
    assert {hit.entry for hit in hits} == {entry(n) for n in range(5, 10)}


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("She was running in the rain", "run"),
        ("three ponies", "pony"),
        ("Melanie's pottery", "Melanie"),
        ("I don't know", "don't"),
        ("version 3.14 of it", "3.14"),
        ("my foo_bar_baz variable", "foo_bar_baz"),
        ("MIXED Case", "mixed case"),
        ("我喜欢吃苹果", "苹果"),
        ("東京へ行きました", "東京"),
        ("カタカナを読む", "カタカナ"),
        ("한국어를 배우다", "배우다"),
        ("мы поехали в Москву", "Москву"),
        ("Größe über alles", "größe"),
        ("the party 🎉 was fun", "🎉"),
        ("e-mail bob@example.org now", "bob"),
        ("a" * 600 + " zebra", "zebra"),
    ],
)
def test_words_are_found_in_any_language_and_form(index: Index, name: str, text: str, query: str) -> None:
    put(index, name, chunk(1, text), chunk(2, "nothing of that kind, zzz"))
    assert [hit.entry for hit in find(index, name, text=query)] == [entry(1)]


STRANGE = [
    "AND",
    "OR NOT",
    "apple AND",
    'apple "',
    '"""',
    "*",
    "app*",
    "(((",
    ")",
    "apple)",
    "text:apple",
    "terms: apple",
    "-apple",
    "+apple -pear",
    "apple~2",
    "apple^3",
    "[a TO b]",
    "{!}",
    "NEAR(apple pear)",
    "a/b\\c",
    "\\",
    "'; DROP TABLE documents; --",
    "%s %d {} ${x} {{y}}",
    "<b>apple</b>",
    "\u202eelppa\u202c",
    "zero\u200bwidth",
    "tab\tnew\nline",
    "",
    " ",
    "the of and",
    "👩‍👩‍👧‍👦",
    "ﷺ",
    "Z̸̢̛̫a̴l̵g̶o̷",
    "x" * 40_000,
    "apple " * 2_000,
    " ".join(f"word{n}" for n in range(3_000)),
]


@pytest.mark.parametrize("query", STRANGE)
def test_a_query_is_taken_literally_and_never_fails(index: Index, name: str, query: str) -> None:
    put(index, name, chunk(1, "apple text"), chunk(2, "zzz qqq"), chunk(3, query[:2_000]))
    hits = find(index, name, text=query)
    assert entry(2) not in {hit.entry for hit in hits}
    if re.search(r"(?<![\w:])apple", query):  # a colon between letters joins them, as in Lucene
        assert entry(1) in {hit.entry for hit in hits}


def test_operators_are_words(index: Index, name: str) -> None:
    put(index, name, chunk(1, "apple"), chunk(2, "pear"), chunk(3, "apple pear"))
    assert {hit.entry for hit in find(index, name, text="apple NOT pear")} == {entry(1), entry(2), entry(3)}
    assert {hit.entry for hit in find(index, name, text="-apple")} == {entry(1), entry(3)}
    assert {hit.entry for hit in find(index, name, text="appl*")} == {entry(1), entry(3)}  # stemmed, not a wildcard
    assert find(index, name, text="app*") == []


# --------------------------------------------------------------------------------------------------------------------
# Filters


def test_banks_and_generations_are_apart(index: Index, name: str) -> None:
    put(index, name, chunk(1), chunk(2, bank="other"), chunk(3, generation=2))
    assert near(index, name) == [f"{entry(1)}#0"]
    assert near(index, name, bank="other") == [f"{entry(2, bank='other')}#0"]
    assert near(index, name, generation=2) == [f"{entry(3)}#0"]
    assert near(index, name, bank="third") == []
    assert {hit.entry for hit in find(index, name, text="text")} == {entry(1)}


def test_keys_and_watermarks(index: Index, name: str) -> None:
    put(
        index,
        name,
        *(chunk(n, key=key) for n in range(4) for key in "abc"),
        chunk(1, key="a", summary=True),
        chunk(0, key="a", summary=True),
    )
    watermark = ids.at(START + 1000)
    seen = near(index, name, above={partition("a"): watermark, partition("b"): ids.LOWEST})
    # Of `a` what is above the watermark, the summary at it included; of `b` all; of `c` nothing.
    expected = [entry(1, "a", summary=True), entry(2, "a"), entry(3, "a"), *(entry(n, "b") for n in range(4))]
    assert seen == sorted(f"{one}#0" for one in expected)
    assert near(index, name, above={}) == []
    assert near(index, name, above={partition("nobody"): ids.LOWEST}) == []
    assert len(near(index, name)) == 14


def test_a_thousand_keys_with_watermarks_are_one_search(index: Index, name: str) -> None:
    """More than a query of OpenSearch has clauses for; what lives is found best first, whichever key it is of."""
    keys = [f"key{n}" for n in range(1_000)]
    dead = [chunk(0, key=key) for key in keys[:900]]
    living = [chunk(n % 89 + 1, "text " * (n % 7 + 1) + "word " * 9, key=key) for n, key in enumerate(keys)]
    put(index, name, *dead, *living, chunk(0, key="another"))
    above = {partition(key): entry(0)[:26] if number < 900 else ids.LOWEST for number, key in enumerate(keys)}
    hits = find(index, name, vector=towards(0), size=1_000, above=above)
    assert sorted(hit.id for hit in hits) == sorted(one.id for one in living)
    for asked in ({"vector": towards(0)}, {"text": "text " * 600}):
        every = [hit.score for hit in find(index, name, **asked, size=1_000, above=above)]
        best = [hit.score for hit in find(index, name, **asked, size=50, above=above)]
        assert len(every) == 1_000
        assert every == sorted(every, reverse=True)
        assert best == pytest.approx(every[:50], abs=1e-6)


FILTERED: list[tuple[dict[str, Any], set[int]]] = [
    ({"kinds": ("entry",)}, {0, 1, 2, 3}),
    ({"kinds": ("summary",)}, {4}),
    ({"kinds": ("entry", "summary")}, {0, 1, 2, 3, 4}),
    ({"speakers": ("Ann",)}, {0, 2}),
    ({"speakers": ("Ann", "ann")}, {0, 1, 2}),
    ({"speakers": ("Nobody",)}, set()),
    ({"tags_any": ("red",)}, {0, 1}),
    ({"tags_any": ("red", "Blue sky")}, {0, 1, 2}),
    ({"tags_all": ("red", "Blue sky")}, {1}),
    ({"tags_all": ("red",), "tags_any": ("Blue sky", "green")}, {1}),
    ({"tags_any": ("sky",)}, set()),
    ({"since": START + 2000}, {2, 3, 4}),
    ({"until": START + 2000}, {0, 1}),
    ({"since": START + 1000, "until": START + 3000}, {1, 2}),
    ({"since": START + 1000, "until": START + 1000}, set()),
    ({"created_after": START + 2000}, {3, 4}),
    ({"created_after": START + 4000}, set()),
    ({"speakers": ("Ann",), "tags_any": ("red",), "since": START}, {0}),
]


@pytest.mark.parametrize(("filters", "expected"), FILTERED, ids=[str(filters) for filters, _ in FILTERED])
def test_filters(index: Index, name: str, filters: dict[str, Any], expected: set[int]) -> None:
    put(
        index,
        name,
        chunk(0, speaker="Ann", tags=("red",)),
        chunk(1, speaker="ann", tags=("Blue sky", "red")),
        chunk(2, speaker="Ann", tags=("Blue sky",)),
        chunk(3),
        chunk(4, summary=True),
    )
    everything = [entry(n, summary=n == 4) for n in range(5)]
    wanted = sorted(f"{everything[n]}#0" for n in expected)
    assert near(index, name, **filters) == wanted
    assert sorted(hit.id for hit in find(index, name, text="text", **filters)) == wanted


METADATA: list[tuple[tuple[MetadataTest, ...], set[int]]] = [
    ((MetadataTest("color", "eq", "red"),), {0}),
    ((MetadataTest("color", "eq", "Red"),), set()),
    ((MetadataTest("color", "in", ["red", "blue"]),), {0, 1}),
    ((MetadataTest("size", "eq", 3),), {0, 1}),
    ((MetadataTest("size", "eq", "3"),), {2}),
    ((MetadataTest("size", "gt", 3),), {3}),
    ((MetadataTest("size", "gte", 3),), {0, 1, 3}),
    ((MetadataTest("size", "lt", 3.5),), {0, 1, 4}),
    ((MetadataTest("size", "lte", -0.5),), {4}),
    ((MetadataTest("size", "gt", 2), MetadataTest("size", "lt", 4)), {0, 1}),
    ((MetadataTest("done", "eq", True),), {1}),
    ((MetadataTest("done", "eq", False),), {2}),
    ((MetadataTest("done", "in", [True, False]),), {1, 2}),
    ((MetadataTest("nested.deep.level", "eq", "x"),), {3}),
    ((MetadataTest("nested.list", "eq", "b"),), {3}),
    ((MetadataTest("nested.list", "in", ["c", "z"]),), {4}),
    ((MetadataTest("nested.list", "gte", "b"),), {3, 4}),
    ((MetadataTest("day", "gte", "2026-01-02"),), {1, 2}),
    ((MetadataTest("day", "lt", "2026-01-02"),), {0}),
    ((MetadataTest("color", "exists", True),), {0, 1, 3}),
    ((MetadataTest("color", "exists", False),), {2, 4, 5}),
    ((MetadataTest("nested.deep", "exists", True),), {3}),
    ((MetadataTest("nothing", "exists", True),), set()),
    ((MetadataTest("color", "eq", "red"), MetadataTest("size", "eq", 3)), {0}),
    ((MetadataTest('we ird "kéy"', "eq", "ü 🎉 *"),), {4}),
]


@pytest.mark.parametrize(
    ("tests", "expected"),
    METADATA,
    ids=[str([tuple(vars_) for vars_ in ((t.path, t.operator, t.value) for t in tests)]) for tests, _ in METADATA],
)
def test_metadata(index: Index, name: str, tests: tuple[MetadataTest, ...], expected: set[int]) -> None:
    values: list[dict[str, Any]] = [
        {"color": "red", "size": 3, "day": "2026-01-01"},
        {"color": "blue", "size": 3.0, "done": True, "day": "2026-01-02"},
        {"color": None, "size": "3", "done": False, "day": "2026-02-01"},
        {"color": "green", "size": 1e9, "nested": {"deep": {"level": "x"}, "list": ["a", "b"]}},
        {"size": -1, "nested": {"list": ["c"]}, 'we ird "kéy"': "ü 🎉 *"},
        {},
    ]
    put(index, name, *(chunk(n, metadata=metadata) for n, metadata in enumerate(values)))
    wanted = [f"{entry(n)}#0" for n in sorted(expected)]
    assert near(index, name, metadata=tests) == wanted
    assert sorted(hit.id for hit in find(index, name, text="text", metadata=tests)) == wanted


def test_metadata_of_one_bank_never_stops_another_bank_s_writes(index: Index, name: str) -> None:
    """The same name with a number here, a word there, an object elsewhere: all are kept and found."""
    values: list[Any] = [1, "one", True, {"a": 1}, [1, "one"], 1.5, "2026-01-01", {"b": {"c": "x" * 20_000}}]
    outcomes = put(index, name, *(chunk(n, metadata={"v": value}) for n, value in enumerate(values)))
    assert {outcome.status for outcome in outcomes} == {"written"}
    assert near(index, name, metadata=(MetadataTest("v", "eq", "one"),)) == [f"{entry(1)}#0", f"{entry(4)}#0"]
    assert near(index, name, metadata=(MetadataTest("v", "eq", 1),)) == [f"{entry(0)}#0", f"{entry(4)}#0"]
    assert near(index, name, metadata=(MetadataTest("v.a", "eq", 1),)) == [f"{entry(3)}#0"]


def test_a_filtered_search_has_its_full_top_k(index: Index, name: str) -> None:
    """Ten documents of one key among two thousand that are all nearer to the query."""
    crowd = [chunk(n, key="crowd", vector=towards(n / 1000)) for n in range(2_000)]
    rare = [chunk(n, key="rare", vector=towards(100 + n)) for n in range(10)]
    for first in range(0, 2_000, 500):
        index.write(name, crowd[first : first + 500], DIMENSIONS)
    put(index, name, *rare)
    hits = find(index, name, vector=towards(0), size=10, above={partition("rare"): ids.LOWEST})
    assert [hit.entry for hit in hits] == [entry(n, "rare") for n in range(10)]


# --------------------------------------------------------------------------------------------------------------------
# Deletes and scans


def test_deleted_documents_are_gone_and_stay_gone(index: Index, name: str) -> None:
    put(index, name, chunk(1), chunk(2), chunk(2, bank="other"))
    index.delete(name, "bank", [f"{entry(1)}#0", f"{entry(9)}#0", f"{entry(2, bank='other')}#0"])
    index.delete(name, "bank", [])
    index.refresh(name)
    assert near(index, name) == [f"{entry(2)}#0"]
    assert near(index, name, bank="other") == [f"{entry(2, bank='other')}#0"]
    assert find(index, name, text="text", above={partition("k"): ids.LOWEST})[0].entry == entry(2)


def test_an_entry_s_delete_takes_its_chunks_and_the_windows_that_hold_it(index: Index, name: str) -> None:
    put(
        index,
        name,
        *(chunk(n, piece=piece) for n in range(5) for piece in range(2)),
        *(window(n, (n - 1, n, n + 1)) for n in range(1, 4)),
    )
    index.delete_entries(name, "bank", [entry(1), entry(77)])
    index.refresh(name)
    assert near(index, name) == [f"{entry(n)}#{piece}" for n in (0, 2, 3, 4) for piece in range(2)]
    assert near(index, name, form="window") == [f"{entry(3)}#w"]


def test_an_entry_s_delete_leaves_other_banks(index: Index, name: str) -> None:
    put(index, name, chunk(1), chunk(1, bank="other"))
    index.delete_entries(name, "bank", [entry(1), entry(1, bank="other")])
    index.refresh(name)
    assert near(index, name) == []
    assert len(near(index, name, bank="other")) == 1


def test_a_partition_s_delete(index: Index, name: str) -> None:
    put(
        index,
        name,
        chunk(1, key="a"),
        chunk(2, key="a"),
        window(2, (1, 2), key="a"),
        chunk(1, key="b"),
        chunk(5, key="a", generation=2),
    )
    index.delete_partition(name, "bank", 1, partition("a"))
    index.refresh(name)
    assert near(index, name) == [f"{entry(1, 'b')}#0"]
    assert near(index, name, form="window") == []
    assert near(index, name, generation=2) == [f"{entry(5, 'a')}#0"]


def test_a_partition_s_delete_through_a_watermark_spares_the_summary_at_it(index: Index, name: str) -> None:
    put(
        index,
        name,
        *(chunk(n) for n in range(5)),
        *(window(n, (n - 1, n, n + 1)) for n in range(1, 4)),
        chunk(1, summary=True),
        chunk(2, summary=True),
    )
    index.delete_partition(name, "bank", 1, partition("k"), through=ids.at(START + 2000))
    index.refresh(name)
    assert near(index, name) == sorted(f"{one}#0" for one in (entry(2, summary=True), entry(3), entry(4)))
    assert near(index, name, form="window") == [f"{entry(3)}#w"]


def test_a_generation_s_delete(index: Index, name: str) -> None:
    put(index, name, chunk(1, key="a"), window(1, (0, 1), key="b"), chunk(2, generation=2), chunk(3, bank="other"))
    index.delete_partition(name, "bank", 1, None)
    index.refresh(name)
    assert list(index.scan(name, "bank", 1)) == []
    assert near(index, name, generation=2) == [f"{entry(2)}#0"]
    assert near(index, name, bank="other") == [f"{entry(3, bank='other')}#0"]


def test_a_scan_shows_every_document_once(index: Index, name: str) -> None:
    documents = [chunk(n, key=key, version=3) for n in range(600) for key in "ab"] + [window(5, (4, 5, 6), key="a")]
    for first in range(0, len(documents), 500):
        index.write(name, documents[first : first + 500], DIMENSIONS)
    put(index, name, chunk(1, bank="other"), chunk(1, generation=2))
    found = list(index.scan(name, "bank", 1))
    assert sorted(one.id for one in found) == sorted(one.id for one in documents)
    assert {(one.form, one.version) for one in found} == {("chunk", 3), ("window", 1)}
    (one,) = [one for one in index.scan(name, "bank", 1, partition("a")) if one.form == "window"]
    assert (one.entry, one.members) == (
        entry(5, "a"),
        (Member(entry(4, "a"), 1), Member(entry(5, "a"), 1), Member(entry(6, "a"), 1)),
    )
    assert len(list(index.scan(name, "bank", 1, partition("b")))) == 600


def test_a_deleted_document_may_come_back(index: Index, name: str) -> None:
    put(index, name, chunk(1, "first"))
    index.delete_entries(name, "bank", [entry(1)])
    index.refresh(name)
    put(index, name, chunk(1, "second", version=1 + 1))
    assert len(find(index, name, text="second")) == 1
    assert find(index, name, text="first") == []


def test_what_was_deleted_may_be_written_again_in_the_same_version(index: Index, name: str) -> None:
    """Reconciling and rebuilding do so at once; a store that remembers deleted versions must not refuse it."""
    deletes: list[Callable[[], None]] = [
        lambda: index.delete(name, "bank", [f"{entry(1)}#0"]),
        lambda: index.delete_entries(name, "bank", [entry(1)]),
        lambda: index.delete_partition(name, "bank", 1, partition("k")),
        lambda: index.delete_partition(name, "bank", 1, None),
    ]
    for delete in deletes:
        assert [outcome.status for outcome in put(index, name, chunk(1, version=3))] == ["written"]
        delete()
        index.refresh(name)
        assert near(index, name) == []


# --------------------------------------------------------------------------------------------------------------------
# An index that is not there, and company


def test_an_index_that_does_not_exist_is_empty(index: Index, name: str) -> None:
    index.refresh(name)
    rankings = index.search(name, Filter("bank", 1), vector=towards(0), text="x", forms=("chunk", "window"), size=5)
    assert [ranking.hits for ranking in rankings] == [[]] * len(rankings)
    assert list(index.scan(name, "bank", 1)) == []
    index.delete(name, "bank", ["x#0"])
    index.delete_entries(name, "bank", [entry(1)])
    index.delete_partition(name, "bank", 1, None)
    index.delete_partition(name, "bank", 1, partition("k"), through=ids.LOWEST)
    index.refresh(name)


def test_indexes_of_other_sizes_live_side_by_side(index: Index, name: str) -> None:
    index.write(name, [chunk(1)], DIMENSIONS)
    index.write(name + "-3", [chunk(1, vector=[1.0, 0.0, 0.0]), chunk(2, vector=[0.0, 1.0, 0.0])], 3)
    index.refresh(name)
    index.refresh(name + "-3")
    assert near(index, name) == [f"{entry(1)}#0"]
    hits = find(index, name + "-3", vector=[0.0, 1.0, 0.0])
    assert [hit.entry for hit in hits] == [entry(2), entry(1)]


def test_many_threads_write_and_search(index: Index, name: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def work(worker: int) -> int:
        for n in range(10):
            (outcome,) = index.write(name, [chunk(n, f"worker{worker}", key=f"w{worker}")], DIMENSIONS)
            assert outcome.status == "written"
            find(index, name, text="worker1", vector=None)
        index.refresh(name)
        return len(find(index, name, vector=towards(0), above={partition(f"w{worker}"): ids.LOWEST}))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [10] * 8


def test_threads_race_to_create_the_index(index: Index, name: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda n: index.write(name, [chunk(n)], DIMENSIONS), range(8)))
    assert [outcome.status for (outcome,) in outcomes] == ["written"] * 8
    index.refresh(name)
    assert len(near(index, name)) == 8


def bruteforce(
    documents: Sequence[IndexDocument], allowed: Callable[[IndexDocument], bool], vector: Sequence[float]
) -> list[tuple[float, str]]:
    scores = []
    for document in filter(allowed, documents):
        norm = math.sqrt(sum(x * x for x in document.vector))
        cosine = sum(a * b for a, b in zip(document.vector, vector, strict=True)) / norm
        scores.append(((1 + cosine) / 2, document.id))
    return sorted(scores, reverse=True)


def test_random_changes_and_filters_agree_with_a_plain_list(index: Index, name: str) -> None:
    """Two hundred random writes, corrections and deletes; then every kind of filter against brute force."""
    chance = random.Random(5)
    state: dict[str, IndexDocument] = {}
    deleted: set[str] = set()
    for _ in range(40):
        batch: list[IndexDocument] = []
        for _ in range(5):
            n, key = chance.randrange(60), chance.choice("abc")
            while entry(n, key) in deleted:  # a store may remember deleted versions for a while
                n += 60
            document = chunk(
                n,
                key=key,
                version=chance.randrange(1, 6),
                speaker=chance.choice([None, "Ann", "Bob"]),
                tags=tuple(chance.sample(["x", "y", "z"], chance.randrange(3))),
                metadata={"n": n},
                vector=[chance.gauss(0, 1) for _ in range(DIMENSIONS)],
            )
            batch.append(document)
        for document, outcome in zip(batch, index.write(name, batch, DIMENSIONS), strict=True):
            newer = document.id not in state or state[document.id].version <= document.version
            assert outcome.status == ("written" if newer else "stale")
            if newer:
                state[document.id] = document
        if chance.random() < 0.3 and state:
            gone = chance.choice(sorted(state))
            index.refresh(name)
            index.delete_entries(name, "bank", [state[gone].entry])
            entry_gone = state[gone].entry
            state = {id: document for id, document in state.items() if document.entry != entry_gone}
            deleted.add(entry_gone)
    index.refresh(name)
    query = [chance.gauss(0, 1) for _ in range(DIMENSIONS)]
    norm = math.sqrt(sum(x * x for x in query))
    query = [x / norm for x in query]
    watermark = ids.at(START + 30_000)
    cases: list[tuple[dict[str, Any], Callable[[IndexDocument], bool]]] = [
        ({}, lambda d: True),
        ({"above": {partition("a"): ids.LOWEST}}, lambda d: d.partition == partition("a")),
        ({"above": {partition("b"): watermark}}, lambda d: d.partition == partition("b") and d.entry[:26] > watermark),
        ({"speakers": ("Ann",)}, lambda d: d.speaker == "Ann"),
        ({"tags_all": ("x", "y")}, lambda d: {"x", "y"} <= set(d.tags)),
        ({"tags_any": ("x", "y")}, lambda d: bool({"x", "y"} & set(d.tags))),
        ({"metadata": (MetadataTest("n", "lt", 20),)}, lambda d: d.metadata.get("n", 1e9) < 20),
    ]
    for filters, allowed in cases:
        expected = bruteforce(list(state.values()), allowed, query)[:10]
        hits = find(index, name, vector=query, size=10, **filters)
        assert [hit.id for hit in hits] == [id for _, id in expected], filters
        assert [hit.score for hit in hits] == pytest.approx([score for score, _ in expected], abs=1e-3)


# --------------------------------------------------------------------------------------------------------------------
# The embedded index alone: a file that processes share

WRITER = """
    import sys
    sys.path[:0] = {paths!r}
    from tests.contract.test_index import DIMENSIONS, EmbeddedIndex, chunk
    index = EmbeddedIndex({path!r})
    for n in range({first}, {last}):
        (outcome,) = index.write("shared", [chunk(n, "from another process")], DIMENSIONS)
        assert outcome.status == "written", outcome
    {then}
"""


def another_process(path: Path, first: int, last: int, then: str = "") -> subprocess.Popen[bytes]:
    code = textwrap.dedent(WRITER).format(paths=[p for p in sys.path if p], path=str(path), first=first, last=last, then=then)
    return subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2], env=os.environ)


def test_processes_share_one_file_and_see_each_other_s_writes(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "index.sqlite"
    index = EmbeddedIndex(str(path))
    put(index, "shared", chunk(1_000))
    assert near(index, "shared") == [f"{entry(1_000)}#0"]  # it is in memory now
    writers = [another_process(path, first, first + 20) for first in (0, 20)]
    for n in range(2_000, 2_020):
        put(index, "shared", chunk(n))
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    assert near(index, "shared") == [f"{entry(n)}#0" for n in (*range(40), 1_000, *range(2_000, 2_020))]
    assert len(find(index, "shared", text="another")) == 40
    deleting = 'index.delete_entries("shared", "bank", [chunk(3).entry])'
    assert another_process(path, 3, 4, deleting).wait(timeout=60) == 0
    assert f"{entry(3)}#0" not in near(index, "shared")
    assert len(find(index, "shared", text="another")) == 39


def test_a_restart_finds_everything_again(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    first = EmbeddedIndex(str(path))
    put(first, "i", chunk(1, "apple", tags=("t",), metadata={"a": 1}), window(2, (1, 2, 3), "pie"))
    first.close()
    again = EmbeddedIndex(str(path))
    assert [hit.entry for hit in find(again, "i", text="apple", tags_any=("t",), metadata=(MetadataTest("a", "eq", 1),))] == [
        entry(1)
    ]
    assert near(again, "i", form="window") == [f"{entry(2)}#w"]


def test_a_process_killed_in_a_write_leaves_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    dying = """
    import os, signal
    from memory_banks.adapters.embedded import index as module
    real = module.analysis.terms
    def terms(text):
        if text == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return real(text)
    module.analysis.terms = terms
    index.write("shared", [chunk(50), chunk(51), chunk(52, "die")], DIMENSIONS)
    """.replace("\n    ", "\n")
    assert another_process(path, 0, 2, dying).wait(timeout=60) == -9
    index = EmbeddedIndex(str(path))
    assert near(index, "shared") == [f"{entry(0)}#0", f"{entry(1)}#0"]
    assert [outcome.status for outcome in put(index, "shared", chunk(50))] == ["written"]
    assert len(find(index, "shared", text="text")) == 1


def test_a_process_that_missed_too_much_reads_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_banks.adapters.embedded.index.REMOVALS", 3)
    path = str(tmp_path / "index.sqlite")
    ours, theirs = EmbeddedIndex(path), EmbeddedIndex(path)
    put(theirs, "i", *(chunk(n) for n in range(20)))
    assert len(near(ours, "i")) == 20
    for n in range(10):
        theirs.delete_entries("i", "bank", [entry(n)])
    assert near(ours, "i") == [f"{entry(n)}#0" for n in range(10, 20)]


def test_memory_is_bounded_and_reloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_banks.adapters.embedded.index.MEMORY", 1)
    index = EmbeddedIndex(str(tmp_path / "index.sqlite"))
    put(index, "i", *(chunk(n, bank=bank) for n in range(3) for bank in "xyz"))
    for _ in range(2):
        for bank in "xyz":
            assert len(near(index, "i", bank=bank)) == 3


def test_a_file_that_can_t_be_opened_is_an_index_that_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for path in (tmp_path / "file" / "index.sqlite", tmp_path / "file"):
        index = EmbeddedIndex(str(path))
        with pytest.raises(IndexUnavailable):
            find(index, "i", text="text")
        with pytest.raises(IndexUnavailable):
            index.write("i", [chunk(1)], DIMENSIONS)


def test_a_locked_file_is_an_index_that_is_unavailable_and_comes_back(tmp_path: Path) -> None:
    import sqlite3

    path = str(tmp_path / "index.sqlite")
    index = EmbeddedIndex(path, busy_seconds=0.05)
    assert find(index, "i", text="text") == []  # the file is there now
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(IndexUnavailable):
        index.write("i", [chunk(1)], DIMENSIONS)
    assert find(index, "i", text="text") == []  # readers go on
    other.execute("ROLLBACK")
    assert [outcome.status for outcome in put(index, "i", chunk(1))] == ["written"]


def test_in_memory_it_needs_no_file() -> None:
    index = EmbeddedIndex(":memory:")
    put(index, "i", chunk(1, "apple"))
    assert [hit.entry for hit in find(index, "i", text="apple")] == [entry(1)]


def test_length_is_rounded_as_lucene_rounds_it(tmp_path: Path) -> None:
    """Lucene keeps lengths in one byte: 41 and 40 terms are the same length, 39 is another."""
    index = EmbeddedIndex(":memory:")
    put(index, "i", *(chunk(n, "needle " + "hay " * (n - 1)) for n in (39, 40, 41, 42)))
    scores = {hit.entry: hit.score for hit in find(index, "i", text="needle")}
    assert scores[entry(39)] > scores[entry(40)] == scores[entry(41)] > scores[entry(42)]

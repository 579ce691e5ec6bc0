"""What only a real OpenSearch can show: that nothing can be read back, that it reads words as we do, that it ranks alike."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from memory_banks.adapters.embedded import analysis
from memory_banks.adapters.embedded.embedder import SentenceEncoder
from memory_banks.adapters.embedded.index import EmbeddedIndex
from memory_banks.adapters.opensearch import OpenSearchIndex, mapping, statistics
from memory_banks.adapters.opensearch.client import connect
from memory_banks.adapters.opensearch.mapping import SHOWN
from memory_banks.clock import SystemClock
from memory_banks.ports import Filter, Form, Hit, Index, IndexDocument
from memory_banks.settings import Settings

from tests.contract.test_index import DIMENSIONS, chunk, entry, find, near, partition, put, towards, window
from tests.contract.test_index_statistics import EVER, recount, some
from tests.doubles.world import Counts

pytestmark = pytest.mark.opensearch


@pytest.fixture
def name() -> str:
    """An index that no other test uses."""
    return f"memory-banks-test-{random.SystemRandom().getrandbits(64):x}"


@pytest.fixture
def client(opensearch: Settings) -> Any:
    """A client of OpenSearch itself."""
    return connect(opensearch)


def test_text_and_vector_can_t_be_asked_for(opensearch_index: OpenSearchIndex, client: Any, name: str) -> None:
    put(opensearch_index, name, chunk(1, "a secret wording", speaker="Ann", tags=("t",), metadata={"a": "hidden"}))
    body = {"query": {"match_all": {}}, "stored_fields": ["*"], "_source": True, "fields": ["*"]}
    asked = client.search(index=name, body={"query": {"match_all": {}}})["hits"]["hits"]
    assert set(asked[0]["_source"]) == set(SHOWN)
    assert "secret" not in str(client.search(index=name, body=body))
    assert "hidden" not in str(asked)


def test_whatever_makes_the_index_it_comes_out_as_meant(opensearch_index: OpenSearchIndex, client: Any, name: str) -> None:
    """Between a drop of the index and our next write, another process's bulk may have OpenSearch create it."""
    put(opensearch_index, name, chunk(1))
    client.indices.delete(index=name)
    assert [outcome.status for outcome in put(opensearch_index, name, chunk(2))] == ["written"]
    assert near(opensearch_index, name) == [f"{entry(2)}#0"]
    assert client.indices.get_mapping(index=name)[name]["mappings"]["dynamic"] == "strict"


def test_unknown_metadata_never_grows_the_mapping(opensearch_index: OpenSearchIndex, client: Any, name: str) -> None:
    put(opensearch_index, name, chunk(1))
    before = client.indices.get_mapping(index=name)
    put(opensearch_index, name, *(chunk(n, metadata={f"path{n}": {f"deep{n}": [n, str(n), n > 5]}}) for n in range(50)))
    assert client.indices.get_mapping(index=name) == before


def test_processes_race_to_create_the_index(opensearch_index: OpenSearchIndex, opensearch: Settings, name: str) -> None:
    code = textwrap.dedent("""
        import random, sys
        sys.path[:0] = {paths!r}
        from memory_banks.adapters.opensearch import OpenSearchIndex, mapping, statistics
        from memory_banks.clock import SystemClock
        from memory_banks.settings import Settings
        from tests.contract.test_index import DIMENSIONS, chunk
        index = OpenSearchIndex.from_settings(Settings.model_validate({settings!r}), SystemClock(), random.SystemRandom())
        sys.stdin.readline()
        (outcome,) = index.write({name!r}, [chunk({n})], DIMENSIONS)
        assert outcome.status == "written", outcome
    """)
    chosen = opensearch.model_dump(exclude_unset=True)
    paths = [path for path in sys.path if path]
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", code.format(paths=paths, settings=chosen, name=name, n=n)],
            stdin=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        for n in range(3)
    ]
    for racer in racers:
        assert racer.stdin
        racer.stdin.write(b"go\n")
        racer.stdin.close()
    assert [racer.wait(timeout=60) for racer in racers] == [0, 0, 0]
    opensearch_index.refresh(name)
    assert near(opensearch_index, name) == [f"{entry(n)}#0" for n in range(3)]


def test_banks_on_many_shards(opensearch: Settings, opensearch_index: OpenSearchIndex, name: str) -> None:
    sharded = opensearch.model_copy(update={"opensearch_shards": 3})
    index = OpenSearchIndex.from_settings(sharded, SystemClock(), random.SystemRandom())
    banks = [f"bank{n}" for n in range(12)]
    put(index, name, *(chunk(n, bank=bank) for n in range(4) for bank in banks))
    for bank in banks:
        assert len(near(index, name, bank=bank)) == 4
        index.delete_entries(name, bank, [entry(0, bank=bank)])
        index.delete(name, bank, [f"{entry(1, bank=bank)}#0"])
        index.refresh(name)
        assert {one.entry for one in index.scan(name, bank, 1)} == {entry(n, bank=bank) for n in (2, 3)}


def test_more_watermarks_than_a_query_has_clauses_for_are_kept(opensearch_index: OpenSearchIndex, name: str) -> None:
    keys = [f"key{n}" for n in range(300)]
    put(opensearch_index, name, *(chunk(n, key=key) for key in keys for n in range(2)))
    above = {partition(key): entry(0)[:26] for key in keys}
    hits = find(opensearch_index, name, text="text " * 600, size=1_000, above=above)
    assert {hit.entry for hit in hits} == {entry(1, key) for key in keys}


def test_an_index_of_an_older_version_serves_on_and_is_named(
    opensearch: Settings, client: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its words are scored as they were; BM25 of a field can't be changed. What is made today raises no such word."""
    template = mapping.template(name, DIMENSIONS, opensearch)["template"]
    del template["settings"]["index"]["similarity"], template["mappings"]["properties"]["tokens"]
    for form in mapping.FORMS:
        template["mappings"]["properties"][mapping.text_field(form)].pop("similarity", None)
    client.indices.create(index=name, body=template)
    counts = Counts()
    index = OpenSearchIndex.from_settings(opensearch, SystemClock(), random.SystemRandom(), counts)
    put(index, name, chunk(1, "a word", tokens=2))
    assert near(index, name) == [f"{entry(1)}#0"]
    assert counts.counted == {"IndexOutdated": 1}
    assert f"the index {name} is not as it would be made today" in caplog.text
    put(index, f"{name}-new", chunk(1))
    again = OpenSearchIndex.from_settings(opensearch, SystemClock(), random.SystemRandom(), counts)
    put(again, f"{name}-new", chunk(2))
    assert counts.counted == {"IndexOutdated": 1}


TEXTS = [
    "She was running in the rain; he ran, too. They've run!",
    "Melanie's pottery class isn't Bob’s (it is the kids').",
    "Version 3.14, or 1,000.5 of foo_bar v2.0-rc1: see https://example.org/a?b=c, mail bob@example.org",
    "I'm an AI-driven, state-of-the-art e-mail client — with café, naïve, Größe, ÜBERRASCHUNGEN, façade",
    "我喜欢吃苹果,你呢?東京へ行きました。カタカナとひらがな。한국어를 배우고 있어요",
    "Мы поехали в Москву. Καλημέρα κόσμε! مرحبا بالعالم שלום עולם สวัสดีชาวโลก नमस्ते दुनिया",
    "Die Katzen saßen auf den Tischen und die Kinder spielten. Les enfants jouaient à l'école d'été.",
    "🎉🎉 party 👍🏽 👩‍👩‍👧‍👦 flag 🇩🇪 ok ☕ 1️⃣",
    "generalizations oscillators relational conditional hopping agreed flies dies ties skies happily",
    "A" * 300 + " " + "word" * 100 + " ½ x² n° ℃ № Ⅷ",
    "İstanbul ISTANBUL ıstanbul ﬁne ﬂow ß ẞ ΟΔΥΣΣΕΥΣ",
]


def test_statistics_beyond_what_can_be_listed_stay_within_their_bounds(
    opensearch_index: OpenSearchIndex, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More keys than are listed, more entries than can be gone through by rank."""
    documents = some(900, 60)
    put(opensearch_index, name, *documents)
    plain = recount(documents)
    monkeypatch.setattr(statistics, "VALUES", 20)
    monkeypatch.setattr(statistics, "RANKS", 10)
    found = opensearch_index.statistics(name, EVER, 3)
    assert found.partitions == pytest.approx(plain.partitions, rel=0.01)
    assert found.entries_per_partition and plain.entries_per_partition
    assert found.entries_per_partition.p95 == pytest.approx(plain.entries_per_partition.p95, rel=0.02)
    assert (found.entries_per_partition.min, found.entries_per_partition.max) == plain.entries_per_partition[2:]
    assert found.created_at and plain.created_at
    spread = plain.created_at.max - plain.created_at.min
    assert abs(found.created_at.p95 - plain.created_at.p95) < 0.02 * spread
    assert (found.top_partitions, found.top_tags) == (plain.top_partitions, plain.top_tags)


@pytest.mark.parametrize("text", TEXTS)
def test_words_are_read_as_the_embedded_index_reads_them(client: Any, opensearch_index: OpenSearchIndex, text: str) -> None:
    tokens = client.indices.analyze(body={"analyzer": "english", "text": text})["tokens"]
    assert analysis.terms(text) == [token["token"] for token in tokens]


# --------------------------------------------------------------------------------------------------------------------
# Alike

PEOPLE = ["Ann", "Bob", "Caroline", "David", "Melanie"]
DOINGS = ["painted a sunset at", "lost her keys in", "ran a marathon around", "met an old friend near", "got a job offer from"]
PLACES = ["the lake", "a small bakery", "Berlin", "the hospital", "the mountains", "an art gallery", "the school"]
TIMES = ["last weekend", "in May", "two years ago", "yesterday evening", "on her birthday", "before the move"]
QUERIES = [
    "Who painted the lake?",
    "When did Caroline run in Berlin?",
    "job interview",
    "What happened near the hospital on a birthday?",
    "meeting friends in the mountains",
    "Where are Melanie's keys",
]


def sentences() -> list[str]:
    """Some hundred distinct plain sentences, in an order that repeats itself."""
    every = [f"{who} {did} {where} {when}." for who in PEOPLE for did in DOINGS for where in PLACES for when in TIMES]
    return random.Random(7).sample(every, 400)


def corpus() -> list[IndexDocument]:
    """Chunks and windows of three keys, with the real model's vectors."""
    texts = sentences()
    vectors = SentenceEncoder().embed(texts)
    chunks = [chunk(n, text, key="abc"[n % 3], vector=vectors[n]) for n, text in enumerate(texts)]
    joined = [" ".join(texts[n - 1 : n + 2]) for n in range(1, 200)]
    windows = [
        window(n, (n - 1, n, n + 1), text, key="abc"[n % 3], vector=vector)
        for n, (text, vector) in enumerate(zip(joined, SentenceEncoder().embed(joined), strict=True), 1)
    ]
    return chunks + windows


def searched(index: Index, name: str, query: str, vector: Sequence[float], **filters: Any) -> dict[tuple[Form, str], list[Hit]]:
    chosen = Filter("bank", 1, **filters)
    rankings = index.search(name, chosen, vector=vector, text=query, forms=("chunk", "window"), size=20)
    return {(ranking.form, ranking.method): ranking.hits for ranking in rankings}


def test_both_indexes_rank_alike(opensearch_index: OpenSearchIndex, name: str) -> None:
    """Same documents, same queries: the same scores (BM25 up to one factor), the same order but for ties."""
    embedded = EmbeddedIndex(":memory:")
    for index in (embedded, opensearch_index):
        outcomes = index.write(name, corpus(), SentenceEncoder.dimensions)
        assert {outcome.status for outcome in outcomes} == {"written"}
        index.refresh(name)
    for query in QUERIES:
        vector = SentenceEncoder().embed_query(query)
        for filters in ({}, {"above": {partition("a"): "0" * 26}}):
            ours = searched(embedded, name, query, vector, **filters)
            theirs = searched(opensearch_index, name, query, vector, **filters)
            for ranking, hits in ours.items():
                others = theirs[ranking]
                assert len(hits) == len(others) > 0
                factor = 1.0 if ranking[1] == "vector" else others[0].score / hits[0].score
                tolerance = {"abs": 2e-3} if ranking[1] == "vector" else {"rel": 1e-3}
                expected = [hit.score * factor for hit in hits]
                assert [hit.score for hit in others] == pytest.approx(expected, **tolerance), (query, ranking)
                # What both rank before the last score's ties is the same.
                last = max(hits[-1].score * factor, others[-1].score) * 1.002 + 2e-3 * (ranking[1] == "vector")
                assert {hit.id for hit in hits if hit.score * factor > last} <= {hit.id for hit in others}, (query, ranking)


def test_the_adapter_s_dimension_is_the_mapping_s(opensearch_index: OpenSearchIndex, name: str) -> None:
    """A document of another model's size is refused alone, before it is sent."""
    outcomes = put(opensearch_index, name, chunk(1), chunk(2, vector=[*towards(2), 0.0]))
    assert [outcome.status for outcome in outcomes] == ["written", "failed"]
    assert str(DIMENSIONS) in str(outcomes[1].reason)

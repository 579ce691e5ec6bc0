"""What the OpenSearch adapter asks for, and what it does when the answer is a problem."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from memory_banks.adapters.opensearch import OpenSearchIndex, bulk, documents, mapping, queries
from memory_banks.adapters.opensearch.calls import CONNECTION_TRIES, Refused
from memory_banks.adapters.opensearch.index import WRITE_SECONDS
from memory_banks.ports import Filter, IndexDocument, IndexUnavailable, Outcome
from memory_banks.settings import Settings

from tests.contract.test_index import chunk, entry, partition, towards
from tests.doubles.clock import ManualClock
from tests.doubles.scripted_server import HANG_UP, Asked, ScriptedServer, scripted_server
from tests.doubles.world import Counts

OVERLOAD = {"status": 429, "error": {"type": "opensearch_rejected_execution_exception", "reason": "queue is full"}}
BROKEN = {"status": 400, "error": {"type": "mapper_parsing_exception", "reason": "no", "caused_by": {"type": "x", "reason": "y"}}}
MISSING = {"status": 404, "error": {"type": "index_not_found_exception", "reason": "no such index"}}
CREATED = {"status": 201}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as server:
        yield server


def settings(server: ScriptedServer, **changed: Any) -> Settings:
    return Settings.model_validate({"opensearch_url": server.url, "opensearch_auth": "none"} | changed)


@pytest.fixture
def index(server: ScriptedServer, clock: ManualClock, chance: random.Random) -> OpenSearchIndex:
    return OpenSearchIndex.from_settings(settings(server), clock, chance)


def items(*results: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    return 200, {"items": [{"index": result} for result in results]}


def write(index: OpenSearchIndex, *documents: IndexDocument) -> list[Outcome]:
    return index.write("i", documents, 8)


def ids_in(asked: Asked) -> list[str]:
    """The ids of a bulk request."""
    return [line["index"]["_id"] for line in asked.lines[::2]]


# --------------------------------------------------------------------------------------------------------------------
# Writes


def test_a_document_is_written_with_its_version_and_routed_by_its_bank(server: ScriptedServer, index: OpenSearchIndex) -> None:
    server.answers = [(200, {}), items(CREATED)]
    assert write(index, chunk(1, version=7)) == [Outcome(f"{entry(1)}#0", "written")]
    assert [(asked.method, asked.path.split("?")[0]) for asked in server.asked] == [("GET", "/i"), ("POST", "/i/_bulk")]
    action, body = server.asked[1].lines
    expected = {"_id": f"bank:{entry(1)}#0", "routing": "bank", "version": 7, "version_type": "external_gte"}
    assert action == {"index": expected}
    assert body["chunk_text"] == "text"
    assert body["chunk_vector"] == towards(1)
    assert "window_vector" not in body


def test_an_index_that_is_there_is_looked_for_once(server: ScriptedServer, index: OpenSearchIndex) -> None:
    server.answers = [(200, {}), items(CREATED), items(CREATED)]
    write(index, chunk(1))
    write(index, chunk(2))
    assert [asked.method for asked in server.asked] == ["GET", "POST", "POST"]


def test_a_new_index_comes_from_its_template(server: ScriptedServer, index: OpenSearchIndex) -> None:
    server.answers = [(404, {}), (200, {"acknowledged": True}), (200, {"acknowledged": True}), items(CREATED)]
    write(index, chunk(1))
    assert [(asked.method, asked.path.split("?")[0]) for asked in server.asked] == [
        ("GET", "/i"),
        ("PUT", "/_index_template/i"),
        ("PUT", "/i"),
        ("POST", "/i/_bulk"),
    ]
    (template,) = server.asked[1].lines
    assert template["index_patterns"] == ["i"]
    assert template["template"]["mappings"]["properties"]["chunk_vector"]["dimension"] == 8


def test_losing_the_race_to_create_is_no_error(server: ScriptedServer, index: OpenSearchIndex) -> None:
    exists = {"status": 400, "error": {"type": "resource_already_exists_exception", "reason": "it is there"}}
    server.answers = [(404, {}), (200, {}), (400, exists), items(CREATED)]
    assert write(index, chunk(1))[0].status == "written"


def test_an_index_that_can_t_be_made_says_why(server: ScriptedServer, index: OpenSearchIndex) -> None:
    broken = {"status": 400, "error": {"type": "validation_exception", "reason": "maximum shards open"}}
    server.answers = [(404, {}), (200, {}), (400, broken)]
    with pytest.raises(Refused, match="maximum shards open"):
        write(index, chunk(1))


@pytest.mark.parametrize("answer", [items(MISSING), (404, MISSING)])
def test_an_index_that_went_away_is_made_again(server: ScriptedServer, index: OpenSearchIndex, answer: Any) -> None:
    server.answers = [(200, {}), answer, (404, {}), (200, {}), (200, {}), items(CREATED)]
    assert write(index, chunk(1))[0].status == "written"
    assert [asked.method for asked in server.asked] == ["GET", "POST", "GET", "PUT", "PUT", "POST"]


def test_each_document_has_its_own_outcome(server: ScriptedServer, index: OpenSearchIndex) -> None:
    conflict = {"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "newer"}}
    server.answers = [(200, {}), items(CREATED, conflict, BROKEN)]
    outcomes = write(index, chunk(1), chunk(2), chunk(9, vector=[0.0] * 8), chunk(3))
    assert [outcome.status for outcome in outcomes] == ["written", "stale", "failed", "failed"]
    assert outcomes[3].reason == "mapper_parsing_exception: no; x: y"


def test_only_the_documents_that_were_put_off_are_sent_again(
    server: ScriptedServer, index: OpenSearchIndex, clock: ManualClock
) -> None:
    server.answers = [(200, {}), items(CREATED, OVERLOAD, BROKEN, OVERLOAD), items(OVERLOAD, CREATED), items(CREATED)]
    outcomes = write(index, *(chunk(n) for n in range(4)))
    assert [outcome.status for outcome in outcomes] == ["written", "written", "failed", "written"]
    sent = [ids_in(asked) for asked in server.asked[1:]]
    assert sent == [[f"bank:{entry(n)}#0" for n in some] for some in ([0, 1, 2, 3], [1, 3], [1])]
    assert len(clock.slept) == 2


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_an_overloaded_domain_is_asked_again_after_growing_pauses(
    server: ScriptedServer, index: OpenSearchIndex, clock: ManualClock, status: int
) -> None:
    server.answers = [(200, {}), *[(status, {"error": "busy"})] * 4, items(CREATED)]
    assert write(index, chunk(1))[0].status == "written"
    assert len(clock.slept) == 4
    assert all(0 <= pause <= 0.1 * 2**n for n, pause in enumerate(clock.slept))


def test_an_overload_beyond_the_budget_is_an_index_that_is_unavailable(
    server: ScriptedServer, index: OpenSearchIndex, clock: ManualClock
) -> None:
    server.answers = [(200, {})]
    server.otherwise = (429, {"error": {"type": "rejected", "reason": "queue is full"}})
    began = clock.now()
    with pytest.raises(IndexUnavailable, match="queue is full"):
        write(index, chunk(1))
    assert clock.now() - began <= WRITE_SECONDS * 1000
    assert sum(clock.slept) > WRITE_SECONDS / 3  # it did use its time


def test_documents_put_off_for_too_long_are_an_index_that_is_unavailable(
    server: ScriptedServer, index: OpenSearchIndex, clock: ManualClock
) -> None:
    server.answers = [(200, {})]
    server.otherwise = items(OVERLOAD)
    with pytest.raises(IndexUnavailable, match="queue is full"):
        write(index, chunk(1))
    assert sum(clock.slept) <= WRITE_SECONDS


def test_a_broken_connection_is_tried_again(server: ScriptedServer, index: OpenSearchIndex) -> None:
    server.answers = [(200, {}), HANG_UP, HANG_UP, items(CREATED)]
    assert write(index, chunk(1))[0].status == "written"


def test_a_domain_that_can_t_be_reached_is_given_up_soon(
    server: ScriptedServer, index: OpenSearchIndex, clock: ManualClock
) -> None:
    server.otherwise = HANG_UP
    for call in (
        lambda: write(index, chunk(1)),
        lambda: index.search("i", Filter("bank", 1), vector=towards(0), text=None, forms=("chunk",), size=1),
        lambda: index.delete("i", "bank", ["x#0"]),
        lambda: index.delete_entries("i", "bank", [entry(1)]),
        lambda: index.delete_partition("i", "bank", 1, None),
        lambda: list(index.scan("i", "bank", 1)),
        lambda: index.refresh("i"),
    ):
        server.asked.clear()
        with pytest.raises(IndexUnavailable, match="can't be reached"):
            call()
        assert len(server.asked) == CONNECTION_TRIES
    assert sum(clock.slept) < 5


def test_nobody_listening_is_an_index_that_is_unavailable(clock: ManualClock, chance: random.Random) -> None:
    with scripted_server() as gone:
        pass
    index = OpenSearchIndex.from_settings(settings(gone), clock, chance)
    with pytest.raises(IndexUnavailable, match="can't be reached"):
        index.refresh("i")


@pytest.mark.parametrize("status", [401, 403])
def test_not_being_let_in_is_a_pause_and_never_the_document_s_fault(
    server: ScriptedServer, index: OpenSearchIndex, status: int
) -> None:
    server.otherwise = (status, {"message": "User is not authorized"})
    with pytest.raises(IndexUnavailable, match=str(status)):
        write(index, chunk(1))
    assert len(server.asked) == 1


def test_a_request_that_makes_no_sense_is_our_fault(server: ScriptedServer, index: OpenSearchIndex) -> None:
    server.answers = [(200, {}), (400, {"error": {"type": "parse_exception", "reason": "what?"}})]
    with pytest.raises(Refused, match="what\\?"):
        write(index, chunk(1))


def test_a_request_that_is_too_large_is_halved(server: ScriptedServer, index: OpenSearchIndex) -> None:
    def at_most_two(asked: Asked) -> Any:
        ids = ids_in(asked)
        fits = len(ids) <= 2 and f"bank:{entry(3)}#0" not in ids
        return items(*[CREATED] * len(ids)) if fits else (413, {"message": "Request size exceeded"})

    server.answers = [(200, {})]
    server.otherwise = at_most_two
    outcomes = write(index, *(chunk(n) for n in range(7)))
    assert [outcome.status for outcome in outcomes] == ["written"] * 3 + ["failed"] + ["written"] * 3
    assert outcomes[3].reason == "too large for a request to OpenSearch"


def test_many_documents_are_spread_over_requests_of_bounded_size(
    server: ScriptedServer, index: OpenSearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "REQUEST_BYTES", 4_000)
    server.answers = [(200, {})]
    server.otherwise = lambda asked: items(*[BROKEN if "#7" in id else CREATED for id in ids_in(asked)])
    outcomes = write(index, *(chunk(n, piece=n % 10) for n in range(50)))
    assert [outcome.status for outcome in outcomes] == ["failed" if n % 10 == 7 else "written" for n in range(50)]
    assert [outcome.id for outcome in outcomes] == [f"{entry(n)}#{n % 10}" for n in range(50)]
    sent = server.asked[1:]
    assert len(sent) > 5
    assert all(len(asked.body) <= 4_000 for asked in sent)


def page(*found: tuple[str, int]) -> tuple[int, dict[str, Any]]:
    return 200, {"hits": {"hits": [{"_id": id, "_version": version} for id, version in found]}}


def deleted(*statuses: int) -> tuple[int, dict[str, Any]]:
    return 200, {"items": [{"delete": {"status": status, **({"error": {}} if status > 404 else {})}} for status in statuses]}


def test_a_document_that_changes_while_it_is_deleted_is_looked_at_again(server: ScriptedServer, index: OpenSearchIndex) -> None:
    server.answers = [
        (200, {}),
        page(("a", 1), ("b", 1)),
        deleted(200, 409),
        (200, {}),
        page(("b", 2)),
        deleted(200),
        (200, {}),
        page(),
    ]
    index.delete_entries("i", "bank", [entry(1)])
    assert [asked.path.split("?")[0] for asked in server.asked] == ["/i/_refresh", "/i/_search", "/i/_bulk"] * 2 + [
        "/i/_refresh",
        "/i/_search",
    ]
    versions = [[line["delete"]["version"] for line in asked.lines] for asked in server.asked if "_bulk" in asked.path]
    assert versions == [[1, 1], [2]]


def test_documents_that_never_stop_changing_are_an_index_that_is_unavailable(
    server: ScriptedServer, index: OpenSearchIndex
) -> None:
    answers = {"_refresh": (200, {}), "_search": page(("a", 1)), "_bulk": deleted(409)}
    server.otherwise = lambda asked: answers[asked.path.split("?")[0].rpartition("/")[2]]
    with pytest.raises(IndexUnavailable, match="keep changing"):
        index.delete_entries("i", "bank", [entry(1)])


def test_deletes_that_were_put_off_are_sent_again(server: ScriptedServer, index: OpenSearchIndex) -> None:
    there = [{"_id": f"bank:{id}#0", "_version": 3, "found": True} for id in "abc"]
    server.answers = [(200, {"docs": [*there, {"_id": "bank:d#0", "found": False}]}), deleted(200, 429, 404), deleted(200)]
    index.delete("i", "bank", ["a#0", "b#0", "c#0", "d#0"])
    assert [len(asked.lines) for asked in server.asked[1:]] == [3, 1]
    expected = {"_id": "bank:b#0", "routing": "bank", "version": 3, "version_type": "external_gte"}
    assert server.asked[2].lines == [{"delete": expected}]


def test_a_document_written_anew_survives_the_delete_of_what_it_was(server: ScriptedServer, index: OpenSearchIndex) -> None:
    server.answers = [(200, {"docs": [{"_id": "bank:a#0", "_version": 3, "found": True}]}), deleted(409)]
    index.delete("i", "bank", ["a#0"])
    assert len(server.asked) == 2


# --------------------------------------------------------------------------------------------------------------------
# Searches


def found(*responses: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    return 200, {"responses": list(responses)}


NONE = {"status": 200, "hits": {"hits": []}}


def test_a_search_is_one_round_trip(server: ScriptedServer, index: OpenSearchIndex) -> None:
    server.answers = [found(NONE, NONE, NONE, NONE)]
    rankings = index.search("i", Filter("bank", 1), vector=towards(0), text="apple", forms=("chunk", "window"), size=7)
    assert [(ranking.form, ranking.method) for ranking in rankings] == [
        ("chunk", "vector"),
        ("chunk", "keyword"),
        ("window", "vector"),
        ("window", "keyword"),
    ]
    (asked,) = server.asked
    assert asked.path == "/_msearch"
    headers, searches = asked.lines[::2], asked.lines[1::2]
    assert all(header["routing"] == "bank" and header["allow_partial_search_results"] is False for header in headers)
    knn = searches[0]["query"]["knn"]["chunk_vector"]
    assert knn["k"] == searches[0]["size"] == 7
    assert {"term": {"bank": "bank"}} in knn["filter"]["bool"]["filter"]  # the filter is inside the k-NN


def test_an_overloaded_shard_is_asked_again(server: ScriptedServer, index: OpenSearchIndex, clock: ManualClock) -> None:
    server.answers = [found(NONE, OVERLOAD), found(NONE, NONE)]
    index.search("i", Filter("bank", 1), vector=None, text="apple", forms=("chunk", "window"), size=7)
    assert len(server.asked) == 2
    assert len(clock.slept) == 1


def test_a_search_that_is_refused_is_our_fault(server: ScriptedServer, index: OpenSearchIndex) -> None:
    server.answers = [found(BROKEN)]
    with pytest.raises(Refused, match="mapper_parsing_exception"):
        index.search("i", Filter("bank", 1), vector=None, text="apple", forms=("chunk",), size=7)


def test_a_scan_that_is_cut_off_does_not_look_complete(server: ScriptedServer, index: OpenSearchIndex) -> None:
    source = {"entry": entry(1), "form": "chunk", "members": [entry(1)], "versions": [1]}
    page = {"_scroll_id": "s", "_shards": {"failed": 0}, "hits": {"hits": [{"_id": "bank:x#0", "_version": 1, "_source": source}]}}
    server.answers = [(200, {}), (200, page), (404, {"error": {"type": "search_context_missing_exception", "reason": "gone"}})]
    with pytest.raises(IndexUnavailable, match="cut off"):
        list(index.scan("i", "bank", 1))
    assert (server.asked[-1].method, server.asked[-1].path) == ("DELETE", "/_search/scroll")


def test_the_words_of_a_long_query_are_cut() -> None:
    assert queries.shortened("two words") == "two words"
    many = [f"word{n}" for n in range(2_000)]
    assert queries.shortened(" ".join(many)).split() == many[: queries.MOST_WORDS]
    assert queries.shortened("漢" * 2_000) == "漢" * queries.MOST_WORDS


def test_keys_that_were_never_compacted_cost_one_clause() -> None:
    many = {partition(f"k{n}"): "0" * 26 for n in range(1_000)}
    clause = queries.filters(Filter("bank", 1, above=many))
    assert clause["bool"].keys() == {"filter"}
    assert len(clause["bool"]["filter"]) == 3


@pytest.mark.parametrize(("watermarks", "searches"), [(0, 1), (400, 1), (401, 2), (1_000, 3)])
def test_watermarks_beyond_a_query_s_room_are_shared_out(watermarks: int, searches: int) -> None:
    above = {partition(f"k{n}"): entry(n)[:26] if n < watermarks else "0" * 26 for n in range(watermarks + 300)}
    parts = queries.portions(Filter("bank", 1, above=above, speakers=("Ann",)))
    assert len(parts) == searches
    assert all(part.speakers == ("Ann",) for part in parts)
    shared = [name for part in parts for name in part.above or ()]
    assert sorted(shared) == sorted(above)
    assert {name: mark for part in parts for name, mark in (part.above or {}).items()} == above
    for part in parts:
        assert len(queries.filters(part)["bool"].get("must_not", [])) <= queries.MOST_WATERMARKS


def test_the_hits_of_shared_out_keys_are_put_together_by_score(server: ScriptedServer, index: OpenSearchIndex) -> None:
    above = {partition(f"k{n}"): entry(n)[:26] for n in range(500)}

    def found(n: int, score: float) -> dict[str, Any]:
        shown = documents.body(chunk(n), 8) | {"entry": entry(n)}
        return {
            "_id": f"bank:{entry(n)}#0",
            "_score": score,
            "_source": {name: shown[name] for name in mapping.SHOWN if name in shown},
        }

    first, second = [found(1, 0.9), found(2, 0.5)], [found(3, 0.7), found(4, 0.4)]
    server.answers = [(200, {"responses": [{"hits": {"hits": hits}} for hits in (first, second)]})]
    (ranking,) = index.search("i", Filter("bank", 1, above=above), vector=None, text="word", forms=("chunk",), size=3)
    assert [(hit.entry, hit.score) for hit in ranking.hits] == [(entry(1), 0.9), (entry(3), 0.7), (entry(2), 0.5)]
    assert len(server.asked) == 1


def made(server: ScriptedServer, **changed: Any) -> dict[str, Any]:
    """An index as OpenSearch tells it: numbers of settings are text."""
    template = mapping.template("i", 8, settings(server, **changed))["template"]
    similarity = {"short_texts": {"type": "BM25", "k1": "0.6", "b": "0.4"}}
    return {"settings": {"index": {"similarity": similarity}}, "mappings": template["mappings"]}


def test_an_index_as_made_today_is_only_looked_at(server: ScriptedServer, clock: ManualClock, chance: random.Random) -> None:
    counts = Counts()
    index = OpenSearchIndex.from_settings(settings(server), clock, chance, counts)
    server.answers = [(200, {"i": made(server)}), items(CREATED)]
    write(index, chunk(1))
    assert [asked.method for asked in server.asked] == ["GET", "POST"]
    assert counts.counted == {}


def test_an_index_without_a_newer_field_is_given_it(server: ScriptedServer, index: OpenSearchIndex) -> None:
    old = made(server)
    del old["mappings"]["properties"]["tokens"]
    server.answers = [(200, {"i": old}), (200, {}), items(CREATED)]
    write(index, chunk(1))
    assert (server.asked[1].method, server.asked[1].path.split("?")[0]) == ("PUT", "/i/_mapping")
    assert server.asked[1].lines == [{"properties": {"tokens": {"type": "long"}}}]


def test_what_can_t_be_changed_of_an_older_index_is_told_once(
    server: ScriptedServer, clock: ManualClock, chance: random.Random, caplog: pytest.LogCaptureFixture
) -> None:
    counts = Counts()
    index = OpenSearchIndex.from_settings(settings(server), clock, chance, counts)
    old = made(server, opensearch_engine="faiss")
    old["settings"]["index"] = {}
    for form in mapping.FORMS:
        old["mappings"]["properties"][mapping.text_field(form)].pop("similarity", None)
    server.answers = [(200, {"i": old}), items(CREATED), items(CREATED)]
    write(index, chunk(1))
    write(index, chunk(2))
    assert counts.counted == {"IndexOutdated": 2}
    assert "words are scored by another BM25" in caplog.text
    assert "its vectors are in faiss, the setting says lucene" in caplog.text


# --------------------------------------------------------------------------------------------------------------------
# Engines and signatures


@pytest.mark.parametrize("cosine", [-1, -0.5, 0, 0.25, 1])
def test_faiss_scores_an_inner_product_and_we_show_the_cosine(cosine: float) -> None:
    score = cosine + 1 if cosine >= 0 else 1 / (1 - cosine)  # as the k-NN plugin documents it
    assert documents.of_inner_product(score) == pytest.approx((1 + cosine) / 2)


def test_vectors_that_are_not_unit_become_so() -> None:
    body = documents.body(chunk(1, vector=[3.0, 4.0] + [0.0] * 6), 8)
    assert body["chunk_vector"][:2] == pytest.approx([0.6, 0.8])
    assert math.hypot(*body["chunk_vector"]) == pytest.approx(1)


def test_engine_shards_replicas_and_graph_come_from_settings(server: ScriptedServer) -> None:
    chosen = settings(
        server,
        opensearch_engine="faiss",
        opensearch_shards=3,
        opensearch_replicas=2,
        opensearch_m=24,
        opensearch_ef_construction=256,
        opensearch_refresh_seconds=0.5,
    )
    made = mapping.template("i", 256, chosen)["template"]
    assert made["settings"]["index"] == {
        "knn": True,
        "number_of_shards": 3,
        "number_of_replicas": 2,
        "refresh_interval": "500ms",
        "similarity": {"short_texts": {"type": "BM25", "k1": 0.6, "b": 0.4}},
    }
    assert made["mappings"]["properties"]["window_vector"] == {
        "type": "knn_vector",
        "dimension": 256,
        "method": {
            "name": "hnsw",
            "engine": "faiss",
            "space_type": "innerproduct",
            "parameters": {"m": 24, "ef_construction": 256},
        },
    }
    unset = mapping.template("i", 256, settings(server, opensearch_refresh_seconds=-1))["template"]
    assert unset["settings"]["index"]["refresh_interval"] == "-1"


def test_requests_are_signed_for_the_domain(
    server: ScriptedServer, clock: ManualClock, chance: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"ACCESS_KEY_ID": "AKIDEXAMPLE", "SECRET_ACCESS_KEY": "secret", "DEFAULT_REGION": "eu-central-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    index = OpenSearchIndex.from_settings(settings(server, opensearch_auth="sigv4"), clock, chance)
    server.answers = [(200, {}), items(CREATED)]
    write(index, chunk(1))
    for asked in server.asked:
        headers = {name.lower(): value for name, value in asked.headers.items()}
        assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
        assert "/eu-central-1/es/aws4_request" in headers["authorization"]
        assert headers["x-amz-security-token"] == "token"
        assert headers["x-amz-content-sha256"] == hashlib.sha256(asked.body).hexdigest()


def test_basic_credentials_are_sent(server: ScriptedServer, clock: ManualClock, chance: random.Random) -> None:
    chosen = settings(server, opensearch_auth="basic", opensearch_user="u", opensearch_password="p")
    OpenSearchIndex.from_settings(chosen, clock, chance).refresh("i")
    assert {name.lower(): value for name, value in server.asked[0].headers.items()}["authorization"] == "Basic dTpw"


@pytest.mark.parametrize(
    ("changed", "names"),
    [({"opensearch_url": None}, "opensearch_url"), ({"opensearch_auth": "basic"}, "opensearch_password")],
)
def test_settings_that_are_missing_are_named(
    server: ScriptedServer, clock: ManualClock, chance: random.Random, changed: dict[str, Any], names: str
) -> None:
    with pytest.raises(ValueError, match=names):
        OpenSearchIndex.from_settings(settings(server, **changed), clock, chance).refresh("i")

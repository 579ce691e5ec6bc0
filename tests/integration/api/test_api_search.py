"""The search route over real event shapes and the embedded index."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Client, World

TURNS = [
    ("user", "My cat is called Mithril and hates the vacuum cleaner", {"topic": "pets", "n": 1}, ["pets"]),
    ("assistant", "Noted: Mithril the cat", {"topic": "pets", "n": 2}, ["pets", "ack"]),
    ("user", "We moved to Lisbon in March", {"topic": "home", "n": 3}, ["home"]),
    ("Zoë", "The invoice number is 4711", {"topic": "billing", "n": 4, "deep": {"paid": True}}, []),
]


@pytest.fixture
def bank(api: Client, world: World) -> str:
    made = api.bank(mode="slow_and_thorough")
    for number, (speaker, content, metadata, tags) in enumerate(TURNS):
        key = "one" if number < 3 else "two"
        when = f"2026-0{number + 1}-01T00:00:00Z"
        api.write(made, content, speaker=speaker, key=key, metadata=metadata, tags=tags, occurred_at=when)
    world.ingest()
    return made


def found(api: Client, bank: str, **body: Any) -> list[str]:
    answer = api("POST", f"/memory_banks/{bank}/search", body={"query": "Mithril Lisbon invoice"} | body)
    assert answer.status == 200, answer
    return [hit["entry"]["content"] for hit in answer.json["results"]]


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_the_best_match_comes_first_in_every_mode(api: Client, bank: str, mode: str) -> None:
    answer = api("POST", f"/memory_banks/{bank}/search", body={"query": "moved to Lisbon", "mode": mode, "top_k": 2})
    hit = answer.json["results"][0]
    assert set(hit) == {"entry", "score", "matched_text", "neighbors"}
    assert hit["entry"]["content"] == hit["matched_text"] == TURNS[2][1]
    assert (hit["entry"]["indexed"], hit["entry"]["truncated"], hit["neighbors"]) == (True, False, [])
    assert 0 <= hit["score"] <= 1
    assert len(answer.json["results"]) <= 2


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"key": "two"}, {3}),
        ({"key": ["one", "two"]}, {0, 1, 2, 3}),
        ({"key": "never"}, set()),
        ({"speaker": "Zoë"}, {3}),
        ({"speaker": ["assistant", "Zoë"]}, {1, 3}),
        ({"tags": ["pets"]}, {0, 1}),
        ({"tags": ["pets", "ack"]}, {1}),
        ({"tags_any": ["home", "ack"]}, {1, 2}),
        ({"metadata": {"topic": "home"}}, {2}),
        ({"metadata": {"topic": ["home", "billing"]}}, {2, 3}),
        ({"metadata": {"n": {"gte": 2, "lt": 4}}}, {1, 2}),
        ({"metadata": {"deep.paid": True}}, {3}),
        ({"metadata": {"deep.paid": {"exists": False}}}, {0, 1, 2}),
        ({"since": "2026-02-01T00:00:00Z", "until": "2026-04-01T00:00:00Z"}, {1, 2}),
        ({"kind": "summary"}, set()),
        ({"min_score": 1.0}, set()),
    ],
)
def test_filters(api: Client, bank: str, filters: dict[str, Any], expected: set[int]) -> None:
    assert set(found(api, bank, **filters)) == {TURNS[number][1] for number in expected}


def test_neighbors_and_debug(api: Client, bank: str) -> None:
    body = {"query": "Noted", "mode": "keyword", "neighbors": 1, "debug": True}
    hit = api("POST", f"/memory_banks/{bank}/search", body=body).json["results"][0]
    assert [turn["content"] for turn in hit["neighbors"]] == [TURNS[0][1], TURNS[2][1]]
    assert hit["debug"]


def test_what_was_corrected_or_deleted_is_not_found_from_that_moment(api: Client, bank: str) -> None:
    [entry] = [
        hit["entry"] for hit in api("POST", f"/memory_banks/{bank}/search", body={"query": "Lisbon", "top_k": 1}).json["results"]
    ]
    api("PATCH", f"/memory_banks/{bank}/entries/{entry['id']}", body={"content": "We moved to Porto"})
    assert TURNS[2][1] not in found(api, bank)
    api("DELETE", f"/memory_banks/{bank}/entries", query={"key": "two"})
    assert TURNS[3][1] not in found(api, bank)
    api("DELETE", f"/memory_banks/{bank}/source")
    assert found(api, bank) == []


def test_long_contents_are_cut_and_a_hundred_of_them_fit(api: Client, world: World) -> None:
    bank = api.bank()
    long = "needle " + 'x"\n' * 1_400
    entries = [{"content": long, "key": "k", "speaker": "user"} for _ in range(100)]
    assert api("POST", f"/memory_banks/{bank}/entries", body={"entries": entries}).status == 201
    world.ingest()
    body = {"query": "needle", "top_k": 100, "neighbors": 10, "mode": "keyword"}
    results = api("POST", f"/memory_banks/{bank}/search", body=body).json["results"]
    assert len(results) == 100
    for hit in results:
        assert hit["entry"]["truncated"] and 0 < len(hit["entry"]["content"]) <= 4000
        assert long.startswith(hit["entry"]["content"])


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({}, ["body", "query"]),
        ({"query": ""}, ["body", "query"]),
        ({"query": " "}, ["body", "query"]),
        ({"query": "x" * 8193}, ["body", "query"]),
        ({"query": "\ud800"}, ["body", "query"]),
        ({"query": "x", "top_k": 0}, ["body", "top_k"]),
        ({"query": "x", "top_k": 101}, ["body", "top_k"]),
        ({"query": "x", "mode": "fuzzy"}, ["body", "mode"]),
        ({"query": "x", "key": []}, ["body", "key"]),
        ({"query": "x", "key": ["k"] * 101}, ["body", "key"]),
        ({"query": "x", "key": "k" * 513}, ["body", "key", 0]),
        ({"query": "x", "min_score": 1.1}, ["body", "min_score"]),
        ({"query": "x", "min_score": 0.5, "mode": "keyword"}, ["body", "min_score"]),
        ({"query": "x", "neighbors": 11}, ["body", "neighbors"]),
        ({"query": "x", "since": "soon"}, ["body", "since"]),
        ({"query": "x", "kind": "note"}, ["body", "kind"]),
        ({"query": "x", "topk": 3}, ["body", "topk"]),
        ({"query": "x", "metadata": []}, ["body", "metadata"]),
        ({"query": "x", "metadata": {"a": None}}, ["body", "metadata"]),
        ({"query": "x", "metadata": {"a": {}}}, ["body", "metadata"]),
        ({"query": "x", "metadata": {"a": {"like": "b"}}}, ["body", "metadata"]),
        ({"query": "x", "metadata": {"a": {"gt": True}}}, ["body", "metadata"]),
        ({"query": "x", "metadata": {"a": {"exists": 1}}}, ["body", "metadata"]),
        ({"query": "x", "metadata": {"a": []}}, ["body", "metadata"]),
        ({"query": "x", "metadata": {"a": [[1]]}}, ["body", "metadata"]),
        ({"query": "x", "metadata": {"": 1}}, ["body", "metadata"]),
        ({"query": "x", "metadata": {str(number): 1 for number in range(21)}}, ["body", "metadata"]),
        ({"query": "x", "tags": ["a,b"]}, ["body", "tags"]),
    ],
)
def test_what_a_search_refuses(api: Client, world: World, body: dict[str, Any], loc: list[Any]) -> None:
    answer = api("POST", f"/memory_banks/{api.bank()}/search", body=body)
    assert (answer.status, answer.json["detail"][0]["loc"]) == (422, loc)


def test_a_vector_store_that_is_away_is_said(api: Client, world: World, bank: str) -> None:
    from memory_banks.ports import IndexUnavailable, ModelUnavailable

    class Away:
        def search(self, *_: Any, **__: Any) -> Any:
            raise IndexUnavailable("away")

    world.index = Away()
    answer = api("POST", f"/memory_banks/{bank}/search", body={"query": "x"})
    assert (answer.status, answer.json["error"]["code"]) == (503, "vector_store_unavailable")
    assert "retry-after" not in answer.headers

    class Mute:
        def __call__(self, *_: Any) -> Any:
            raise ModelUnavailable("throttled")

    world.embedders = Mute()
    answer = api("POST", f"/memory_banks/{bank}/search", body={"query": "x"})
    assert (answer.status, answer.json["error"]["code"]) == (503, "vector_store_unavailable")


def test_context_is_ready_for_a_prompt_and_within_its_budget(api: Client, bank: str) -> None:
    made = api("POST", f"/memory_banks/{bank}/context", body={"key": "one", "query": "vacuum", "max_tokens": 100})
    assert made.status == 200, made
    context = made.json
    assert set(context) == {"text", "messages", "parts", "tokens"}
    assert set(context["parts"]) == {"summary", "relevant", "recent"}
    assert context["tokens"] <= 100
    told = [entry["content"] for part in ("relevant", "recent") for entry in context["parts"][part]]
    assert sorted(told) == sorted(turn[1] for turn in TURNS[:3])
    assert all(content in context["text"] for content in told)
    small = api("POST", f"/memory_banks/{bank}/context", body={"key": "one", "max_tokens": 30}).json
    assert small["parts"]["recent"][-1]["content"] == TURNS[2][1] and small["parts"]["relevant"] == []
    assert small["tokens"] <= 30


def test_a_context_of_quotes_and_metadata_stays_below_what_a_lambda_may_give(api: Client, world: World) -> None:
    bank = api.bank()
    for _ in range(10):
        turn = {"content": '"' * 4_000, "key": "k", "speaker": "user", "metadata": {"a": '"' * 8_000}}
        assert api("POST", f"/memory_banks/{bank}/entries", body={"entries": [turn] * 10}).status == 201
    made = api("POST", f"/memory_banks/{bank}/context", body={"key": "k", "max_tokens": 100_000})
    assert made.status == 200 and made.json["parts"]["recent"]


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({"query": "x"}, ["body", "key"]),
        ({"key": "k", "max_tokens": 0}, ["body", "max_tokens"]),
        ({"key": "k", "max_tokens": 100_001}, ["body", "max_tokens"]),
        ({"key": "k", "query": " "}, ["body", "query"]),
        ({"key": "k", "tokens": 5}, ["body", "tokens"]),
    ],
)
def test_what_a_context_refuses(api: Client, body: dict[str, Any], loc: list[Any]) -> None:
    answer = api("POST", f"/memory_banks/{api.bank()}/context", body=body)
    assert (answer.status, answer.json["detail"][0]["loc"]) == (422, loc)

"""The store's routes, as LangGraph's client calls them, over real event shapes."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Client, World


def put(api: Client, namespace: list[str], key: str, value: Any, **rest: Any) -> Any:
    headers = rest.pop("headers", None)
    return api("PUT", "/store/items", body={"namespace": namespace, "key": key, "value": value} | rest, headers=headers)


def get(api: Client, namespace: str, key: str, **query: Any) -> Any:
    return api("GET", "/store/items", query={"namespace": namespace, "key": key} | query)


def search(api: Client, prefix: list[str], **body: Any) -> list[Any]:
    found = api("POST", "/store/items/search", body={"namespace_prefix": prefix} | body)
    assert found.status == 200, found
    return list(found.json["items"])


def test_an_item_lives_its_life(api: Client) -> None:
    made = put(api, ["users", "42"], "prefs", {"theme": "dark", "score": 4.5})
    assert (made.status, made.text) == (204, None)
    found = get(api, "users.42", "prefs")
    assert found.status == 200
    item = found.json
    assert item == {
        "namespace": ["users", "42"],
        "key": "prefs",
        "value": {"theme": "dark", "score": 4.5},
        "created_at": "2026-09-21T14:13:20.000Z",
        "updated_at": "2026-09-21T14:13:20.000Z",
        "version": item["version"],
    }
    assert made.headers["etag"] == found.headers["etag"] == f'"{item["version"]}"'
    assert search(api, ["users"]) == [item | {"score": None}]
    [scored] = search(api, ["users"], query="theme dark", filter={"score": {"$gt": 4}})
    assert scored["score"] > 0.3
    assert api("POST", "/store/namespaces", body={}).json == {"namespaces": [["users", "42"]]}
    gone = api("DELETE", "/store/items", body={"namespace": ["users", "42"], "key": "prefs"})
    assert (gone.status, gone.text) == (204, None)
    missing = get(api, "users.42", "prefs")
    assert (missing.status, missing.json) == (200, None)
    assert search(api, []) == []


def test_what_is_refused_and_how(api: Client) -> None:
    for namespace in ([], ["langgraph"], ["langgraph", "x"]):
        assert put(api, namespace, "k", {}).status == 400
    for namespace in (["a.b"], ["a", ""], ["a\0"], [1]):
        refused = put(api, namespace, "k", {})
        assert refused.status == 422
        assert refused.json["detail"][0]["loc"][:2] == ["body", "namespace"]
    for value in (None, 1, [], "text"):
        refused = put(api, ["a"], "k", value)
        assert (refused.status, refused.json["detail"][0]["loc"]) == (422, ["body", "value"])
    for body in ({"ttl": 0}, {"ttl": "1"}, {"ttl": True}, {"index": True}, {"index": "x"}):
        assert put(api, ["a"], "k", {}, **body).status == 422
    assert get(api, "a..b", "k").status == 422
    assert get(api, "", "k").json is None
    unknown = api("POST", "/store/items/search", body={"namespace_prefix": [], "filter": {"x": {"$foo": 1}}})
    assert (unknown.status, unknown.json["error"]["code"]) == (400, "unknown_operator")
    for body in ({"limit": -1}, {"offset": -1}, {"limit": 1001}, {"namespace_prefix": ["a.b"]}):
        assert api("POST", "/store/items/search", body=body).status == 422
    assert api("POST", "/store/namespaces", body={"prefix": ["a", ""]}).status == 422
    assert api("POST", "/store/namespaces", body={"max_depth": 0}).status == 422
    too_large = put(api, ["a"], "k", {"text": "x" * 1_048_576})
    assert (too_large.status, too_large.json["error"]["code"]) == (413, "value_too_large")
    assert search(api, []) == []


def test_scopes(world: World) -> None:
    reader, writer = Client(world, world.key("acme", "read")), Client(world, world.key("acme", "write"))
    assert put(reader, ["a"], "k", {}).status == 403
    assert put(writer, ["a"], "k", {}).status == 204
    assert get(reader, "a", "k").status == 200
    assert get(writer, "a", "k").status == 403
    assert reader("DELETE", "/store/items", body={"namespace": ["a"], "key": "k"}).status == 403
    puts = {"operations": [{"op": "put", "namespace": ["a"], "key": "k", "value": {}}]}
    assert reader("POST", "/store/batch", body=puts).status == 403
    assert reader("POST", "/store/batch", body={"operations": [{"op": "get", "namespace": ["a"], "key": "k"}]}).status == 200
    assert Client(world, None)("POST", "/store/namespaces", body={}).status == 401


def test_accounts_are_apart(api: Client, stranger: Client) -> None:
    put(api, ["a"], "k", {"text": "apple"})
    assert get(stranger, "a", "k").json is None
    assert search(stranger, []) == search(stranger, [], query="apple") == []
    assert stranger("POST", "/store/namespaces", body={}).json == {"namespaces": []}
    stranger("DELETE", "/store/items", body={"namespace": ["a"], "key": "k"})
    assert get(api, "a", "k").json is not None


def test_refresh_and_ttl(api: Client, world: World) -> None:
    put(api, ["a"], "k", {}, ttl=1)
    world.clock.advance(50)
    assert get(api, "a", "k", refresh_ttl="false").json is not None
    assert get(api, "a", "k").json is not None
    world.clock.advance(50)
    assert len(search(api, [], refresh_ttl=False)) == 1
    world.clock.advance(10)
    assert search(api, []) == []
    assert get(api, "a", "k").json is None


def test_comparing_before_setting(api: Client) -> None:
    first = put(api, ["a"], "k", {"n": 1}, headers={"If-None-Match": "*"})
    assert first.status == 204
    assert put(api, ["a"], "k", {"n": 2}, headers={"If-None-Match": "*"}).status == 412
    assert put(api, ["a"], "k", {"n": 2}, headers={"If-Match": first.headers["etag"]}).status == 204
    stale = put(api, ["a"], "k", {"n": 3}, headers={"If-Match": first.headers["etag"]})
    assert (stale.status, stale.json["error"]["code"]) == (412, "precondition_failed")
    named = {"namespace": ["a"], "key": "k"}
    assert api("DELETE", "/store/items", body=named, headers={"If-Match": first.headers["etag"]}).status == 412
    assert put(api, ["a"], "k", {}, headers={"If-Match": "1"}).status == 422
    assert put(api, ["a"], "k", {}, headers={"If-None-Match": "x"}).status == 422
    assert get(api, "a", "k").json["value"] == {"n": 2}


def test_a_batch(api: Client) -> None:
    put(api, ["a"], "old", {"n": 1})
    done = api(
        "POST",
        "/store/batch",
        body={
            "operations": [
                {"op": "put", "namespace": ["a"], "key": "new", "value": {"n": 2}},
                {"op": "get", "namespace": ["a"], "key": "old"},
                {"op": "get", "namespace": ["a"], "key": "new"},
                {"op": "search", "namespace_prefix": ["a"], "filter": {"n": 1}},
                {"op": "list_namespaces", "match_conditions": [{"match_type": "prefix", "path": ["a"]}]},
                {"op": "delete", "namespace": ["a"], "key": "old"},
            ]
        },
    )
    assert done.status == 200, done
    results = done.json["results"]
    assert results[1]["value"] == {"n": 1}
    assert [one["key"] for one in results[3]["items"]] == ["old"]
    assert results[4] == {"namespaces": [["a"]]}
    assert results[0] is results[2] is results[5] is None
    assert [one["key"] for one in search(api, [])] == ["new"]


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        ({"op": "put", "namespace": ["a.b"], "key": "k", "value": {}}, 422),
        ({"op": "put", "namespace": ["langgraph"], "key": "k", "value": {}}, 400),
        ({"op": "put", "namespace": [], "key": "k", "value": {}}, 400),
        ({"op": "put", "namespace": ["a"], "key": "k", "value": None}, 422),
        ({"op": "search", "filter": {"x": {"$foo": 1}}}, 400),
        ({"op": "frobnicate"}, 422),
        ({"op": "get", "namespace": ["a"], "key": "k", "surplus": 1}, 422),
    ],
)
def test_a_batch_with_one_bad_operation_writes_nothing(api: Client, bad: Any, status: int) -> None:
    good = {"op": "put", "namespace": ["a"], "key": "good", "value": {}}
    assert api("POST", "/store/batch", body={"operations": [good, bad]}).status == status
    assert search(api, []) == []


def test_an_answer_beyond_what_a_function_may_give_says_what_to_do(api: Client) -> None:
    for number in range(6):
        put(api, ["a"], f"k{number}", {"text": "x" * 1_000_000}, index=False)
    refused = api("POST", "/store/items/search", body={"namespace_prefix": ["a"]})
    assert (refused.status, refused.json["error"]["code"]) == (413, "answer_too_large")
    assert "limit" in refused.json["error"]["message"]
    assert len(search(api, ["a"], limit=5)) == 5


def test_what_is_away_is_a_503_and_nothing_is_written(api: Client, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from memory_banks.ports import BlobsUnavailable, IndexUnavailable

    def away(*_: Any, **__: Any) -> None:
        raise IndexUnavailable("away")

    def lost(*_: Any, **__: Any) -> None:
        raise BlobsUnavailable("away")

    monkeypatch.setattr(world.index, "write", away)
    refused = put(api, ["a"], "k", {"text": "apple"})
    assert (refused.status, refused.json["error"]["code"]) == (503, "vector_store_unavailable")
    monkeypatch.setattr(world.blobs, "put", lost)
    assert put(api, ["a"], "k", {"text": "x" * 500_000}, index=False).status == 503
    assert search(api, []) == []

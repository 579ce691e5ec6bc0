"""Bad input: each a clear 4xx that names the field, and nothing written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import Client, World

DEEP = '{"a":' * 10_000 + "1" + "}" * 10_000


@pytest.fixture
def conversation(api: Client) -> str:
    return api.bank()


@pytest.fixture
def general(api: Client) -> str:
    return api.bank(type="general")


def entries_in(world: World) -> int:
    return sum(item["sk"].startswith("E#") for item in world.table.everything())


OK = {"content": "c", "key": "k", "speaker": "user"}


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"key": "k", "speaker": "user"}, 422, "content"),
        ({"content": "c", "key": "k"}, 422, "speaker"),
        ({"content": "c", "speaker": "user"}, 422, "key"),
        (OK | {"key": ""}, 422, "key"),
        (OK | {"content": ""}, 422, "content"),
        (OK | {"content": " \n "}, 422, "content"),
        (OK | {"content": 7}, 422, "content"),
        (OK | {"content": "x" * 257 * 1024}, 422, "content"),
        (OK | {"key": "x" * 513}, 422, "key"),
        (OK | {"key": "é" * 257}, 422, "key"),
        (OK | {"content": "\ud800"}, 422, "content"),
        (OK | {"content": "a\0b"}, 422, "content"),
        (OK | {"key": "a\0b"}, 422, "key"),
        (OK | {"speaker": "\udfff"}, 422, "speaker"),
        (OK | {"tags": ["a,b"]}, 422, "tags"),
        (OK | {"tags": ["compaction-summary"]}, 422, "tags"),
        (OK | {"metadata": {"a": "\ud800"}}, 422, "metadata"),
        (OK | {"metadata": {"\ud800": 1}}, 422, "metadata"),
        (OK | {"metadata": {"a": "x" * 17_000}}, 422, "metadata"),
        (OK | {"id": "a/b"}, 422, "id"),
        (OK | {"occurred_at": "2026-11-30"}, 422, "occurred_at"),
        (OK | {"\ud800": 1}, 422, "body"),
        ({"entries": [OK] * 101}, 413, "entries"),
        ({"entries": []}, 422, "entries"),
        ({"entries": [OK, OK | {"content": ""}]}, 422, "content"),
        ({"entries": [OK, {"content": "c", "key": "k"}]}, 422, "speaker"),
    ],
)
def test_what_a_write_refuses(api: Client, world: World, conversation: str, body: dict[str, Any], status: int, field: str) -> None:
    answer = api("POST", f"/memory_banks/{conversation}/entries", body=body)
    assert answer.status == status
    if status == 422:
        assert field in answer.json["detail"][0]["loc"]
        assert answer.json["detail"][0]["msg"] and answer.json["detail"][0]["type"]
    else:
        assert field in answer.json["error"]["message"]
    assert entries_in(world) == 0 and world.ingestion.sent == []


def test_a_general_bank_refuses_a_speaker(api: Client, world: World, general: str) -> None:
    answer = api("POST", f"/memory_banks/{general}/entries", body=OK)
    assert (answer.status, answer.json["detail"][0]["loc"]) == (422, ["body", "speaker"])
    for batch, position in (([OK], 0), ([{"content": "c"}, OK], 1)):
        answer = api("POST", f"/memory_banks/{general}/entries", body={"entries": batch})
        assert (answer.status, answer.json["detail"][0]["loc"]) == (422, ["body", "entries", position, "speaker"])
    assert entries_in(world) == 0
    assert api("POST", f"/memory_banks/{general}/entries", body={"content": "no key either"}).status == 201


@pytest.mark.parametrize(
    ("raw", "loc"),
    [
        ("", ["body"]),
        ("{", ["body", 1]),
        ('{"content": "c",}', ["body", 16]),
        ("content=c", ["body", 0]),
        ('"text"', ["body"]),
        ("[]", ["body"]),
        ("null", ["body"]),
        ('{"content": NaN}', ["body"]),
        ('{"metadata": {"a": ' + "9" * 5000 + "}}", ["body"]),
        (b"\xff\xfe", ["body"]),
        (b'{"content": "\xc3"}', ["body"]),
        (DEEP, ["body", "a", "a", "a"]),
        ('{"content": "c", "metadata": ' + DEEP + "}", ["body", "metadata", "a", "a"]),
        ("[" * 10_000, ["body", 0, 0, 0]),
        ('{"entries": [{"content": "c"}, {"metadata": ' + DEEP + "}]}", ["body", "entries", 1, "metadata"][:4]),
        ('{"content": "c", "metadata": ' + '{"a":' * 40 + "1" + "}" * 40 + "}", ["body", "metadata", "a", "a"]),
    ],
)
def test_what_is_no_acceptable_json(api: Client, world: World, conversation: str, raw: Any, loc: list[Any]) -> None:
    answer = api("POST", f"/memory_banks/{conversation}/entries", raw=raw)
    assert answer.status == 422
    assert answer.json["detail"][0]["loc"] == loc
    assert entries_in(world) == 0


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x"])
def test_another_content_type_is_a_415(api: Client, world: World, conversation: str, kind: str) -> None:
    answer = api("POST", f"/memory_banks/{conversation}/entries", body=OK, headers={"content-type": kind})
    assert (answer.status, answer.json["error"]["code"]) == (415, "unsupported_media_type")
    assert "application/json" in answer.json["error"]["message"]
    assert entries_in(world) == 0


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON", "application/json; charset=utf-8"])
def test_json_is_json_in_any_spelling(api: Client, conversation: str, kind: str) -> None:
    path = f"/memory_banks/{conversation}/entries"
    assert api("POST", path, body=OK, headers={"content-type": kind}).status == 201
    assert api("POST", path, raw=json.dumps(OK).encode(), headers={"content-type": kind}).status == 201


def test_more_than_two_and_a_half_mebibytes_are_too_many(api: Client, world: World, conversation: str) -> None:
    body = {"entries": [OK | {"content": "x" * 250_000} for _ in range(11)]}
    answer = api("POST", f"/memory_banks/{conversation}/entries", body=body)
    assert (answer.status, answer.json["error"]["code"]) == (413, "body_too_large")
    assert entries_in(world) == 0


def test_thousands_of_wrong_fields_are_answered_with_the_first(api: Client, conversation: str) -> None:
    body = {f"field{number}": 1 for number in range(5000)}
    answer = api("POST", f"/memory_banks/{conversation}/entries", body=body)
    assert answer.status == 422 and len(answer.json["detail"]) == 50


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({}, "key"),
        ({"key": ""}, "key"),
        ({"key": "x" * 513}, "key"),
        ("key=%00", "key"),
        ({"key": "k", "limit": 0}, "limit"),
        ({"key": "k", "limit": 1001}, "limit"),
        ({"key": "k", "order": "up"}, "order"),
        ({"key": "k", "cursor": "forged"}, "cursor"),
        ({"key": "k", "cursor": "😀"}, "cursor"),
        ({"key": "k", "max_tokens": 0}, "max_tokens"),
        ({"key": "k", "since": "now"}, "since"),
        ({"key": "k", "until": "2026-11-30T00:00:00"}, "until"),
        ({"key": "k", "format": "xml"}, "format"),
        ({"key": "k", "tags": "x" * 129}, "tags"),
    ],
)
def test_what_a_load_refuses(api: Client, conversation: str, query: Any, field: str) -> None:
    answer = api("GET", f"/memory_banks/{conversation}/entries", query=query)
    assert answer.status == 422
    assert answer.json["detail"][0]["loc"][:2] == ["query", field]


def test_forgetting_names_its_key(api: Client, conversation: str) -> None:
    api.write(conversation)
    answer = api("DELETE", f"/memory_banks/{conversation}/entries")
    assert (answer.status, answer.json["detail"][0]["loc"]) == (422, ["query", "key"])
    assert len(api("GET", f"/memory_banks/{conversation}/entries", query={"key": "k"}).json["entries"]) == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there"])
def test_an_idempotency_key_has_a_form(api: Client, world: World, conversation: str, key: str) -> None:
    answer = api("POST", f"/memory_banks/{conversation}/entries", body=OK, headers={"Idempotency-Key": key})
    assert (answer.status, answer.json["detail"][0]["loc"]) == (422, ["header", "Idempotency-Key"])
    assert entries_in(world) == 0


@pytest.mark.parametrize("tag", ["x", "0", "-1", '"1', "1, 2"])
def test_if_match_is_a_version(api: Client, conversation: str, tag: str) -> None:
    entry = api.write(conversation)["id"]
    path = f"/memory_banks/{conversation}/entries/{entry}"
    answer = api("PATCH", path, body={"content": "d"}, headers={"If-Match": tag})
    assert (answer.status, answer.json["detail"][0]["loc"]) == (422, ["header", "If-Match"])
    assert api("GET", path).json["content"] == "hello"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/memory_banks/", 404),
        ("GET", "/memory_bank", 404),
        ("POST", "/memory_banks/x/y/z", 404),
        ("GET", "/memory_banks/none", 404),
        ("GET", "/memory_banks/" + "x" * 5000, 404),
        ("GET", "/memory_banks/ä", 404),
        ("GET", '/memory_banks/"quoted"', 404),
        ("PATCH", "/memory_banks", 405),
        ("DELETE", "/version", 405),
        ("OPTIONS", "/memory_banks", 405),
    ],
)
def test_what_is_not_there_is_said_in_our_shape(api: Client, method: str, path: str, status: int) -> None:
    answer = api(method, path)
    assert answer.status == status
    assert set(answer.json["error"]) >= {"code", "message"}
    if status == 405:
        assert answer.headers["allow"]

"""Entry routes over real event shapes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import Client, World

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=60)


def test_what_is_written_is_loaded_in_order_byte_for_byte(api: Client, world: World) -> None:
    bank = api.bank()
    texts = [
        "first",
        "zweite – ✓",
        "\u202eright to left",
        "a\u0301 ≠ á",
        "😀" * 3,
        '"quotes" \\ and\nlines\t\r\n',
        "\u2028\ufeff\x01",
    ]
    body = {"entries": [{"content": text, "key": "k", "speaker": "user"} for text in texts]}
    made = api("POST", f"/memory_banks/{bank}/entries", body=body)
    assert made.status == 201
    assert [entry["content"] for entry in made.json["entries"]] == texts
    loaded = api("GET", f"/memory_banks/{bank}/entries", query={"key": "k"}).json
    assert (loaded["entries"], loaded["next_cursor"]) == (made.json["entries"], None)
    newest = api("GET", f"/memory_banks/{bank}/entries", query={"key": "k", "order": "desc", "limit": 2}).json
    assert [entry["content"] for entry in newest["entries"]] == texts[:-3:-1]
    assert newest["next_cursor"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=TEXT.filter(str.strip), speaker=TEXT.filter(str.strip), key=TEXT, tag=TEXT, escaped=st.booleans())
def test_any_valid_unicode_comes_back(api: Client, content: str, speaker: str, key: str, tag: str, escaped: bool) -> None:
    bank = api.bank()
    tags = [tag] if tag.strip() and "," not in tag else []
    entry = {"content": content, "speaker": speaker, "key": key, "tags": tags, "metadata": {tag: [content]}}
    made = api("POST", f"/memory_banks/{bank}/entries", raw=json.dumps(entry, ensure_ascii=escaped))
    assert made.status == 201, made
    [back] = api("GET", f"/memory_banks/{bank}/entries", query={"key": key}).json["entries"]
    assert {name: back[name] for name in entry} == entry
    assert [row["key"] for row in api("GET", f"/memory_banks/{bank}/keys").json["keys"]] == [key]


def test_the_shape_of_an_entry(api: Client) -> None:
    bank = api.bank()
    entry = api.write(
        bank,
        tags=["a"],
        metadata={"n": 1.5, "deep": {"list": [True, None]}},
        occurred_at="2026-01-01T01:00:00.5+01:00",
        id="mine-1",
    )
    assert entry == {
        "id": "mine-1",
        "key": "k",
        "kind": "entry",
        "speaker": "user",
        "content": "hello",
        "tags": ["a"],
        "metadata": {"n": 1.5, "deep": {"list": [True, None]}},
        "occurred_at": "2026-01-01T00:00:00.500Z",
        "created_at": entry["created_at"],
        "tokens": 2,
        "indexed": False,
        "version": 1,
    }
    one = api("GET", f"/memory_banks/{bank}/entries/mine-1")
    assert (one.json, one.headers["etag"]) == (entry, '"1"')


def test_pages_follow_their_cursor(api: Client) -> None:
    bank = api.bank()
    body = {"entries": [{"content": str(number), "key": "k", "speaker": "user"} for number in range(25)]}
    api("POST", f"/memory_banks/{bank}/entries", body=body)
    for order in ("asc", "desc"):
        seen: list[str] = []
        query: dict[str, Any] = {"key": "k", "limit": 10, "order": order}
        while True:
            page = api("GET", f"/memory_banks/{bank}/entries", query=query).json
            seen += [entry["content"] for entry in page["entries"]]
            if not page["next_cursor"]:
                break
            query["cursor"] = page["next_cursor"]
        assert seen == [str(number) for number in (range(25) if order == "asc" else range(24, -1, -1))]


def test_filters_of_a_load(api: Client) -> None:
    bank = api.bank()
    api.write(bank, "one", speaker="Ann, Bob", tags=["x", "y"], occurred_at="2026-01-01T00:00:00Z")
    api.write(bank, "two", speaker="assistant", tags=["x"], occurred_at="2026-02-01T00:00:00Z")
    api.write(bank, "three", speaker="user", occurred_at="2026-03-01T00:00:00Z")

    def load(**query: Any) -> list[str]:
        answer = api("GET", f"/memory_banks/{bank}/entries", query={"key": "k"} | query)
        assert answer.status == 200, answer
        return [entry["content"] for entry in answer.json["entries"]]

    assert load(speaker="Ann, Bob") == ["one"]
    assert load(speaker=["assistant", "user"]) == ["two", "three"]
    assert load(tags="x") == ["one", "two"]
    assert load(tags="x,y") == ["one"]
    assert load(since="2026-02-01T00:00:00Z", until="2026-03-01T00:00:00Z") == ["two"]
    assert load(max_tokens=3) == ["two", "three"]


def test_messages_are_ready_for_a_chat_model(api: Client) -> None:
    bank = api.bank()
    for speaker, text in [("system", "Be kind."), ("user", "Hi"), ("assistant", "Hello"), ("Zoë", "Me too")]:
        api.write(bank, text, speaker=speaker)
    loaded = api("GET", f"/memory_banks/{bank}/entries", query={"key": "k", "format": "messages"}).json
    assert loaded == {
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello"},
            {"role": "user", "content": "Zoë: Me too"},
        ],
        "next_cursor": None,
    }


@pytest.mark.parametrize(("text", "escapes"), [('"', 4), ("\n", 3), ("é", 1), ("\x01", 7)])
def test_an_answer_stays_below_what_a_lambda_may_give(api: Client, text: str, escapes: int) -> None:
    """Quotes and line breaks are escaped twice; a page is cut by what it is on the wire, and the cursor goes on there."""
    bank = api.bank()
    content = "x" + text * (100_000 // len(text.encode()))
    for _ in range(8):
        body = {"entries": [{"content": content, "key": "k", "speaker": "user"} for _ in range(3)]}
        assert api("POST", f"/memory_banks/{bank}/entries", body=body).status == 201
    seen = 0
    query: dict[str, Any] = {"key": "k", "limit": 1000}
    while True:
        page = api("GET", f"/memory_banks/{bank}/entries", query=query).json  # the double checks the 6 MB
        seen += len(page["entries"])
        assert all(entry["content"] == content for entry in page["entries"])
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == 24
    newest = api("GET", f"/memory_banks/{bank}/entries", query={"key": "k", "limit": 1000, "max_tokens": 10**9}).json
    assert newest["entries"][-1]["content"] == content


def test_the_same_request_twice_is_one(api: Client) -> None:
    bank = api.bank()
    request = {"body": {"content": "once", "key": "k", "speaker": "user"}, "headers": {"Idempotency-Key": "request, 1"}}
    first = api("POST", f"/memory_banks/{bank}/entries", **request)
    again = api("POST", f"/memory_banks/{bank}/entries", **request)
    assert (first.status, again.status) == (201, 201)
    assert first.json["entries"][0]["id"] == again.json["entries"][0]["id"]
    assert len(api("GET", f"/memory_banks/{bank}/entries", query={"key": "k"}).json["entries"]) == 1
    other = request | {"body": {"content": "other", "key": "k", "speaker": "user"}}
    refused = api("POST", f"/memory_banks/{bank}/entries", **other)
    assert (refused.status, refused.json["detail"][0]["loc"]) == (422, ["header", "Idempotency-Key"])


def test_an_id_of_ones_own_is_one_entry(api: Client) -> None:
    bank = api.bank()
    first = api.write(bank, id="a.b-c_1")
    again = api.write(bank, id="a.b-c_1")
    assert again == first | {"existing": True}
    body = {"content": "other", "key": "k", "speaker": "user", "id": "a.b-c_1"}
    conflict = api("POST", f"/memory_banks/{bank}/entries", body=body)
    assert (conflict.status, conflict.json["error"]["code"]) == (409, "id_conflict")


def test_a_correction_and_its_version(api: Client) -> None:
    bank = api.bank()
    entry = api.write(bank, "wrong", tags=["a"], metadata={"m": 1})
    path = f"/memory_banks/{bank}/entries/{entry['id']}"
    after = api("PATCH", path, body={"content": "right"}, headers={"If-Match": '"1"'})
    assert (after.status, after.json["content"], after.json["version"], after.headers["etag"]) == (200, "right", 2, '"2"')
    assert (after.json["tags"], after.json["metadata"]) == (["a"], {"m": 1})
    assert (after.json["created_at"], after.json["id"]) == (entry["created_at"], entry["id"])
    stale = api("PATCH", path, body={"content": "lost"}, headers={"If-Match": "1"})
    assert (stale.status, stale.json["error"]["code"]) == (412, "version_mismatch")
    assert api("PATCH", path, body={"tags": [], "metadata": {}}).json["tags"] == []
    assert api("GET", path).json["content"] == "right"
    assert [one["content"] for one in api("GET", f"/memory_banks/{bank}/entries", query={"key": "k"}).json["entries"]] == ["right"]


def test_deleting_an_entry_and_forgetting_a_key(api: Client) -> None:
    bank = api.bank()
    gone, stays = api.write(bank, "gone"), api.write(bank, "stays")
    api.write(bank, "other", key="other")
    path = f"/memory_banks/{bank}/entries/{gone['id']}"
    assert api("DELETE", path).status == 204
    assert api("GET", path).status == api("DELETE", path).status == 404
    loaded = api("GET", f"/memory_banks/{bank}/entries", query={"key": "k"}).json["entries"]
    assert [entry["id"] for entry in loaded] == [stays["id"]]
    for _ in range(2):
        assert api("DELETE", f"/memory_banks/{bank}/entries", query={"key": "k"}).status == 204
    assert api("GET", f"/memory_banks/{bank}/entries", query={"key": "k"}).json["entries"] == []
    assert [row["key"] for row in api("GET", f"/memory_banks/{bank}/keys").json["keys"]] == ["other"]


def test_renaming_a_key(api: Client) -> None:
    bank = api.bank(capture={})
    path = f"/memory_banks/{bank}/rename"
    first = api.write(bank, "apples")
    api("POST", f"/memory_banks/{bank}/runs", body={"key": "k", "run_id": "r", "messages": [{"sender": "user", "text": "pears"}]})
    for _ in range(2):
        renamed = api("POST", path, body={"key": "k", "to": "new"})
        assert (renamed.status, renamed.json) == (200, {"key": "new", "renamed_from": "k"})
    entries = f"/memory_banks/{bank}/entries"
    assert api("GET", f"{entries}/{first['id']}").json == first | {"key": "new"}
    loaded = {key: api("GET", entries, query={"key": key}).json["entries"] for key in ("k", "new")}
    assert loaded == {"k": [], "new": [first | {"key": "new"}]}
    runs = {key: api("GET", f"/memory_banks/{bank}/runs", query={"key": key}).json["runs"] for key in ("k", "new")}
    assert runs["k"] == [] and [run["run_id"] for run in runs["new"]] == ["r"]
    assert [row["key"] for row in api("GET", f"/memory_banks/{bank}/keys").json["keys"]] == ["new"]
    assert [job["key"] for job in api("GET", f"/memory_banks/{bank}/jobs").json["jobs"]] == ["new"]
    api.write(bank, "taken", key="taken")
    assert api("POST", path, body={"key": "new", "to": "taken"}).json["error"]["code"] == "key_exists"
    assert api("POST", path, body={"key": "never", "to": "other"}).json["error"]["code"] == "key_not_found"
    for body in (
        {"key": "new", "to": "new"},
        {"key": "new", "to": ""},
        {"key": "", "to": "x"},
        {"key": "new"},
        {"key": "new", "to": "é" * 257},
    ):
        assert api("POST", path, body=body).status == 422


def test_a_general_bank_may_do_without_keys(api: Client) -> None:
    bank = api.bank(type="general")
    made = api("POST", f"/memory_banks/{bank}/entries", body={"content": "a fact"}).json["entries"][0]
    assert (made["key"], made["speaker"]) == ("", None)
    assert api("GET", f"/memory_banks/{bank}/entries").json["entries"] == [made]
    assert api("DELETE", f"/memory_banks/{bank}/entries", query="key=").status == 204
    assert api("GET", f"/memory_banks/{bank}/entries").json["entries"] == []


def test_a_waiting_write_answers_at_its_deadline_when_nothing_indexes(api: Client, world: World) -> None:
    bank = api.bank()
    before = world.clock.now()
    body = {"content": "c", "key": "k", "speaker": "user"}
    made = api("POST", f"/memory_banks/{bank}/entries", query={"wait": "true"}, body=body)
    assert (made.status, made.json["entries"][0]["indexed"]) == (201, False)
    assert 19_000 <= world.clock.now() - before <= 21_000


def test_a_waiting_write_answers_as_soon_as_it_is_searchable(api: Client, world: World) -> None:
    bank = api.bank()

    class AtOnce:
        """A queue whose messages are worked on at once."""

        def send(self, messages: Any, delay_seconds: int = 0) -> None:
            from memory_banks import ingestion

            for message in messages:
                ingestion.ingest(world, message)

    world.ingestion = AtOnce()
    body = {"entries": [{"content": f"turn {number}", "key": "k", "speaker": "user"} for number in range(3)]}
    made = api("POST", f"/memory_banks/{bank}/entries", query={"wait": "true"}, body=body)
    assert [entry["indexed"] for entry in made.json["entries"]] == [True] * 3
    assert world.clock.slept == []

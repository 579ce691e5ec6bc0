"""The limits of requests: what is taken comes back byte for byte, what is not is refused with its field named."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_banks import limits
from memory_banks.clock import iso
from memory_banks.errors import Invalid, TooLarge
from memory_banks.requests import MANY, ONE, CorrectEntry, CreateBank, LoadEntries, UpdateBank, Write, WriteEntry, entries_of
from pydantic import TypeAdapter, ValidationError

WRITE: TypeAdapter[Any] = TypeAdapter(Write)
VALID_TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))


def refused(body: dict[str, Any]) -> tuple[Any, ...]:
    """Where a write is refused, without the mark of its form."""
    with pytest.raises(ValidationError) as error:
        WRITE.validate_python(body)
    return tuple(part for part in error.value.errors()[0]["loc"] if part not in {ONE, MANY})


@given(content=VALID_TEXT.filter(str.strip), key=VALID_TEXT.filter(lambda key: len(key.encode()) <= 512))
def test_valid_unicode_is_taken_as_it_is(content: str, key: str) -> None:
    [entry] = entries_of(WRITE.validate_json(json.dumps({"content": content, "key": key})))
    assert (entry.content, entry.key) == (content, key)


JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | VALID_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(VALID_TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(metadata=st.dictionaries(VALID_TEXT, JSON_VALUE, max_size=5))
def test_metadata_is_taken_as_it_is(metadata: dict[str, Any]) -> None:
    body = json.loads(json.dumps({"content": "c", "metadata": metadata}))
    [entry] = entries_of(WRITE.validate_python(body))
    assert json.dumps(entry.metadata) == json.dumps(metadata)


@given(text=st.text(st.characters(categories=("Cs", "Lu")), min_size=1), where=st.sampled_from(["content", "key", "speaker"]))
def test_a_lone_surrogate_is_refused_where_it_stands(text: str, where: str) -> None:
    body = {"content": "c", "key": "k", "speaker": "s"} | {where: text}
    if any("\ud800" <= character <= "\udfff" for character in text):
        assert refused(body) == (where,)
    elif len(text.encode()) <= 128:
        WRITE.validate_python(body)


@pytest.mark.parametrize("bad", ["\0", "a\0b", "\ud800", "\udfff tail"])
@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({"content": "X"}, ("content",)),
        ({"content": "c", "key": "X"}, ("key",)),
        ({"content": "c", "speaker": "X"}, ("speaker",)),
        ({"content": "c", "tags": ["ok", "X"]}, ("tags", 1)),
        ({"content": "c", "metadata": {"a": ["X"]}}, ("metadata",)),
        ({"content": "c", "metadata": {"X": 1}}, ("metadata",)),
        ({"content": "c", "id": "X"}, ("id",)),
        ({"entries": [{"content": "c"}, {"content": "X"}]}, ("entries", 1, "content")),
    ],
)
def test_text_that_can_not_come_back_is_refused_with_its_place(bad: str, body: dict[str, Any], loc: tuple[Any, ...]) -> None:
    assert refused(json.loads(json.dumps(body).replace("X", json.dumps(bad)[1:-1]))) == loc


@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({}, ("content",)),
        ({"content": None}, ("content",)),
        ({"content": 5}, ("content",)),
        ({"content": ""}, ("content",)),
        ({"content": " \n\t\u3000"}, ("content",)),
        ({"content": "x" * (limits.CONTENT_BYTES + 1)}, ("content",)),
        ({"content": "é" * (limits.CONTENT_BYTES // 2 + 1)}, ("content",)),
        ({"content": "c", "key": "x" * 513}, ("key",)),
        ({"content": "c", "key": "é" * 257}, ("key",)),
        ({"content": "c", "speaker": ""}, ("speaker",)),
        ({"content": "c", "speaker": "x" * 129}, ("speaker",)),
        ({"content": "c", "tags": "a"}, ("tags",)),
        ({"content": "c", "tags": ["a,b"]}, ("tags",)),
        ({"content": "c", "tags": [" "]}, ("tags",)),
        ({"content": "c", "tags": ["x" * 129]}, ("tags",)),
        ({"content": "c", "tags": [str(number) for number in range(21)]}, ("tags",)),
        ({"content": "c", "tags": ["compaction-summary"]}, ("tags",)),
        ({"content": "c", "metadata": []}, ("metadata",)),
        ({"content": "c", "metadata": {"a": "x" * 16_384}}, ("metadata",)),
        ({"content": "c", "metadata": {"a": float("inf")}}, ("metadata",)),
        ({"content": "c", "metadata": json.loads('{"a":' * 17 + "1" + "}" * 17)}, ("metadata",)),
        ({"content": "c", "occurred_at": "yesterday"}, ("occurred_at",)),
        ({"content": "c", "occurred_at": "2026-11-30T12:00:00"}, ("occurred_at",)),
        ({"content": "c", "occurred_at": 1_700_000_000}, ("occurred_at",)),
        ({"content": "c", "occurred_at": "0001-01-01T00:00:00+14:00"}, ("occurred_at",)),
        ({"content": "c", "occurred_at": "9999-12-31T23:59:59-14:00"}, ("occurred_at",)),
        ({"content": "c", "id": ""}, ("id",)),
        ({"content": "c", "id": "a b"}, ("id",)),
        ({"content": "c", "id": ".."}, ("id",)),
        ({"content": "c", "id": "x" * 129}, ("id",)),
        ({"content": "c", "id": "0" * 52}, ("id",)),
        ({"contnet": "c"}, ("content",)),
        ({"content": "c", "speeker": "s"}, ("speeker",)),
        ({"entries": []}, ("entries",)),
        ({"entries": {}}, ("entries",)),
        ({"entries": [{"content": "c"}], "wait": True}, ("wait",)),
    ],
)
def test_what_is_refused_in_a_write(body: dict[str, Any], loc: tuple[Any, ...]) -> None:
    assert refused(body) == loc


def test_limits_are_inclusive() -> None:
    body = {
        "content": "é" * (limits.CONTENT_BYTES // 2),
        "key": "é" * 256,
        "speaker": "é" * 128,
        "tags": [f"{number:0128}" for number in range(20)],
        "metadata": {"a": "x" * (16_384 - len('{"a":""}'))},
        "id": "x" * 128,
    }
    assert len(entries_of(WRITE.validate_python(body))) == 1
    assert len(entries_of(WRITE.validate_python({"entries": [{"content": "c"}] * 100}))) == 100


def test_a_hundred_and_one_entries_are_too_large_before_any_is_looked_at() -> None:
    with pytest.raises(TooLarge, match="100"):
        WRITE.validate_python({"entries": [{"nonsense": 1}] * 101})


def test_tags_twice_are_once() -> None:
    assert WriteEntry(content="c", tags=["b", "a", "b"]).tags == ["b", "a"]


@given(time=st.datetimes(datetime(1000, 1, 2), datetime(9999, 12, 29)), offset=st.integers(-14 * 60, 14 * 60))
def test_a_time_keeps_its_millisecond_in_any_offset(time: datetime, offset: int) -> None:
    moment = time.replace(tzinfo=UTC)
    local = moment + timedelta(minutes=offset)
    sign = "-" if offset < 0 else "+"
    text = local.replace(tzinfo=None).isoformat() + f"{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    taken = limits.milliseconds(text)
    assert iso(taken) == moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.mark.parametrize("field", ["type", "mode", "embedding_model", "dimensions", "chunk_size", "chunk_overlap"])
def test_what_is_fixed_at_creation_can_not_be_updated(field: str) -> None:
    with pytest.raises(Invalid) as error:
        UpdateBank.model_validate({field: None})
    assert error.value.loc == ("body", field)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "  "},
        {"name": "x" * 256},
        {"name": None},
        {"name": "b", "type": "chat"},
        {"name": "b", "mode": "turbo"},
        {"name": "b", "description": "x" * 1001},
        {"name": "b", "max_turns": -1},
        {"name": "b", "max_turns": "many"},
        {"name": "b", "max_turns": 1.5},
        {"name": "b", "retention_days": -1},
        {"name": "b", "retention_days": 10**12},
        {"name": "b", "dimensions": 0},
        {"name": "b", "chunk_size": 0},
        {"name": "b", "chunk_overlap": -1},
        {"name": "b", "strip_quoted_reply_chains": None},
    ],
)
def test_what_is_refused_of_a_new_bank(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        CreateBank.model_validate(body)


def test_unknown_fields_of_the_compatible_bodies_are_ignored_as_the_published_api_does() -> None:
    assert CreateBank.model_validate({"name": "b", "later": 1}).name == "b"
    assert UpdateBank.model_validate({"later": 1}).model_fields_set == set()


@pytest.mark.parametrize("body", [{}, {"content": None}, {"tags": None}, {"metadata": None}, {"key": "k"}, {"content": " "}])
def test_a_correction_says_what_is_new_and_nothing_else(body: dict[str, Any]) -> None:
    with pytest.raises((ValidationError, Invalid)):
        CorrectEntry.model_validate(body)


def test_a_correction_can_take_tags_and_metadata_away() -> None:
    correction = CorrectEntry.model_validate({"tags": [], "metadata": {}})
    assert (correction.content, correction.tags, correction.metadata) == (None, [], {})


def test_commas_separate_tags_of_a_load_but_not_speakers() -> None:
    query = LoadEntries.model_validate({"tags": ["a,b", "c"], "speaker": ["Ann, Bob"]})
    assert (query.tags, query.speaker) == (["a", "b", "c"], ["Ann, Bob"])

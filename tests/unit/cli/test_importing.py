"""How turns become requests, and what is made of the service's answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from clients.cli import importing
from clients.cli.client import Client, Refused
from clients.cli.failure import Failure
from clients.cli.histories.turn import Piece, Turn, Unreadable

CONVERSATION = {"id": "b", "type": "conversation", "name": "bank"}
GENERAL = CONVERSATION | {"type": "general"}


class Service:
    """A service of a few lines: keeps entries by id, refuses what a test tells it to."""

    def __init__(self, refuse: Callable[[list[dict[str, Any]]], httpx.Response | None] = lambda entries: None) -> None:
        self.refuse = refuse
        self.entries: dict[str, dict[str, Any]] = {}
        self.requests: list[list[dict[str, Any]]] = []
        self.client = Client("http://service", "key")
        self.client._http = httpx.Client(base_url="http://service", transport=httpx.MockTransport(self.answer))

    def answer(self, request: httpx.Request) -> httpx.Response:
        entries = json.loads(request.content)["entries"]
        self.requests.append(entries)
        if refusal := self.refuse(entries):
            return refusal
        shown = [entry | ({"existing": True} if entry["id"] in self.entries else {}) for entry in entries]
        self.entries |= {entry["id"]: entry for entry in entries}
        return httpx.Response(201, json={"entries": shown})

    def bring_in(self, *pieces: Piece, bank: dict[str, Any] = CONVERSATION, key: str | None = None) -> importing.Outcome:
        return importing.bring_in(self.client, bank, pieces, key=key, fallback="file", quiet=True)


def turn(content: Any, number: int = 1, **more: Any) -> Turn:
    return Turn(f"line {number}", content, more.pop("speaker", "user"), **more)


def invalid(*positions: int) -> httpx.Response:
    detail = [{"loc": ["body", "entries", one, "content"], "msg": "must not be blank", "type": "x"} for one in positions]
    return httpx.Response(422, json={"detail": detail})


def test_a_second_time_adds_only_what_is_new() -> None:
    service = Service()
    history = [turn("hello"), turn("ok"), turn("ok"), turn("ok", speaker="assistant")]

    assert len(service.bring_in(*history).written) == 4
    again = service.bring_in(*history, turn("ok"), turn("bye"))
    assert (len(again.written), again.known) == (2, 4)
    assert len(service.entries) == 6


def test_the_same_text_under_another_key_is_another_entry() -> None:
    service = Service()
    service.bring_in(turn("hello"), key="a")

    assert len(service.bring_in(turn("hello"), key="b").written) == 1


def test_what_comes_with_an_id_keeps_it() -> None:
    service = Service()
    service.bring_in(turn("hello", id="mine"))

    assert service.entries.keys() == {"mine"}


def test_keys_are_the_options_then_the_turns_then_the_files() -> None:
    service = Service()
    service.bring_in(turn("a", key="own"), turn("b"))
    service.bring_in(turn("c", key="own"), key="given")

    assert [entry["key"] for entry in service.entries.values()] == ["own", "file", "given"]


def test_a_general_bank_gets_the_speaker_as_metadata() -> None:
    service = Service()
    service.bring_in(turn("a", metadata={"m": 1}), bank=GENERAL)

    (entry,) = service.entries.values()
    assert entry.keys() == {"content", "key", "metadata", "id"}
    assert entry["metadata"] == {"speaker": "user", "m": 1}


def test_batches_hold_a_hundred_entries_and_two_megabytes() -> None:
    service = Service()
    service.bring_in(*(turn(f"text {number}") for number in range(250)))
    service.bring_in(*(turn("x" * 200_000 + str(number)) for number in range(12)))

    assert [len(entries) for entries in service.requests] == [100, 100, 50, 9, 3]


def test_what_is_refused_by_position_is_told_and_the_rest_goes_in() -> None:
    service = Service(
        lambda entries: invalid(*bad) if (bad := [i for i, one in enumerate(entries) if one["content"] == " "]) else None
    )
    outcome = service.bring_in(*(turn(" " if number % 10 == 0 else str(number), number) for number in range(1, 31)))

    assert len(outcome.written) == 27
    assert outcome.refused == [(f"line {number}", "content: must not be blank") for number in (10, 20, 30)]


def test_what_is_refused_without_a_position_is_found_by_halving() -> None:
    conflict = httpx.Response(409, json={"error": {"code": "conflict", "message": "this id has other content"}})
    service = Service(lambda entries: conflict if any(one["content"] == "bad" for one in entries) else None)
    outcome = service.bring_in(*(turn("bad" if number == 13 else str(number), number) for number in range(100)))

    assert len(outcome.written) == 99
    assert outcome.refused == [("line 13", "this id has other content")]
    assert len(service.requests) < 20


def test_what_is_no_turn_is_told_too() -> None:
    outcome = Service().bring_in(Unreadable("line 1", "no JSON"), turn("a", 2))

    assert (len(outcome.written), outcome.refused) == (1, [("line 1", "no JSON")])


def test_a_lone_surrogate_is_refused_alone() -> None:
    def refuse(entries: list[dict[str, Any]]) -> httpx.Response | None:
        bad = [i for i, one in enumerate(entries) if not one["content"].isascii()]
        return invalid(*bad) if bad else None

    outcome = Service(refuse).bring_in(turn("a", 1), turn("\ud800", 2), turn("b", 3))

    assert len(outcome.written) == 2
    assert [where for where, _ in outcome.refused] == ["line 2"]


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_what_is_about_the_import_ends_it(status: int) -> None:
    answer = httpx.Response(status, json={"error": {"code": "x", "message": "no"}})
    service = Service(lambda entries: answer)

    with pytest.raises(Refused, match="no"):
        service.bring_in(*(turn(str(number)) for number in range(10)))
    assert len(service.requests) == 1


def test_a_service_that_is_away_for_a_moment_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("clients.cli.client.time.sleep", pauses.append)
    answers = [httpx.Response(503, headers={"retry-after": "3"}), httpx.Response(429)]
    service = Service(lambda entries: answers.pop(0) if answers else None)

    assert len(service.bring_in(turn("a")).written) == 1
    assert pauses == [3, 1]


def test_a_service_that_stays_away_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clients.cli.client.time.sleep", lambda seconds: None)
    error = {"error": {"code": "database_unavailable", "message": "The table can't be reached."}}
    service = Service(lambda entries: httpx.Response(503, json=error))

    with pytest.raises(Refused, match="can't be reached"):
        service.bring_in(turn("a"))


def test_nobody_there_is_said_with_the_address() -> None:
    with pytest.raises(Failure, match=r"127\.0\.0\.1:9 .*serve"):
        Client("http://127.0.0.1:9", "key").call("GET", "/memory_banks")


@pytest.mark.parametrize("url", ["http://[", "nonsense", "ftp://x"])
def test_a_wrong_address_is_a_failure(url: str) -> None:
    with pytest.raises(Failure):
        Client(url, "key").call("GET", "/memory_banks")

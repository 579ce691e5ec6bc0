"""What `memory-banks reconcile` asks of a service, and what it makes of the answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from clients.cli.main import main

BANK = {"id": "0b", "name": "friends", "type": "conversation"}


class Service:
    """Knows one bank, and gives the states of its job one after the other."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self.states = iter(states)
        self.asked: list[tuple[str, str, Any]] = []
        self.refuse: httpx.Response | None = None

    def answer(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, request.url.path, body))
        if request.url.path == "/memory_banks":
            return httpx.Response(200, json={"data": [BANK], "pagination": {"has_next": False}})
        if self.refuse:
            return self.refuse
        return httpx.Response(202 if request.method == "POST" else 200, json=next(self.states))


def job(status: str, current: int = 0, mended: dict[str, int] | None = None, error: str | None = None) -> dict[str, Any]:
    return {"id": "J1", "status": status, "progress": {"current": current, "total": None}, "mended": mended, "error": error}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    made: list[float] = []
    monkeypatch.setattr("clients.cli.reconcile.time.sleep", made.append)
    return made


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, pauses: list[float]) -> Iterator[Any]:
    """Let the command meet this service."""
    real = httpx.Client

    def use(service: Service) -> Service:
        monkeypatch.setattr(httpx, "Client", lambda **options: real(**options, transport=httpx.MockTransport(service.answer)))
        return service

    yield use


def run(*arguments: str) -> int:
    return main(["reconcile", *arguments, "--api-key", "mb_x"])


def test_it_waits_for_the_end_and_tells_what_was_mended(
    serve: Any, pauses: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    done = job("completed", 30, {"indexed": 2, "removed": 3})
    service = serve(Service(job("queued"), job("running", 10), job("running", 20, {"indexed": 1, "removed": 3}), done))
    assert run("friends") == 0
    assert capsys.readouterr().out == "friends: 30 entries compared, 2 indexed again, 3 documents removed\n"
    assert service.asked[1] == ("POST", "/memory_banks/0b/rebuild", {"reconcile": True})
    assert service.asked[2:] == [("GET", "/memory_banks/0b/jobs/J1", None)] * 3
    assert len(pauses) == 3


def test_without_waiting_it_only_names_the_job(serve: Any, pauses: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    service = serve(Service(job("queued")))
    assert run("0b", "--no-wait") == 0
    assert capsys.readouterr().out == "friends (0b): job J1 queued\n"
    assert len(service.asked) == 2
    assert pauses == []


@pytest.mark.parametrize(
    ("ended", "says"),
    [
        (job("failed", 5, {"indexed": 1, "removed": 0}, "the model is gone"), "job J1 failed: the model is gone"),
        (job("cancelled", 5, None, None), "job J1 cancelled"),
        (job("completed", 9, {"indexed": 0, "removed": 0}, "not all documents were looked at"), "not all documents were looked at"),
    ],
)
def test_what_is_not_right_at_the_end_is_told_and_a_failure(
    serve: Any, capsys: pytest.CaptureFixture[str], ended: dict[str, Any], says: str
) -> None:
    serve(Service(job("queued"), ended))
    assert run("friends") == 1
    out, errors = capsys.readouterr()
    assert f"{ended['progress']['current']} entries compared" in out
    assert says in errors


def test_another_rebuild_is_told(serve: Any, capsys: pytest.CaptureFixture[str]) -> None:
    service = serve(Service())
    service.refuse = httpx.Response(409, json={"error": {"code": "rebuild_running", "message": "another rebuild is running"}})
    assert run("friends") == 1
    assert "another rebuild is running" in capsys.readouterr().err


def test_a_bank_that_is_not_there_is_told_and_nothing_begun(serve: Any, capsys: pytest.CaptureFixture[str]) -> None:
    service = serve(Service())
    assert run("strangers") == 1
    assert "there is no bank 'strangers'" in capsys.readouterr().err
    assert len(service.asked) == 1

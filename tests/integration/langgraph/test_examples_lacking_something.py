"""What the examples say when something is missing: at once, on one line, and with what to do."""

from __future__ import annotations

from typing import Any

import pytest

from clients.cli.client import Client
from examples import memory as examples_memory
from examples import models
from examples.chatbot import __main__ as chatbot
from examples.memory import FormingBank, NotDistilled
from examples.memory_service import __main__ as memory_service
from examples.offline import service


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (models.MODEL, service.URL, service.API_KEY):
        monkeypatch.delenv(name, raising=False)


def test_without_a_service_the_guided_talk_begins_nothing_and_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert memory_service.main([]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert service.API_KEY in printed.err and "--offline" in printed.err


def test_without_a_model_the_guided_talk_begins_nothing_and_says_how(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(service.API_KEY, "mb_x")
    assert memory_service.main([]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"{models.MODEL}=" in printed.err


def test_the_chatbot_knows_the_name_of_its_own_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """`.env.example` says so of `EXAMPLES_MODEL`."""
    talked: list[Any] = []
    monkeypatch.setenv(models.MODEL, models.OFFLINE)
    monkeypatch.setenv(service.API_KEY, "mb_x")
    monkeypatch.setattr(chatbot, "_talk", lambda *of: talked.append(of))
    assert chatbot.main([]) == 0
    assert len(talked) == 1


def test_a_distillation_that_waits_too_long_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    class Paused(Client):
        def call(self, method: str, path: str, **_: Any) -> Any:
            return {"id": "j", "status": "queued", "error": "no model can fill schemas"}

    monkeypatch.setattr(examples_memory, "POLL_SECONDS", 0)
    with pytest.raises(NotDistilled, match="still queued after 0 seconds: no model can fill schemas"):
        FormingBank(Paused("http://127.0.0.1:1", "k"), "b").flush("k", seconds=0)

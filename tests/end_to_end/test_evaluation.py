"""The shipped evaluation cases against the whole service: passed by a model that answers rightly, failed by several that do not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clients.cli.client import Client
from examples.evaluation import case as cases
from examples.evaluation.__main__ import HERE, main
from examples.evaluation.running import Verdict, run
from examples.offline import distiller, model_server
from examples.offline.distiller import Shown, distilled, shown
from examples.offline.model_server import Asked
from tests.serving import Served, served

pytestmark = [pytest.mark.clients, pytest.mark.emulator]

CASES = {case.name: case for case in cases.read_all(HERE)}
Play = Callable[[Asked], str]


class Model:
    """The model behind the service, changed by each test."""

    def __init__(self) -> None:
        self.play: Play = distilled

    def __call__(self, asked: Asked) -> str:
        return self.play(asked)


@pytest.fixture(scope="module")
def players() -> Model:
    return Model()


@pytest.fixture(scope="module")
def service(players: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with (
        model_server.playing(players) as url,
        served(tmp_path_factory.mktemp("evaluation"), environment=model_server.settings(url)) as started,
    ):
        yield started


@pytest.fixture
def judge(service: Served, players: Model) -> Iterator[Callable[[str, Play], Verdict]]:
    """The verdict on a case, with a model that plays."""
    client = Client(service.url, service.api_key)

    def judged(name: str, play: Play) -> Verdict:
        players.play = play
        return run(client, CASES[name])

    yield judged
    players.play = distilled


def instead(change: Callable[[dict[str, Any], Shown], dict[str, Any]]) -> Play:
    """A model that changes the right answer."""

    def play(asked: Asked) -> str:
        given = shown(asked)
        return json.dumps(change(distiller.answer(given), given))

    return play


def doubles_the_note(answer: dict[str, Any], given: Shown) -> dict[str, Any]:
    """What should be an edit of a note is another note."""
    if "changes" not in given.answer:
        return answer
    again = [
        {**given.memories[change["id"]], **{one["path"][1:]: one["value"] for one in change["operations"]}}
        for change in answer["changes"]
    ]
    return answer | {"changes": [], "new": [*answer["new"], *again]}


def forgets_the_rename(answer: dict[str, Any], given: Shown) -> dict[str, Any]:
    """Nothing that is there is ever changed."""
    return answer | {name: [] for name in ("operations", "changes") if name in given.answer}


def leaks() -> Play:
    """Whoever says nothing gets what another user told."""
    last: dict[str, Any] = {}

    def change(answer: dict[str, Any], given: Shown) -> dict[str, Any]:
        if "value" not in given.answer or given.kind != "profile":
            return answer
        last.update(answer["value"] or {})
        return {"value": dict(last) or None}

    return instead(change)


def invents(answer: dict[str, Any], given: Shown) -> dict[str, Any]:
    """One note more than was told."""
    extra = {"context": "always", "content": "The user is very kind."}
    return answer | {"new": [*answer["new"], extra]} if "new" in given.answer and answer["new"] else answer


def remembers_nothing(_: dict[str, Any], given: Shown) -> dict[str, Any]:
    return {"value": None} if "value" in given.answer else {name: [] for name in given.answer if name != "plan"}


def outside_the_schema(answer: dict[str, Any], given: Shown) -> dict[str, Any]:
    if "value" in given.answer and answer["value"]:
        return {"value": answer["value"] | {"user_name": 7}}
    return answer


@pytest.mark.parametrize("name", CASES)
def test_a_model_that_answers_rightly_passes(judge: Callable[[str, Play], Verdict], name: str) -> None:
    verdict = judge(name, distilled)
    assert verdict.passed, verdict.complaints


@pytest.mark.parametrize(
    ("name", "play", "reason"),
    [
        ("friends", instead(doubles_the_note), "4 documents instead of 3"),
        ("friends", instead(forgets_the_rename), "'Anouk', 'chess'"),
        ("friends", instead(invents), "3 documents instead of 2"),
        ("friends", instead(remembers_nothing), "0 documents instead of 2"),
        ("profile", instead(forgets_the_rename), 'user_name = "Robert"'),
        ("profile", instead(remembers_nothing), "0 documents instead of 1"),
        ("profile", instead(outside_the_schema), "user_name"),
        ("profile", lambda _: '{"value": {"user_name": "Bob"', "no valid answer"),
        ("friends", lambda _: "I will remember Ana and Ben.", "no valid answer"),
        ("another_user", leaks(), "eve's documents: something is there"),
    ],
    ids=[
        "doubles the note",
        "forgets the rename of a friend",
        "invents",
        "remembers no friend",
        "forgets the rename",
        "remembers nothing",
        "outside the schema",
        "broken JSON",
        "no JSON",
        "leaks to another user",
    ],
)
def test_a_model_that_answers_wrongly_fails(judge: Callable[[str, Play], Verdict], name: str, play: Play, reason: str) -> None:
    complaints = judge(name, play).complaints
    assert any(reason in complaint for complaint in complaints), complaints


def test_an_answer_that_is_right_the_second_time_passes(judge: Callable[[str, Play], Verdict]) -> None:
    assert judge("friends", lambda asked: distilled(asked) if len(asked.messages) > 1 else "Sure!").passed


def test_nothing_of_a_case_stays(judge: Callable[[str, Play], Verdict], service: Served) -> None:
    judge("profile", distilled)
    judge("profile", lambda _: "no")
    assert service.call("GET", "/memory_banks")["data"] == []
    assert service.call("POST", "/store/items/search", {"namespace_prefix": []})["items"] == []


def test_the_command(
    service: Served, players: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMORY_BANKS_URL", service.url)
    monkeypatch.setenv("MEMORY_BANKS_API_KEY", service.api_key)
    own = tmp_path / "own.toml"
    own.write_text(
        '[[talk]]\nuser = "a.b@x.org"\nmessages = [{ user = "I live in Lisbon." }]\n'
        '[[talk.expect]]\ntype = "User"\ndocuments = [{ has = { home = "Lisbon" } }]\n'
        '[[talk.expect]]\nuser = "langgraph"\nempty = true\n'
    )
    assert main([str(own)]) == 0
    assert "pass  own" in capsys.readouterr().out
    (tmp_path / "wrong.toml").write_text(own.read_text().replace('"Lisbon" }', '"Porto" }'))
    (tmp_path / "refused.toml").write_text("capture = { threshold = 0 }\n" + own.read_text())
    assert main([str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "1 passed, 2 failed" in told
    assert 'talk 1: a.b@x.org\'s User: no document of its own for home = "Porto"' in told
    assert "the service refused: " in told and "threshold" in told
    assert main([str(tmp_path / "absent")]) == 2
    monkeypatch.delenv("MEMORY_BANKS_API_KEY")
    assert main([str(own)]) == 2
    assert "--offline" in capsys.readouterr().err

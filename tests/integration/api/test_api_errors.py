"""What the API says when something behind it is away or broken."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks.ports import Contended, TableUnavailable

from .conftest import Client, World


class Broken:
    """A port of which every use fails."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        def fail(*_: Any, **__: Any) -> Any:
            raise self._error

        return fail


ROUTES = [
    ("GET", "/memory_banks", None),
    ("POST", "/memory_banks", {"name": "b"}),
    ("GET", "/memory_banks/{bank}", None),
    ("PUT", "/memory_banks/{bank}", {"name": "c"}),
    ("DELETE", "/memory_banks/{bank}", None),
    ("POST", "/memory_banks/{bank}/entries", {"content": "c", "key": "k", "speaker": "user"}),
    ("GET", "/memory_banks/{bank}/entries", None),
    ("PATCH", "/memory_banks/{bank}/entries/{entry}", {"content": "c"}),
    ("DELETE", "/memory_banks/{bank}/entries/{entry}", None),
    ("GET", "/version", None),
]


@pytest.mark.parametrize("error", [TableUnavailable("away"), Contended("busy")])
@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_a_database_that_is_away_is_a_503_with_retry_after(
    api: Client, world: World, method: str, path: str, body: Any, error: Exception
) -> None:
    bank = api.bank()
    entry = api.write(bank)["id"]
    world.table = Broken(error)
    answer = api(method, path.format(bank=bank, entry=entry), body=body, query={"key": "k"})
    assert (answer.status, answer.json["error"]["code"]) == (503, "database_unavailable")
    assert int(answer.headers["retry-after"]) > 0
    assert world.clock.slept == [] or sum(world.clock.slept) < 25


def test_a_queue_that_is_away_costs_no_memory(api: Client, world: World) -> None:
    from memory_banks.ports import QueueUnavailable

    bank = api.bank()
    world.ingestion = Broken(QueueUnavailable("away"))
    entry = api.write(bank)
    assert api("GET", f"/memory_banks/{bank}/entries", query={"key": "k"}).json["entries"] == [entry]


def test_what_nobody_foresaw_is_a_500_without_a_trace(api: Client, world: World, caplog: pytest.LogCaptureFixture) -> None:
    bank = api.bank()
    world.table = Broken(ZeroDivisionError("secret detail"))
    answer = api("GET", f"/memory_banks/{bank}")
    assert (answer.status, answer.json["error"]["code"]) == (500, "internal_error")
    assert "secret" not in (answer.text or "") and "Traceback" not in (answer.text or "")
    assert "secret detail" in caplog.text


def test_the_next_request_knows_nothing_of_a_failed_one(api: Client, stranger: Client, world: World) -> None:
    from functions.api.routes import app

    bank = api.bank()
    table = world.table
    world.table = Broken(ZeroDivisionError())
    api("GET", f"/memory_banks/{bank}")
    world.table = table
    assert app.context == {}
    assert stranger("GET", f"/memory_banks/{bank}").status == 404


def test_a_request_stops_in_time_for_its_function(world: World, api: Client) -> None:
    from functions.api import call

    class Context:
        def get_remaining_time_in_millis(self) -> int:
            return 4_000

    now = world.clock.now()
    assert call.deadline(world, Context()) == now + 3_000
    assert call.deadline(world, None) == now + 25_000

"""The local front on a real socket: limits, concurrency, broken transport, and waiting that holds nobody up."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import uvicorn
from memory_banks import access, bootstrap
from memory_banks.clock import SystemClock

from local.front import Front
from local.gateway import BODY_BYTES, PAYLOAD_BYTES
from local.lambdas import Function
from local.waiting import Waiter
from tests.doubles.world import World

Handler = Callable[[Any, Any], Any]


@contextlib.contextmanager
def served(handler: Handler | None, world: World | None = None) -> Iterator[int]:
    """A front around a handler, or the real api function, on a free port."""
    world = world or World(clock=SystemClock())
    front = Front(Function("api", handler), Waiter(world), SystemClock())
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(front, http="h11", ws="none", lifespan="off", log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        listener.listen()
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
            front.close()


def request(port: int, method: str = "GET", path: str = "/", body: Any = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None


def raw(port: int, sent: bytes, *, half: bool = False) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(sent)
        if half:
            return b""
        received = b""
        while part := connection.recv(65_536):
            received += part
        return received


def ok(event: Any, context: Any) -> Any:
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps(event)}


def test_the_function_gets_an_event_and_a_context() -> None:
    seen: list[Any] = []

    def handler(event: Any, context: Any) -> Any:
        seen.append(context)
        return ok(event, context)

    with served(handler) as port:
        status, event = request(port, "POST", "/a%20b?q=%20", b'{"a": 1}', Content_Type="application/json")

    assert status == 200
    assert (event["rawPath"], event["rawQueryString"], event["body"]) == ("/a b", "q=%20", '{"a": 1}')
    assert 0 < seen[0].get_remaining_time_in_millis() <= 30_000
    assert seen[0].function_name == "memory-banks-api"


def test_one_event_at_a_time_however_many_come() -> None:
    busy = threading.Lock()

    def handler(event: Any, context: Any) -> Any:
        assert busy.acquire(blocking=False), "two at once"
        try:
            return ok(event, context)
        finally:
            busy.release()

    with served(handler) as port, ThreadPoolExecutor(32) as threads:
        answers = list(threads.map(lambda number: request(port, path=f"/{number}"), range(200)))

    assert [status for status, _ in answers] == [200] * 200
    assert [event["rawPath"] for _, event in answers] == [f"/{number}" for number in range(200)]


def test_what_the_function_raises_is_an_internal_error_and_the_next_request_is_served(caplog: pytest.LogCaptureFixture) -> None:
    def handler(event: Any, context: Any) -> Any:
        if event["rawPath"] == "/bad":
            raise RuntimeError("secret detail")
        return ok(event, context)

    with served(handler) as port:
        assert request(port, path="/bad") == (500, {"message": "Internal Server Error"})
        assert request(port, path="/good")[0] == 200
    assert "secret detail" in caplog.text


@pytest.mark.parametrize("size", [PAYLOAD_BYTES, BODY_BYTES + 1])
def test_more_than_a_lambda_takes_is_refused_before_the_function(size: int) -> None:
    def handler(event: Any, context: Any) -> Any:
        raise AssertionError("called")

    with served(handler) as port:
        assert request(port, "POST", "/", b"x" * size, Content_Type="text/plain") == (413, {"message": "Request Too Long"})


def test_more_than_a_lambda_gives_is_an_internal_error() -> None:
    with served(lambda event, context: {"statusCode": 200, "body": "x" * PAYLOAD_BYTES}) as port:
        assert request(port) == (500, {"message": "Internal Server Error"})


def test_almost_six_megabytes_pass_both_ways() -> None:
    with served(lambda event, context: {"statusCode": 200, "body": json.dumps(len(event["body"]))}) as port:
        assert request(port, "POST", "/", b"x" * 6_200_000, Content_Type="text/plain") == (200, 6_200_000)
    with served(lambda event, context: {"statusCode": 200, "body": json.dumps("x" * 6_200_000)}) as port:
        assert len(request(port)[1]) == 6_200_000


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"GET /\xff HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", b"400"),
        (b"GET /a%ff%00b?%ff=%00 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\nhost: a\r\nx: \xff\r\ncookie: =;;\xff\r\nconnection: close\r\n\r\n", b"200"),
        (b"GET / HTTP/1.0\r\n\r\n", b"200"),
        (b"OPTIONS * HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", b"200"),
    ],
    ids=["no HTTP", "long line", "length", "chunk", "raw path", "escapes", "raw headers", "HTTP 1.0", "asterisk"],
)
def test_broken_transport_is_answered_and_the_next_request_is_served(sent: bytes, status: bytes) -> None:
    with served(ok) as port:
        assert raw(port, sent).split(b" ")[1] == status
        assert request(port)[0] == 200


def test_a_body_that_stops_half_way_never_reaches_the_function() -> None:
    called: list[str] = []

    def handler(event: Any, context: Any) -> Any:
        called.append(event["rawPath"])
        return ok(event, context)

    with served(handler) as port:
        raw(port, b'POST /half HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{"a":', half=True)
        raw(port, b"POST /chunks HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", half=True)
        assert request(port, path="/whole")[0] == 200

    assert called == ["/whole"]


def test_logs_one_line_a_request_that_nothing_can_break(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "local.front")
    with served(ok) as port:
        request(port, path="/a%0Ab?secret=1")

    lines = [record.getMessage() for record in caplog.records if record.name == "local.front"]
    assert len(lines) == 1
    assert lines[0].startswith("GET /a\N{REPLACEMENT CHARACTER}b 200 ")
    assert lines[0].endswith(" ms")


def test_head_and_no_content_have_no_body() -> None:
    with served(lambda event, context: {"statusCode": 204, "body": ""}) as port:
        assert request(port, "DELETE") == (204, None)
    with served(ok) as port:
        assert request(port, "HEAD") == (200, None)


class Gate:
    """A clock whose sleep ends only when the test lets it."""

    def __init__(self) -> None:
        self.sleeping = threading.Event()
        self.go_on = threading.Event()
        self.milliseconds = SystemClock().now()

    def now(self) -> int:
        return self.milliseconds

    def sleep(self, seconds: float) -> None:
        self.sleeping.set()
        assert self.go_on.wait(30)
        self.milliseconds += round(seconds * 1000)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def world(gate: Gate) -> Iterator[World]:
    """The real api function over doubles of our ports."""
    made = World(clock=gate)
    bootstrap.use(made)
    yield made
    bootstrap.use(None)


ENTRY = {"content": "hello there", "key": "k", "speaker": "user"}


def write(port: int, secret: str, bank: str, query: str, **entry: Any) -> tuple[int, Any]:
    body = json.dumps(ENTRY | entry)
    path = f"/memory_banks/{bank}/entries{query}"
    return request(port, "POST", path, body, Content_Type="application/json", X_API_Key=secret)


def test_waiting_for_a_write_holds_nobody_up_and_ends_when_it_is_searchable(world: World, gate: Gate) -> None:
    # A key that may only write can wait too.
    _, secret = access.create_key(world, "acme", scopes=("write",))
    bank = world.bank(type="conversation").id
    with served(None, world) as port, ThreadPoolExecutor() as threads:
        waiting = threads.submit(write, port, secret, bank, "?wait=true", id="mine")
        assert gate.sleeping.wait(30)

        status, answer = write(port, secret, bank, "")
        assert (status, answer["entries"][0]["indexed"]) == (201, False)
        assert not waiting.done()

        world.drain()
        gate.go_on.set()
        status, answer = waiting.result(30)

    assert status == 201
    assert [(entry["id"], entry["indexed"]) for entry in answer["entries"]] == [("mine", True)]
    assert answer["entries"][0].keys() >= {"content", "key", "created_at", "version"}


def test_waiting_ends_after_twenty_seconds_with_what_is_durable(world: World, gate: Gate) -> None:
    _, secret = access.create_key(world, "acme", scopes=("write",))
    bank = world.bank(type="conversation").id
    started = gate.milliseconds
    gate.go_on.set()
    with served(None, world) as port:
        status, answer = write(port, secret, bank, "?wait=true")

    assert (status, answer["entries"][0]["indexed"]) == (201, False)
    assert 20_000 <= gate.milliseconds - started <= 20_500


@pytest.mark.parametrize("query", ["?wait=perhaps", "?wait="])
def test_a_wish_to_wait_that_is_none_is_the_functions_to_refuse(world: World, query: str) -> None:
    _, secret = access.create_key(world, "acme", scopes=("write",))
    bank = world.bank(type="conversation").id
    with served(None, world) as port:
        status, answer = write(port, secret, bank, query)

    assert status == 422
    assert answer["detail"][0]["loc"] == ["query", "wait"]


def test_a_refused_write_does_not_wait(world: World, gate: Gate) -> None:
    _, secret = access.create_key(world, "acme", scopes=("write",))
    bank = world.bank(type="conversation").id
    with served(None, world) as port:
        assert write(port, secret, bank, "?wait=true", content=" ")[0] == 422
        assert write(port, "no key", bank, "?wait=true")[0] == 401
    assert not gate.sleeping.is_set()

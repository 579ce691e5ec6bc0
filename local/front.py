"""The HTTP front: an ASGI application that turns requests into API Gateway events for the `api` function."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from memory_banks.ports import Clock

from local import gateway
from local.gateway import Answer, Request
from local.lambdas import Function
from local.waiting import Waiter

logger = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Disconnected(Exception):
    """The client went away before its request was complete: nothing was done."""


class Front:
    """Takes requests together and hands them to the function one after the other; waiting for `?wait=true` blocks nobody."""

    def __init__(self, api: Function, waiter: Waiter, clock: Clock) -> None:
        self._api = api
        self._waiter = waiter
        self._clock = clock
        # One thread, so requests are served in the order in which they were complete.
        self._calls = ThreadPoolExecutor(1, "api")
        self._waits = ThreadPoolExecutor(32, "wait")

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One HTTP request of ASGI."""
        started = time.monotonic()
        try:
            body = await self._body(receive)
        except Disconnected:
            logger.info("%s %s: the client went away before its request was complete", scope["method"], scope["path"])
            return
        answer = gateway.TOO_LONG if body is None else await self._answer(_request(scope, body))
        await self._send(answer, scope["method"], send)
        milliseconds = round((time.monotonic() - started) * 1000)
        logger.info("%s %s %d %d ms", scope["method"], _printable(scope["path"]), answer.status, milliseconds)

    def close(self) -> None:
        """After the last request."""
        self._calls.shutdown()
        self._waits.shutdown()

    async def _answer(self, request: Request) -> Answer:
        loop = asyncio.get_running_loop()
        request, wait = self._waiter.taken_out(request)
        answer = await loop.run_in_executor(self._calls, self._call, request)
        if wait and answer.status == 201:
            answer = await loop.run_in_executor(self._waits, self._waiter.waited, request, answer)
        return answer

    def _call(self, request: Request) -> Answer:
        event = gateway.event(request, self._clock.now())
        if not gateway.fits(event):
            return gateway.TOO_LONG
        try:
            return gateway.answer(self._api(event))
        except Exception:
            logger.exception("the function failed")
            return gateway.INTERNAL

    @staticmethod
    async def _body(receive: Receive) -> bytes | None:
        """The whole body, None when it is longer than the gateway takes."""
        parts: list[bytes] = []
        size = 0
        while True:
            part = await receive()
            if part["type"] == "http.disconnect":
                raise Disconnected
            size += len(part.get("body", b""))
            if size > gateway.BODY_BYTES:
                return None
            parts.append(part.get("body", b""))
            if not part.get("more_body"):
                return b"".join(parts)

    @staticmethod
    async def _send(answer: Answer, method: str, send: Send) -> None:
        headers = [(name, value) for name, value in answer.headers if name not in {"content-length", "transfer-encoding"}]
        if answer.status != 204:
            headers.append(("content-length", str(len(answer.body))))
        raw = [(name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": raw})
        bare = method == "HEAD" or answer.status in {204, 304}
        await send({"type": "http.response.body", "body": b"" if bare else answer.body})


def _request(scope: MutableMapping[str, Any], body: bytes) -> Request:
    return Request(
        method=scope["method"],
        path=scope["raw_path"],
        query=scope["query_string"],
        headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]],
        body=body,
        client=(scope.get("client") or ("127.0.0.1",))[0],
        http_version=scope["http_version"],
    )


def _printable(path: str) -> str:
    """A path that can't break the line it is logged on."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in path)

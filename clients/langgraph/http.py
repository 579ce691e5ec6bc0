"""To a deployed or local service over HTTP: few requests, repeated while the service is briefly away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import httpx
from langgraph.store.base import Op, PutOp, Result

from clients.langgraph import wire
from clients.langgraph.errors import AnswerTooLarge, Conflict, Forbidden, Refused, Unavailable

OPERATIONS = 100
"""In one request."""
REQUEST_BYTES = 2_400_000
"""Of one request; the service takes 2.5 MiB."""
TRIES = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0
"""Seconds."""


class Request(NamedTuple):
    """A body, and the positions of the operations in it."""

    positions: list[int]
    operations: list[dict[str, Any]]


class _Waiting(NamedTuple):
    """Operations of one caller, and who waits for their results."""

    ops: Sequence[Op]
    future: asyncio.Future[list[Result]]


class Http:
    """The store of the key's account."""

    def __init__(self, url: str, api_key: str, timeout: float) -> None:
        self._settings: dict[str, Any] = {"base_url": url, "headers": {"X-API-Key": api_key}, "timeout": timeout}
        self._client: httpx.Client | None = None
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Waiting]] = WeakKeyDictionary()
        self._tasks: set[asyncio.Task[None]] = set()

    # ----------------------------------------------------------------------------------------------------------------
    # Blocking

    def batch(self, ops: Sequence[Op]) -> list[Result]:
        """Do them in as few requests as they fit into, reads first."""
        answered: list[Any] = [None] * len(ops)
        for request in requests([wire.operation(op) for op in ops]):
            for position, one in zip(request.positions, self._batch(request.operations), strict=True):
                answered[position] = one
        return [wire.result(op, one) for op, one in zip(ops, answered, strict=True)]

    def _batch(self, operations: list[dict[str, Any]]) -> list[Any]:
        smaller = halves(operations) if over_a_page(operations) else None
        if smaller is None:
            try:
                return list(self._post("/store/batch", {"operations": operations})["results"])
            except AnswerTooLarge:
                smaller = halves(operations)
                if smaller is None:
                    raise
        first = self._batch(smaller[0])
        return first if ends(operations, smaller[0], first) else joined(operations, first, self._batch(smaller[1]))

    def put_if(self, op: PutOp, version: str | None) -> str:
        """Write over this version, or where there is none; the new version. Not repeated: its answer may be lost."""
        answer = self._answer(lambda: self._http().request("PUT", "/store/items", **conditional(op, version)))
        return new_version(told(answer))

    def _post(self, path: str, body: Any) -> Any:
        content = wire.encoded(body)
        for attempt in range(TRIES):
            answer = self._answer(lambda: self._http().post(path, content=content, headers=JSON))
            if not to_be_repeated(answer, attempt):
                return told(answer).json()
            time.sleep(pause(answer, attempt))
        raise AssertionError("the last attempt is not repeated")

    @staticmethod
    def _answer(call: Callable[[], httpx.Response]) -> httpx.Response | httpx.TransportError:
        try:
            return call()
        except httpx.TransportError as error:
            return error

    def _http(self) -> httpx.Client:
        if self._client is None:
            self._client = httpx.Client(**self._settings)
        return self._client

    def close(self) -> None:
        """Close the connections; the next call opens others."""
        if self._client is not None:
            self._client.close()
        self._client = None

    # ----------------------------------------------------------------------------------------------------------------
    # Awaited

    async def abatch(self, ops: Sequence[Op]) -> list[Result]:
        """Do them. What several callers ask for at the same moment shares requests."""
        loop = asyncio.get_running_loop()
        waiting = self._waiting.setdefault(loop, [])
        if not waiting:
            loop.call_soon(self._start, loop)
        mine = _Waiting(ops, loop.create_future())
        waiting.append(mine)
        return await mine.future

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = self._waiting.pop(loop)
        task = loop.create_task(self._together(waiting))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _together(self, waiting: Sequence[_Waiting]) -> None:
        try:
            results = iter(await self._abatch([op for one in waiting for op in one.ops]))
            for one in waiting:
                settle(one.future, [next(results) for _ in one.ops])
        except Refused as error:
            if len(waiting) == 1:
                settle(waiting[0].future, error)
                return
            # One caller's mistake is nobody else's: each by itself.
            await asyncio.gather(*(self._together([one]) for one in waiting))
        except BaseException as error:
            for one in waiting:
                settle(one.future, error)
            if not isinstance(error, Exception):
                raise

    async def _abatch(self, ops: Sequence[Op]) -> list[Result]:
        answered: list[Any] = [None] * len(ops)
        for request in requests([wire.operation(op) for op in ops]):
            for position, one in zip(request.positions, await self._abatched(request.operations), strict=True):
                answered[position] = one
        return [wire.result(op, one) for op, one in zip(ops, answered, strict=True)]

    async def _abatched(self, operations: list[dict[str, Any]]) -> list[Any]:
        smaller = halves(operations) if over_a_page(operations) else None
        if smaller is None:
            try:
                return list((await self._apost("/store/batch", {"operations": operations}))["results"])
            except AnswerTooLarge:
                smaller = halves(operations)
                if smaller is None:
                    raise
        first = await self._abatched(smaller[0])
        return first if ends(operations, smaller[0], first) else joined(operations, first, await self._abatched(smaller[1]))

    async def aput_if(self, op: PutOp, version: str | None) -> str:
        """`put_if`, awaited."""
        try:
            answer: httpx.Response | httpx.TransportError = await self._ahttp().request(
                "PUT", "/store/items", **conditional(op, version)
            )
        except httpx.TransportError as error:
            answer = error
        return new_version(told(answer))

    async def _apost(self, path: str, body: Any) -> Any:
        content = wire.encoded(body)
        for attempt in range(TRIES):
            try:
                answer: httpx.Response | httpx.TransportError = await self._ahttp().post(path, content=content, headers=JSON)
            except httpx.TransportError as error:
                answer = error
            if not to_be_repeated(answer, attempt):
                return told(answer).json()
            await asyncio.sleep(pause(answer, attempt))
        raise AssertionError("the last attempt is not repeated")

    def _ahttp(self) -> httpx.AsyncClient:
        """A client of the running loop: its connections are of no use to another."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = httpx.AsyncClient(**self._settings)
        return self._clients[loop]

    async def aclose(self) -> None:
        """Close this loop's connections."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()


# --------------------------------------------------------------------------------------------------------------------
# What both ways share

JSON = {"Content-Type": "application/json"}


def requests(operations: Sequence[dict[str, Any]]) -> Iterator[Request]:
    """The operations in as few requests as they fit into: reads, then writes, of two writes to an item only the last.

    Never both in one: a repeated request must not read what its first attempt wrote.
    """
    last = {
        (tuple(one["namespace"]), one["key"]): position for position, one in enumerate(operations) if one["op"] in {"put", "delete"}
    }
    writes = sorted(last.values())
    reads = [position for position, one in enumerate(operations) if one["op"] not in {"put", "delete"}]
    for group in (reads, writes):
        yield from _packed(operations, group)


def _packed(operations: Sequence[dict[str, Any]], positions: Sequence[int]) -> Iterator[Request]:
    packed = Request([], [])
    size = 0
    for position in positions:
        one = operations[position]
        weight = _size(one)
        if packed.positions and (len(packed.positions) == OPERATIONS or size + weight > REQUEST_BYTES):
            yield packed
            packed, size = Request([], []), 0
        packed.positions.append(position)
        packed.operations.append(one)
        size += weight
    if packed.positions:
        yield packed


def _size(part: Any) -> int:
    try:
        return len(wire.encoded(part))
    except ValueError as error:
        raise Refused(f"a value must be JSON: {error}") from error


def halves(operations: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]] | None:
    """Operations whose answer is too large as two parts: fewer at once, or one search's page as two. None: it can't be less."""
    if len(operations) > 1:
        middle = len(operations) // 2
        return operations[:middle], operations[middle:]
    one = operations[0]
    if one["op"] not in {"search", "list_namespaces"} or one["limit"] < 2:
        return None
    first = one["limit"] // 2
    return [one | {"limit": first}], [one | {"limit": one["limit"] - first, "offset": one["offset"] + first}]


def over_a_page(operations: Sequence[dict[str, Any]]) -> bool:
    """Whether one of them asks for more than the service gives at once."""
    return any(one.get("limit", 0) > wire.LONGEST_PAGE for one in operations)


def ends(operations: Sequence[dict[str, Any]], part: Sequence[dict[str, Any]], first: list[Any]) -> bool:
    """Whether the first part of a page is not full: then there is no more."""
    return len(operations) == 1 and len(first[0][_name(part[0])]) < part[0]["limit"]


def joined(operations: Sequence[dict[str, Any]], first: list[Any], second: list[Any]) -> list[Any]:
    """The results of two parts as those of the whole."""
    if len(operations) > 1:
        return first + second
    name = _name(operations[0])
    return [{name: first[0][name] + second[0][name]}]


def _name(operation: dict[str, Any]) -> str:
    return "items" if operation["op"] == "search" else "namespaces"


def conditional(op: PutOp, version: str | None) -> dict[str, Any]:
    """A PUT that compares first."""
    assert op.value is not None
    body = {"namespace": list(op.namespace), "key": op.key, "value": wire.plain(op.value), "index": op.index, "ttl": op.ttl}
    header = {"If-None-Match": "*"} if version is None else {"If-Match": f'"{version}"'}
    return {"content": wire.encoded(body), "headers": JSON | header}


def new_version(answer: httpx.Response) -> str:
    """The version that a PUT made."""
    return answer.headers["ETag"].strip('"')


def to_be_repeated(answer: httpx.Response | httpx.TransportError, attempt: int) -> bool:
    """Whether to ask again. Every operation may be repeated: a put writes the same again, a delete finds nothing."""
    if attempt == TRIES - 1:
        return False
    return isinstance(answer, httpx.TransportError) or answer.status_code in {429, 502, 503, 504}


def pause(answer: httpx.Response | httpx.TransportError, attempt: int) -> float:
    """Seconds before the next attempt: what the service asks for, or twice as long each time."""
    asked = answer.headers.get("Retry-After", "") if isinstance(answer, httpx.Response) else ""
    return min(float(asked) if asked.isdigit() else FIRST_PAUSE * 2**attempt, LONGEST_PAUSE)


def told(answer: httpx.Response | httpx.TransportError) -> httpx.Response:
    """A success; anything else is raised by its name."""
    if isinstance(answer, httpx.TransportError):
        raise Unavailable(f"the memory service can't be reached: {answer}") from answer
    if answer.is_success:
        return answer
    code, message = _problem(answer)
    if code == "answer_too_large":
        raise AnswerTooLarge(message)
    if answer.status_code in {401, 403}:
        raise Forbidden(message)
    if answer.status_code == 412:
        raise Conflict(message)
    if answer.status_code >= 500 or answer.status_code == 429:
        raise Unavailable(f"{answer.status_code}: {message}")
    raise Refused(message)


def _problem(answer: httpx.Response) -> tuple[str, str]:
    try:
        body = answer.json()
        if "detail" in body:
            return "invalid", "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in body["detail"])
        return body["error"]["code"], body["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return "", answer.text[:500]


def settle(future: asyncio.Future[list[Result]], outcome: list[Result] | BaseException) -> None:
    """Tell who waits, if anybody still does."""
    if future.done():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)

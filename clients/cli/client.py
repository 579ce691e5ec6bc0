"""Talks to a running service over HTTP."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping
from typing import Any

from clients.cli import typed
from clients.cli.failure import Failure

VERSION = "2026-10-21"
"""The API version that the command line speaks."""

DEFAULT_URL = "http://127.0.0.1:8000"
TRIES = 6
LONGEST_PAUSE = 20.0


class Refused(Exception):
    """The service answered with an error. `status` is HTTP's; `positions` are the entries of a batch it is about."""

    def __init__(self, status: int, reason: str, code: str = "", positions: tuple[int, ...] = ()) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.code = code
        self.positions = positions


class Client:
    """One service with one key. `Client("http://127.0.0.1:8000", "mb_…").call("GET", "/memory_banks")`."""

    def __init__(self, url: str, api_key: str, *, timeout: float = 60) -> None:
        import httpx

        headers = {"X-API-Key": api_key, "Seclai-Version": VERSION}
        try:
            self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout)
        except httpx.InvalidURL as error:
            raise Failure(f"{url!r} is no URL: {error}") from error
        self._url = url

    def call(self, method: str, path: str, *, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """The answer's JSON, None when it is empty.

        An overloaded or briefly unavailable service (429, 503) is asked again after the pause it names. So call only what
        may be repeated. Raises `Refused`; `Failure` when the service can't be reached.
        """
        import httpx

        # Escaped to ASCII, so that whatever a file held reaches the service, whose judgement it is.
        content = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        for attempt in range(TRIES):
            try:
                answer = self._http.request(method, path, content=content, headers=headers, params=query)
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
                raise Failure(f"the service at {self._url} can't be reached ({error}); is `memory-banks serve` running?") from error
            if answer.status_code not in {429, 503} or attempt == TRIES - 1:
                break
            time.sleep(_pause(answer.headers.get("retry-after"), attempt))
        if answer.status_code >= 400:
            raise _refusal(answer)
        try:
            return answer.json() if answer.content else None
        except ValueError as error:
            raise Failure(f"the service at {self._url} answered what is no JSON; is it a memory bank service?") from error

    def bank(self, name: str) -> dict[str, Any] | None:
        """The bank of this id or name, None when there is none. `Failure` when several have the name."""
        named: list[dict[str, Any]] = []
        page = 1
        while True:
            answer = self.call("GET", "/memory_banks", query={"page": page, "limit": 100})
            for bank in answer["data"]:
                if bank["id"] == name:
                    found: dict[str, Any] = bank
                    return found
            named += [bank for bank in answer["data"] if bank["name"] == name]
            if not answer["pagination"]["has_next"]:
                break
            page += 1
        if len(named) > 1:
            raise Failure(f"several banks are called {name!r}; give the id of one: {', '.join(bank['id'] for bank in named)}")
        return named[0] if named else None

    def existing_bank(self, name: str) -> dict[str, Any]:
        """As `bank`; `Failure` when there is none."""
        bank = self.bank(name)
        if bank is None:
            raise Failure(f"there is no bank {name!r}")
        return bank


def add_options(parser: argparse.ArgumentParser) -> None:
    """What every command that talks to a service takes."""
    parser.add_argument(
        "--url", default=os.environ.get("MEMORY_BANKS_URL") or DEFAULT_URL, help=f"default MEMORY_BANKS_URL or {DEFAULT_URL}"
    )
    parser.add_argument("--api-key", default=os.environ.get("MEMORY_BANKS_API_KEY"), help="default MEMORY_BANKS_API_KEY")


def from_options(options: argparse.Namespace) -> Client:
    """The client that the options describe."""
    if not options.api_key:
        raise Failure("an API key is needed: --api-key or MEMORY_BANKS_API_KEY (`memory-banks serve` prints one)")
    try:
        typed.api_key(options.api_key)
    except argparse.ArgumentTypeError as error:
        raise Failure(str(error)) from error
    return Client(options.url, options.api_key)


def _pause(retry_after: str | None, attempt: int) -> float:
    asked = float(retry_after) if retry_after and retry_after.isdigit() else 0.0
    return min(LONGEST_PAUSE, max(asked, 0.5 * float(2**attempt)))


def _refusal(answer: Any) -> Refused:
    """The sentence in an error of either form that the API has."""
    try:
        body = answer.json()
    except ValueError:
        body = None
    if isinstance(body, dict) and isinstance(body.get("detail"), list):
        reasons, positions = [], []
        for one in body["detail"]:
            loc = [part for part in one.get("loc", ()) if part != "body"]
            if loc[:1] == ["entries"] and len(loc) > 1 and isinstance(loc[1], int):
                positions.append(loc[1])
                loc = loc[2:]
            field = ".".join(str(part) for part in loc)
            reasons.append(f"{field}: {one.get('msg')}" if field else str(one.get("msg")))
        return Refused(answer.status_code, "; ".join(dict.fromkeys(reasons)), positions=tuple(dict.fromkeys(positions)))
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        return Refused(answer.status_code, str(body["error"].get("message")), str(body["error"].get("code")))
    return Refused(answer.status_code, f"HTTP {answer.status_code}")

"""One request: who sends it, in which API version, until when it must be answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory_banks import access, limits, versions
from memory_banks.access import Caller
from memory_banks.errors import MemoryBanksError, TooLarge
from memory_banks.ports import Ports

from .event import raw_body

LONGEST = 25_000
"""How long a request may take, ms; an HTTP API gives up after 30 s."""
ANSWERING = 1_000
"""Left for answering before the function's own timeout, ms."""

OPEN = frozenset({"/health", "/openapi.json", "/docs"})
"""Paths that need no key."""


class UnsupportedMediaType(MemoryBanksError):
    """A body that is not JSON (415)."""

    status, code = 415, "unsupported_media_type"


@dataclass(frozen=True, slots=True)
class Call:
    """What every route needs to know about its request."""

    ports: Ports
    caller: Caller
    version: str
    deadline: int
    """When to stop retrying, ms."""

    @property
    def account(self) -> str:
        """The tenant; every read and write carries it."""
        return self.caller.account


def begin(ports: Ports, event: Mapping[str, Any], context: Any) -> Call:
    """Who sends the request and in which version. Raises `Unauthorized`, and `BadRequest` for an unknown version."""
    headers = _headers(event)
    caller = access.authenticate(ports, headers)
    version = versions.effective(ports, caller.account, headers.get(versions.HEADER.lower()))
    return Call(ports, caller, version, deadline(ports, context))


def check_body(event: Mapping[str, Any]) -> None:
    """What must hold of any body: JSON, within the limit. Raises `TooLarge` and `UnsupportedMediaType`."""
    body = raw_body(event)
    if len(body) > limits.REQUEST_BYTES:
        message = f"The body may have at most {limits.REQUEST_BYTES:,} bytes; this one has {len(body):,}."
        raise TooLarge(message, code="body_too_large")
    kind = _headers(event).get("content-type", "application/json").partition(";")[0].strip().lower()
    if body and kind != "application/json":
        raise UnsupportedMediaType(f"The body must be application/json, not {kind or 'of no type'}.")


def deadline(ports: Ports, context: Any) -> int:
    """When this request should stop retrying, ms: well before the API and the function give up."""
    left = LONGEST
    if hasattr(context, "get_remaining_time_in_millis"):
        left = min(left, context.get_remaining_time_in_millis() - ANSWERING)
    return ports.clock.now() + max(left, 0)


def _headers(event: Mapping[str, Any]) -> dict[str, str]:
    return {name.lower(): value for name, value in (event.get("headers") or {}).items()}

"""The one place where errors become HTTP.

A wrong field is a 422 with `detail`; everything else is `{"error": {"code", "message", …}}`. What nobody foresaw is a 500
of the same shape, its trace in the log and never in the answer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from memory_banks.errors import DatabaseUnavailable, Invalid, MemoryBanksError, Unauthorized, VectorStoreUnavailable
from memory_banks.ports import BlobsUnavailable, Contended, IndexUnavailable, ModelError, TableUnavailable
from memory_banks.requests import MANY, ONE

from .answers import Answer, answer

RETRY_AFTER = 2
"""Seconds a caller should wait when the database is away or contended."""

MOST_DETAILS = 50
"""Wrong fields named in one answer."""

_LONGEST_NAME = 200

logger = logging.getLogger("memory_banks.api")


def respond(error: Exception) -> Answer:
    """The answer to a request that failed with this error."""
    if isinstance(error, RequestValidationError):
        return answer({"detail": [_detail(one) for one in error.errors()[:MOST_DETAILS]]}, 422)
    known = _named(error)
    if known is None:
        logger.exception("a request failed", exc_info=error)
        return failure(500, "internal_error", "Something went wrong on our side; the log says what.")
    if isinstance(known, Invalid):
        return answer({"detail": [_detail({"loc": known.loc, "msg": known.message, "type": known.kind})]}, 422)
    headers = {}
    if isinstance(known, DatabaseUnavailable):
        headers["Retry-After"] = str(RETRY_AFTER)
    if isinstance(known, Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    return failure(known.status, known.code, _harmless(known.message), known.details, headers)


def failure(
    status: int, code: str, message: str, details: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
) -> Answer:
    """An answer of the common shape of errors."""
    return answer({"error": {"code": code, "message": message} | dict(details or {})}, status, headers)


def _named(error: Exception) -> MemoryBanksError | None:
    """The error under its own name, where it comes from a port."""
    match error:
        case MemoryBanksError():
            return error
        case TableUnavailable() | BlobsUnavailable():
            return DatabaseUnavailable("The database can't be reached; try again.")
        case Contended():
            return DatabaseUnavailable("The database is busy; try again.")
        case IndexUnavailable():
            return VectorStoreUnavailable("The vector store can't be reached; try again.")
        case ModelError():
            return VectorStoreUnavailable(f"The embedding model did not answer: {error}")
    return None


def _detail(error: Mapping[str, Any]) -> dict[str, Any]:
    kind = error["type"]
    message = "is required" if kind == "missing" and error["msg"] == "Field required" else error["msg"]
    return {"loc": _loc(error["loc"]), "msg": _harmless(message), "type": kind}


def _loc(loc: Iterable[str | int]) -> list[str | int]:
    """Where the caller wrote it: without the names of our parameters and of the forms of a body."""
    parts = [_harmless(part)[:_LONGEST_NAME] if isinstance(part, str) else part for part in loc if part not in {ONE, MANY}]
    return parts[:1] + parts[2:] if parts[:2] == ["query", "query"] else parts


def _harmless(text: str) -> str:
    """Text that may quote a caller, without what can't be encoded."""
    return text.encode("utf-8", "replace").decode()

"""What can go wrong, named after what happened. One place maps these to HTTP: `functions/api/errors.py`."""

from __future__ import annotations

from typing import Any


class MemoryBanksError(Exception):
    """Base of all errors a caller may see. `code` is snake_case and stable; the message is for people."""

    status = 500
    code = "internal_error"

    def __init__(self, message: str, *, code: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.details = details


class BadRequest(MemoryBanksError):
    """The request makes no sense for this bank or version (400)."""

    status, code = 400, "bad_request"


class Unauthorized(MemoryBanksError):
    """No key, an unknown one, an expired or a revoked one (401)."""

    status, code = 401, "unauthorized"


class Forbidden(MemoryBanksError):
    """The key lacks the scope (403)."""

    status, code = 403, "forbidden"


class NotFound(MemoryBanksError):
    """It is not there, or belongs to another account (404)."""

    status, code = 404, "not_found"


class Conflict(MemoryBanksError):
    """It contradicts what is there (409)."""

    status, code = 409, "conflict"


class Gone(MemoryBanksError):
    """It was here and is no more, as designed (410). For `compacted`, `details["summary_id"]` says where it went."""

    status, code = 410, "gone"


class PreconditionFailed(MemoryBanksError):
    """`If-Match` names another version (412)."""

    status, code = 412, "precondition_failed"


class TooLarge(MemoryBanksError):
    """Over a documented limit in bytes or count (413)."""

    status, code = 413, "too_large"


class Invalid(MemoryBanksError):
    """A field is wrong (422). `loc` is where, as in `("body", "entries", 3, "content")`."""

    status, code = 422, "invalid"

    def __init__(self, loc: tuple[str | int, ...], message: str, kind: str = "value_error") -> None:
        super().__init__(message)
        self.loc = loc
        self.kind = kind


class DatabaseUnavailable(MemoryBanksError):
    """DynamoDB can't be reached or stays contended (503 with Retry-After). `details["written"]`: entries committed before."""

    status, code = 503, "database_unavailable"


class VectorStoreUnavailable(MemoryBanksError):
    """The index can't be reached (503)."""

    status, code = 503, "vector_store_unavailable"

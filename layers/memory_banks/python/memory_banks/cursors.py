"""Cursors: where a listing goes on, opaque to the caller and signed with the bank's secret, so that none can be forged."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from .errors import Invalid

_SIGNATURE = 16


def write(secret: str, purpose: str, view: Mapping[str, Any]) -> str:
    """A cursor for this purpose that carries `view` (JSON values)."""
    body = json.dumps(view, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_sign(secret, purpose, body) + body).decode().rstrip("=")


def read(secret: str, cursor: str, purpose: str) -> dict[str, Any]:
    """What a cursor carries. Raises `Invalid` when it was not written with this secret for this purpose."""
    try:
        raw = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        signature, body = raw[:_SIGNATURE], raw[_SIGNATURE:]
        if hmac.compare_digest(signature, _sign(secret, purpose, body)):
            view: dict[str, Any] = json.loads(body)
            return view
    except (binascii.Error, ValueError):
        pass
    raise Invalid(("query", "cursor"), "not a cursor of this listing")


def _sign(secret: str, purpose: str, body: bytes) -> bytes:
    return hmac.digest(secret.encode(), purpose.encode() + b"\0" + body, hashlib.sha256)[:_SIGNATURE]

"""Answers: JSON as it is meant (not escaped to ASCII), or nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.event_handler import Response

Answer = Response[Any]
JSON = "application/json"

ANSWER_BYTES = 5_500_000
"""Of a whole answer as the function gives it to the gateway, where the body is a string inside JSON."""


def wire_bytes(text: str) -> int:
    """The bytes that a body takes on its way to the gateway: quotes and line breaks are escaped once more."""
    return len(json.dumps(text, ensure_ascii=False).encode())


def answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """A JSON answer."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return Response(status, JSON, text, headers=dict(headers or {}))


def nothing() -> Answer:
    """204, without a body."""
    return Response(204, None, None)


def outside(response: Answer) -> dict[str, Any]:
    """An answer that no route gave, as the gateway takes it."""
    return {
        "statusCode": response.status_code,
        "headers": dict(response.headers),
        "body": response.body,
        "isBase64Encoded": False,
        "cookies": [],
    }


def documented(shape: str | None, description: str, status: int = 200) -> dict[int, Any]:
    """The `responses` of a route whose success has a body of this shape (a name of `shapes`; None: no body)."""
    response: dict[str, Any] = {"description": description}
    if shape is not None:
        response["content"] = {JSON: {"schema": {"$ref": f"#/components/schemas/{shape}"}}}
    return {status: response}

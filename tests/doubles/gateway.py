"""Requests as Amazon API Gateway hands them to the `api` function: HTTP API, payload format 2.0."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the function."""

    status: int
    headers: dict[str, str]
    text: str | None

    @property
    def json(self) -> Any:
        """The body."""
        assert self.headers["content-type"].startswith("application/json"), self.headers
        assert self.text is not None
        return json.loads(self.text)


def event(
    method: str,
    path: str,
    *,
    query: Mapping[str, Any] | str | None = None,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    raw: str | bytes | None = None,
) -> dict[str, Any]:
    """A request. `body` is sent as JSON, `raw` as it is; `path` is as the gateway gives it, decoded."""
    sent = {"host": "abc.execute-api.eu-central-1.amazonaws.com", "user-agent": "tests"}
    sent |= {name.lower(): value for name, value in (headers or {}).items()}
    query_string = query if isinstance(query, str) else urlencode(query or {}, doseq=True, quote_via=quote)
    joined: dict[str, str] = {}
    for name, value in parse_qsl(query_string, keep_blank_values=True):
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    made: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query_string,
        "headers": sent,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abc",
            "domainName": sent["host"],
            "domainPrefix": "abc",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "tests"},
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "$default",
            "stage": "$default",
            "time": "30/Nov/2026:12:00:00 +0000",
            "timeEpoch": 1_796_040_000_000,
        },
        "isBase64Encoded": False,
    }
    if joined:
        made["queryStringParameters"] = joined
    if body is not None:
        raw = json.dumps(body)
    if raw is not None:
        sent.setdefault("content-type", "application/json")
        if isinstance(raw, bytes):
            made |= {"body": base64.b64encode(raw).decode(), "isBase64Encoded": True}
        else:
            made["body"] = raw
    return made


def reply(result: Mapping[str, Any]) -> Reply:
    """The function's result as a client would see it. Checks what every answer must hold to."""
    size = len(json.dumps(result, ensure_ascii=False).encode())
    assert size <= 6 * 1024 * 1024, f"{size} bytes are more than a Lambda may answer"
    headers = {name.lower(): value for name, value in result["headers"].items()}
    assert type(result["statusCode"]) is int
    assert not 300 <= result["statusCode"] < 400, "never a redirect"
    assert "seclai-version" in headers
    text = result["body"]
    if result["isBase64Encoded"]:
        text = base64.b64decode(text).decode("utf-8", "replace")
    if result["statusCode"] == 204:
        assert not text
    else:
        assert "content-type" in headers
    return Reply(result["statusCode"], headers, text)

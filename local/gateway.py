"""What Amazon API Gateway does between HTTP and a Lambda: HTTP API, payload format 2.0, default stage and route.

Requests become events, results become answers; both are held to the limits that the cloud has.
"""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, unquote

from local.aws import ACCOUNT

PAYLOAD_BYTES = 6 * 1024 * 1024
"""What a Lambda takes and gives in one synchronous call, as JSON."""

BODY_BYTES = 10 * 1024 * 1024
"""What the gateway takes at all."""

TEXT_TYPES = ("application/json", "application/xml", "application/javascript")


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request as it came: the path still percent-encoded, header names in any case."""

    method: str
    path: bytes
    query: bytes = b""
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    client: str = "127.0.0.1"
    http_version: str = "1.1"


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""


def message(status: int, text: str) -> Answer:
    """An answer of the gateway's own, in its own form."""
    return Answer(status, [("content-type", "application/json")], json.dumps({"message": text}).encode())


TOO_LONG = message(413, "Request Too Long")
INTERNAL = message(500, "Internal Server Error")


def event(request: Request, now: int) -> dict[str, Any]:
    """The event of a request at a time (ms). The path is decoded and the query string is not, as the real one does it."""
    headers, cookies = _headers(request.headers)
    path = unquote(request.path.decode("latin-1"))
    domain = headers.get("host", "localhost")
    made: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": request.query.decode("latin-1"),
        "headers": headers,
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": "local",
            "domainName": domain,
            "domainPrefix": domain.partition(".")[0],
            "http": {
                "method": request.method,
                "path": path,
                "protocol": f"HTTP/{request.http_version}",
                "sourceIp": request.client,
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": str(uuid.uuid4()),
            "routeKey": "$default",
            "stage": "$default",
            "time": datetime.fromtimestamp(now / 1000, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000"),
            "timeEpoch": now,
        },
        "isBase64Encoded": False,
    }
    if cookies:
        made["cookies"] = cookies
    if query := _query(made["rawQueryString"]):
        made["queryStringParameters"] = query
    if request.body:
        made["body"], made["isBase64Encoded"] = _body(request.body, headers.get("content-type", ""))
    return made


def fits(payload: Any) -> bool:
    """Whether an event or a result is small enough for a Lambda."""
    return len(json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")) <= PAYLOAD_BYTES


def answer(result: Any) -> Answer:
    """The answer that a Lambda's result stands for. A result that is too large or no JSON is an internal error."""
    try:
        if not fits(result):
            return INTERNAL
    except (TypeError, ValueError):
        return INTERNAL
    if not isinstance(result, Mapping) or "statusCode" not in result:
        # Without a status code the gateway takes the whole result for a body.
        body = result if isinstance(result, str) else json.dumps(result)
        return Answer(200, [("content-type", "application/json")], body.encode())
    headers = [(name.lower(), str(value)) for name, value in (result.get("headers") or {}).items()]
    headers += [("set-cookie", cookie) for cookie in result.get("cookies") or ()]
    body = result.get("body") or ""
    if not isinstance(body, str):
        return INTERNAL
    try:
        content = base64.b64decode(body) if result.get("isBase64Encoded") else body.encode()
    except ValueError:
        return INTERNAL
    if content and not any(name == "content-type" for name, _ in headers):
        headers.append(("content-type", "text/plain; charset=utf-8"))
    return Answer(int(result["statusCode"]), headers, content)


def _headers(given: Sequence[tuple[str, str]]) -> tuple[dict[str, str], list[str]]:
    headers: dict[str, str] = {}
    cookies: list[str] = []
    for name, value in given:
        lower = name.lower()
        if lower == "cookie":
            cookies += _cookies(value)
        else:
            headers[lower] = f"{headers[lower]},{value}" if lower in headers else value
    return headers, cookies


def _cookies(value: str) -> list[str]:
    try:
        return [f"{name}={morsel.coded_value}" for name, morsel in SimpleCookie(value).items()]
    except CookieError:
        return [part.strip() for part in value.split(";") if part.strip()]


def _query(raw: str) -> dict[str, str]:
    query: dict[str, str] = {}
    for name, value in parse_qsl(raw, keep_blank_values=True):
        query[name] = f"{query[name]},{value}" if name in query else value
    return query


def _body(body: bytes, content_type: str) -> tuple[str, bool]:
    kind = content_type.partition(";")[0].strip().lower()
    if not kind or kind.startswith("text/") or kind in TEXT_TYPES or kind.endswith(("+json", "+xml")):
        try:
            return body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode(), True

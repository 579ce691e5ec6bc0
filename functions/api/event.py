"""API Gateway's event, read exactly: the query from its raw string, the body as strict JSON that names what is wrong."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import parse_qs

from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from aws_lambda_powertools.utilities.data_classes.common import CaseInsensitiveDict
from memory_banks.limits import BODY_DEPTH, walk

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]')


class Event(APIGatewayProxyEventV2):
    """The event as the resolver sees it."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers. That a body is JSON was checked before routing, in whatever case its type was written."""
        headers: dict[str, str] = CaseInsensitiveDict(self.get("headers"))  # type: ignore[no-untyped-call]
        headers["content-type"] = "application/json"
        return headers

    @property
    def resolved_query_string_parameters(self) -> dict[str, list[str]]:
        """Every value of every parameter.

        The gateway joins repeated parameters with commas, which can't be told from commas of the values; the raw string
        tells. Raises a validation error when it is not UTF-8.
        """
        try:
            return parse_qs(self.get("rawQueryString") or "", keep_blank_values=True, errors="strict", max_num_fields=200)
        except UnicodeDecodeError:
            _refuse(("query",), "must be percent-encoded UTF-8", "invalid_text")
        except ValueError:
            _refuse(("query",), "has too many parameters", "too_many")

    @property
    def json_body(self) -> Any:
        """The body: an object, nested within the limit. None without a body. Raises a validation error."""
        raw = raw_body(self.raw_event)
        if not raw:
            return None
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            _refuse(("body",), f"must be UTF-8; byte {error.start} is not", "invalid_text")
        try:
            body = json.loads(text, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            _refuse(("body", error.pos), f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}", "json_invalid")
        except RecursionError:
            _refuse(("body", *deep_place(text)), f"is nested deeper than {BODY_DEPTH} levels", "too_deep")
        except ValueError as error:
            _refuse(("body",), f"is not JSON: {error}", "json_invalid")
        if not isinstance(body, dict):
            _refuse(("body",), "must be a JSON object", "object_type")
        for path, _, depth in walk(body):
            if depth > BODY_DEPTH:
                _refuse(("body", *path[:3]), f"is nested deeper than {BODY_DEPTH} levels", "too_deep")
        return body


def raw_body(event: Mapping[str, Any]) -> bytes:
    """The body's bytes, empty without one. Raises a validation error for a body that says it is base64 and is not."""
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return bytes(body.encode("utf-8", "surrogatepass"))
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        _refuse(("body",), "is not the base64 it says it is", "invalid_text")


def deep_place(text: str) -> tuple[str | int, ...]:
    """The first names on the way down to where a JSON text, too deep to parse, passes the limit."""
    path: list[str | int] = []
    name: str | None = None
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "[{":
            path.append(0 if token == "[" else "")
            if len(path) > BODY_DEPTH:
                break
        elif token in "]}":
            if path:
                path.pop()
        elif token == ",":
            if path and isinstance(path[-1], int):
                path[-1] += 1
        elif token == ":":
            if path and isinstance(path[-1], str) and name is not None:
                path[-1] = json.loads(name)
        else:
            name = token
    return tuple(path[:3])


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _refuse(loc: tuple[str | int, ...], message: str, kind: str) -> NoReturn:
    raise RequestValidationError([{"loc": loc, "msg": message, "type": kind}])

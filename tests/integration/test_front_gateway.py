"""Events and answers of the local front against what the real API Gateway does (HTTP API, payload format 2.0)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from aws_lambda_powertools.utilities.parser.models import APIGatewayProxyEventV2Model

from local import gateway
from local.gateway import PAYLOAD_BYTES, Request

NOW = 1_790_000_000_123

RECORDED = {
    # A request to an HTTP API's $default route without authorizer, as AWS documents the format; values anonymised.
    "version": "2.0",
    "routeKey": "$default",
    "rawPath": "/my/path",
    "rawQueryString": "parameter1=value1&parameter1=value2&parameter2=value",
    "cookies": ["cookie1=value1", "cookie2=value2"],
    "headers": {"header1": "value1", "header2": "value1,value2", "host": "id.execute-api.us-east-1.amazonaws.com"},
    "queryStringParameters": {"parameter1": "value1,value2", "parameter2": "value"},
    "requestContext": {
        "accountId": "123456789012",
        "apiId": "id",
        "domainName": "id.execute-api.us-east-1.amazonaws.com",
        "domainPrefix": "id",
        "http": {
            "method": "POST",
            "path": "/my/path",
            "protocol": "HTTP/1.1",
            "sourceIp": "192.0.2.1",
            "userAgent": "agent",
        },
        "requestId": "JKJaXmPLvHcESHA=",
        "routeKey": "$default",
        "stage": "$default",
        "time": "12/Mar/2020:19:03:58 +0000",
        "timeEpoch": 1583348638390,
    },
    "body": "Hello from client!",
    "isBase64Encoded": False,
}

SAME = Request(
    "POST",
    b"/my/path",
    b"parameter1=value1&parameter1=value2&parameter2=value",
    [
        ("Header1", "value1"),
        ("Header2", "value1"),
        ("header2", "value2"),
        ("Host", "id.execute-api.us-east-1.amazonaws.com"),
        ("Cookie", "cookie1=value1; cookie2=value2"),
    ],
    b"Hello from client!",
    "192.0.2.1",
)


def made(**changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"method": "GET", "path": b"/", "headers": [("Host", "localhost:8000")]} | changes
    return gateway.event(Request(**fields), NOW)


def shape(value: Any) -> Any:
    return {name: shape(inner) for name, inner in value.items()} if isinstance(value, dict) else type(value)


def test_has_the_shape_of_a_recorded_event() -> None:
    event = gateway.event(SAME, NOW)

    event["headers"]["user-agent"] = "agent"
    assert shape(event) == shape(RECORDED | {"headers": RECORDED["headers"] | {"user-agent": "agent"}})  # type: ignore[operator]
    for name in ("version", "routeKey", "rawPath", "rawQueryString", "cookies", "queryStringParameters", "body", "isBase64Encoded"):
        assert event[name] == RECORDED[name], name
    assert event["requestContext"]["time"] == "21/Sep/2026:14:13:20 +0000"
    assert event["requestContext"]["timeEpoch"] == NOW


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff\xfe"])
def test_powertools_takes_it_for_one(body: bytes) -> None:
    event = made(method="POST", path=b"/memory_banks", query=b"a=1", body=body, headers=[("Content-Type", "application/json")])

    assert APIGatewayProxyEventV2Model.model_validate(event).rawPath == "/memory_banks"


def test_what_is_not_there_is_absent() -> None:
    assert not {"cookies", "queryStringParameters", "body"} & made().keys()


def test_the_path_is_decoded_and_the_query_string_is_not() -> None:
    event = made(path=b"/a%20b/%C3%BC", query=b"q=%C3%BC%20%26&q=x&empty=")

    assert event["rawPath"] == event["requestContext"]["http"]["path"] == "/a b/ü"
    assert event["rawQueryString"] == "q=%C3%BC%20%26&q=x&empty="
    assert event["queryStringParameters"] == {"q": "ü &,x", "empty": ""}


@pytest.mark.parametrize(
    ("content_type", "body", "encoded"),
    [
        ("application/json", "ü".encode(), False),
        ("application/json; charset=utf-8", b"{}", False),
        ("text/plain", b"a", False),
        ("application/problem+json", b"{}", False),
        ("", b"{}", False),
        ("application/json", b"\xff", True),
        ("application/octet-stream", b"a", True),
        ("application/x-www-form-urlencoded", b"a=b", True),
    ],
)
def test_text_is_text_and_everything_else_is_base64(content_type: str, body: bytes, encoded: bool) -> None:
    event = made(method="POST", body=body, headers=[("content-type", content_type)])

    assert event["isBase64Encoded"] is encoded
    assert (base64.b64decode(event["body"]) if encoded else event["body"].encode()) == body


def test_an_event_may_be_as_large_as_a_lambda_takes() -> None:
    room = PAYLOAD_BYTES - len(json.dumps({"body": ""}, separators=(",", ":")))

    assert gateway.fits({"body": "x" * room})
    assert not gateway.fits({"body": "x" * (room + 1)})
    assert not gateway.fits({"body": "ü" * (room // 2 + 1)})


def test_an_answer_is_taken_over() -> None:
    answer = gateway.answer(
        {"statusCode": 201, "headers": {"Content-Type": "application/json", "X": "1"}, "cookies": ["a=b", "c=d"], "body": '{"ü":1}'}
    )

    assert answer.status == 201
    assert answer.headers == [("content-type", "application/json"), ("x", "1"), ("set-cookie", "a=b"), ("set-cookie", "c=d")]
    assert answer.body == '{"ü":1}'.encode()


def test_a_binary_answer_is_decoded() -> None:
    assert gateway.answer({"statusCode": 200, "isBase64Encoded": True, "body": "AP8="}).body == b"\x00\xff"


def test_a_result_without_a_status_is_a_body() -> None:
    assert gateway.answer({"a": 1}) == gateway.Answer(200, [("content-type", "application/json")], b'{"a": 1}')


@pytest.mark.parametrize(
    "result",
    [
        {"statusCode": 200, "body": "x" * PAYLOAD_BYTES},
        {"statusCode": 200, "body": object()},
        {"statusCode": 200, "body": {"a": 1}},
        {"statusCode": 200, "body": "\ud800"},
        {"statusCode": 200, "body": "A", "isBase64Encoded": True},
    ],
    ids=["7 MB", "no JSON", "an object for a body", "a lone surrogate", "no base64"],
)
def test_a_result_that_no_lambda_could_give_is_an_internal_error(result: Any) -> None:
    assert gateway.answer(result) == gateway.INTERNAL

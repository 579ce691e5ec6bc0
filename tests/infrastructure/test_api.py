"""The HTTP API of the template."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.infrastructure.assembly import Synthesised


def test_default_stage_deploys_itself_so_no_path_has_a_prefix(stack: Synthesised) -> None:
    stage = stack.one("AWS::ApiGatewayV2::Stage")
    assert (stage["StageName"], stage["AutoDeploy"]) == ("$default", True)


def test_one_route_takes_every_path_as_payload_2(stack: Synthesised) -> None:
    assert stack.one("AWS::ApiGatewayV2::Route")["RouteKey"] == "$default"
    integration = stack.one("AWS::ApiGatewayV2::Integration")
    assert (integration["IntegrationType"], integration["PayloadFormatVersion"]) == ("AWS_PROXY", "2.0")


def test_access_log_is_json_without_the_query(stack: Synthesised) -> None:
    log = stack.one("AWS::ApiGatewayV2::Stage")["AccessLogSettings"]
    line = json.loads(log["Format"])
    assert line["path"] == "$context.path"
    assert {"$context.status", "$context.requestId"} <= set(line.values())
    assert not any("query" in value.lower() for value in line.values()), "keys and search texts are in the query"
    assert log["DestinationArn"]["Fn::GetAtt"][0] in stack.of("AWS::Logs::LogGroup")


def test_throttling_is_a_setting(stack: Synthesised, synthesise: Callable[..., Synthesised]) -> None:
    def limits(made: Synthesised) -> tuple[int, int]:
        route = made.one("AWS::ApiGatewayV2::Stage")["DefaultRouteSettings"]
        return route["ThrottlingRateLimit"], route["ThrottlingBurstLimit"]

    assert limits(stack) == (100, 200)
    assert limits(synthesise(throttle_rate="7", throttle_burst="9")) == (7, 9)


def test_function_answers_before_the_gateway_gives_up(stack: Synthesised) -> None:
    assert 25 < stack.function("api")["Timeout"] < 30


def test_web_pages_may_call_only_when_named(stack: Synthesised, synthesise: Callable[..., Synthesised]) -> None:
    assert "CorsConfiguration" not in stack.one("AWS::ApiGatewayV2::Api")
    named = synthesise(cors_origins='["https://app.example.com"]').one("AWS::ApiGatewayV2::Api")["CorsConfiguration"]
    assert named["AllowOrigins"] == ["https://app.example.com"]
    assert {"x-api-key", "idempotency-key", "if-match", "seclai-version"} <= set(named["AllowHeaders"])

"""The HTTP API: one route for everything, on the default stage so that no path has a prefix."""

from __future__ import annotations

import json

import jsii
from aws_cdk import CfnOutput, Duration
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from .configuration import Configuration
from .function import MemoryFunction, log_group
from .layers import Layers
from .suppressions import accept

CORS_HEADERS = ("authorization", "content-type", "idempotency-key", "if-match", "seclai-version", "x-account-id", "x-api-key")

ACCESS_LOG = {
    "time": "$context.requestTime",
    "request": "$context.requestId",
    "ip": "$context.identity.sourceIp",
    "method": "$context.httpMethod",
    # The path without its query, in which callers name keys and search for text.
    "path": "$context.path",
    "status": "$context.status",
    "milliseconds": "$context.responseLatency",
    "function_milliseconds": "$context.integrationLatency",
    "bytes": "$context.responseLength",
    "error": "$context.integrationErrorMessage",
}


@jsii.implements(apigatewayv2.IAccessLogSettings)
class AccessLog:
    """A line of JSON a request."""

    def __init__(self, scope: Construct, id: str, configuration: Configuration) -> None:
        self._destination = apigatewayv2.LogGroupLogDestination(log_group(scope, id, configuration))  # type: ignore[arg-type]

    @property
    def destination(self) -> apigatewayv2.LogGroupLogDestination:
        """The log."""
        return self._destination

    @property
    def format(self) -> apigateway.AccessLogFormat:
        """The line."""
        return apigateway.AccessLogFormat.custom(json.dumps(ACCESS_LOG))


class Api(Construct):
    """The function `api` behind API Gateway."""

    def __init__(self, scope: Construct, id: str, configuration: Configuration, layers: Layers) -> None:
        super().__init__(scope, id)
        self.function = MemoryFunction(
            self,
            "Function",
            configuration,
            layers,
            name="api",
            description="Answers the HTTP API",
            # API Gateway gives up after 30 s.
            timeout=Duration.seconds(29),
        )
        self.api = apigatewayv2.HttpApi(
            self,
            "HttpApi",
            description="Memory for AI agents",
            create_default_stage=False,
            cors_preflight=self._cors(configuration.cors_origins),
            default_integration=HttpLambdaIntegration("Integration", self.function),
        )
        self.stage = apigatewayv2.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            throttle=apigatewayv2.ThrottleSettings(
                rate_limit=configuration.throttle_rate, burst_limit=configuration.throttle_burst
            ),
            access_log_settings=AccessLog(self, "AccessLog", configuration),  # type: ignore[arg-type]
        )
        accept(self.api, "APIG4", "Every request carries an API key, which the function checks before anything else")
        CfnOutput(self, "Url", value=self.api.api_endpoint)

    def _cors(self, origins: tuple[str, ...]) -> apigatewayv2.CorsPreflightOptions | None:
        if not origins:
            return None
        return apigatewayv2.CorsPreflightOptions(
            allow_origins=list(origins),
            allow_methods=[apigatewayv2.CorsHttpMethod.ANY],
            allow_headers=list(CORS_HEADERS),
            max_age=Duration.hours(1),
        )

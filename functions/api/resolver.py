"""Routing: Powertools' resolver with our reading of events, our errors, and the rule about undeclared parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.api_gateway import Route
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.event_handler.openapi.exceptions import RequestValidationError
from memory_banks import versions
from pydantic import BaseModel

from .answers import Answer
from .errors import failure, respond
from .event import Event


class Resolver(APIGatewayHttpResolver):
    """Routes of the API. One request at a time a process: Powertools keeps the current one on the class."""

    def __init__(self) -> None:
        super().__init__(enable_validation=True, debug=False)
        self.exception_handler(Exception)(respond)
        self.not_found(self._nowhere)
        self.use([_only_declared_parameters])

    def _to_proxy_event(self, event: dict[str, Any]) -> Event:
        return Event(event)

    @property
    def routes(self) -> list[Route]:
        """All routes."""
        return self._static_routes + self._dynamic_routes

    def _nowhere(self, _: NotFoundError) -> Answer:
        """404, or 405 where the path has other methods."""
        event = self.current_event
        methods = sorted({route.method for route in self.routes if route.rule.match(event.path)})
        if methods:
            allowed = ", ".join(methods)
            message = f"{event.http_method} is not possible here; allowed: {allowed}."
            return failure(405, "method_not_allowed", message, headers={"Allow": allowed})
        return failure(404, "not_found", "There is no such route.")


def declared(route: Route) -> set[str]:
    """The query parameters of a route."""
    names: set[str] = set()
    for parameter in route.dependant.query_params:
        model = parameter.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            names |= set(model.model_fields)
        else:
            names.add(parameter.alias)
    return names


def _only_declared_parameters(app: Resolver, next_middleware: NextMiddleware) -> Answer:
    """From 2026-07-27 on, a query parameter that the route does not know is a 422."""
    context: Mapping[str, Any] = app.context
    call = context.get("call")
    if call is not None and call.version >= versions.STRICT_QUERIES and context["_route"] in app.routes:
        known = declared(context["_route"])
        given = app.current_event.resolved_query_string_parameters
        if unknown := [name for name in given if name not in known]:
            allowed = f"; known are {', '.join(sorted(known))}" if known else "; this route takes none"
            raise RequestValidationError(
                [
                    {"loc": ("query", name), "msg": f"is no parameter of this route{allowed}", "type": "extra_forbidden"}
                    for name in unknown
                ]
            )
    answer: Answer = next_middleware(app)
    return answer

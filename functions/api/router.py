"""A file's routes."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.router import APIGatewayHttpRouter
from memory_banks.access import Scope

from .call import Call


class Router(APIGatewayHttpRouter):
    """Routes that belong together, and the request that one of them is answering."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def call(self, scope: Scope) -> Call:
        """The request being answered, once it is sure that its key may. Raises `Forbidden`."""
        call: Call = self.context["call"]
        call.caller.require(scope)
        return call

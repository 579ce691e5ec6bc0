"""Routes about the API itself; none needs a key."""

from __future__ import annotations

from aws_lambda_powertools.event_handler import Response

from .answers import JSON, Answer, answer
from .router import Router

router = Router()


@router.get("/health", include_in_schema=False)
def health() -> Answer:
    """The function answers; nothing else is asked."""
    return answer({"status": "ok"})


@router.get("/openapi.json", include_in_schema=False)
def openapi_document() -> Answer:
    """The description of all routes."""
    from . import openapi, routes

    return Response(200, JSON, openapi.text(routes.app))


@router.get("/docs", include_in_schema=False)
def docs() -> Answer:
    """A page to read and try the routes, with no source but itself."""
    from . import openapi, routes

    return Response(200, "text/html; charset=utf-8", openapi.page(routes.app))

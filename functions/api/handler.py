"""The API's Lambda: an HTTP API event in, the answer out."""

from __future__ import annotations

from typing import Any

from memory_banks import bootstrap, versions

from . import call
from .answers import outside
from .errors import respond
from .routes import app


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one request (API Gateway payload 2.0). Every answer names the API version it speaks."""
    version = versions.DEFAULT
    try:
        if event["rawPath"] not in call.OPEN:
            request = call.begin(bootstrap.ports(), event, context)
            version = request.version
            call.check_body(event)
            app.context["call"] = request
        answer: dict[str, Any] = app.resolve(event, context)
    except Exception as error:
        app.context.clear()
        answer = outside(respond(error))
    answer["statusCode"] = int(answer["statusCode"])
    answer["headers"][versions.HEADER] = version
    return answer

"""Routes of API versions."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Body
from memory_banks import versions
from memory_banks.requests import PinVersion

from .answers import Answer, answer, documented
from .router import Router

router = Router()
TAGS = ["Versions"]


@router.get(
    "/version", summary="Get the API version", tags=TAGS, responses=documented("Version", "Pin, effective and known versions")
)
def get_version() -> Answer:
    """The version this request means, the account's pin, and what is known."""
    call = router.call("read")
    return answer(versions.state(versions.pin(call.ports, call.account, fresh=True), call.version))


@router.put(
    "/version", summary="Pin an API version", tags=TAGS, responses=documented("Version", "Pin, effective and known versions")
)
def put_version(body: Annotated[PinVersion, Body()]) -> Answer:
    """Pin the account, or with null remove its pin. A request's header still wins."""
    call = router.call("admin")
    versions.set_pin(call.ports, call.account, body.version)
    return answer(versions.state(body.version, call.version))

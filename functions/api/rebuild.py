"""The route that makes a bank's index again."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Body
from memory_banks import banks
from memory_banks.requests import Rebuild

from .answers import Answer, answer, documented
from .router import Router

router = Router()


@router.post(
    "/memory_banks/<bank_id>/rebuild",
    summary="Rebuild a bank's index",
    tags=["Upkeep"],
    status_code=202,
    responses=documented("Job", "The job", 202),
)
def rebuild_index(bank_id: str, body: Annotated[Rebuild | None, Body()] = None) -> Answer:
    """Makes the index of a bank again from the table, also for another mode or model, while reads and writes go on.

    Nothing given: the mode and model it has. `reconcile` only compares and mends. 409 `rebuild_running` while another job does
    this for the bank.
    """
    from memory_banks import jobs, rebuild

    call = router.call("admin")
    bank = banks.get(call.ports, call.account, bank_id)
    job = rebuild.request(call.ports, bank, body or Rebuild.model_validate({}), deadline=call.deadline)
    return answer(jobs.shown(job), 202)

"""The route of compaction on demand."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Body
from memory_banks import banks
from memory_banks.requests import Compact

from .answers import Answer, answer, documented
from .router import Router

router = Router()


@router.post(
    "/memory_banks/<bank_id>/compact",
    summary="Compact a bank",
    tags=["Compaction"],
    status_code=202,
    responses=documented("CompactionScheduled", "The job", 202),
)
def compact(bank_id: str, body: Annotated[Compact | None, Body()] = None) -> Answer:
    """Starts a job for one key or for every key of the bank. 400 `no_threshold` where nothing would ever be too much."""
    from memory_banks import compaction, jobs

    call = router.call("write")
    bank = banks.get(call.ports, call.account, bank_id)
    job = jobs.shown(compaction.request(call.ports, bank, body.key if body else None))
    return answer({"memory_bank_id": bank.id, "status": job["status"], "job": job}, 202)

"""Routes of jobs: asynchronous work that a user can look at."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query
from memory_banks import banks
from memory_banks.errors import NotFound
from memory_banks.ids import CALLER_ID
from memory_banks.requests import ListJobs

from .answers import Answer, answer, documented
from .router import Router

router = Router()
TAGS = ["Jobs"]


@router.get("/memory_banks/<bank_id>/jobs", summary="List jobs", tags=TAGS, responses=documented("JobPage", "A page of jobs"))
def list_jobs(bank_id: str, query: Annotated[ListJobs, Query()]) -> Answer:
    """Jobs of the last 30 days, newest first."""
    from memory_banks import jobs

    call = router.call("read")
    bank = banks.get(call.ports, call.account, bank_id)
    found, cursor = jobs.listed(call.ports, bank, limit=query.limit, cursor=query.cursor)
    return answer({"jobs": [jobs.shown(job) for job in found], "next_cursor": cursor})


@router.get("/memory_banks/<bank_id>/jobs/<job_id>", summary="Get a job", tags=TAGS, responses=documented("Job", "The job"))
def get_job(bank_id: str, job_id: str) -> Answer:
    """What became of one job."""
    from memory_banks import jobs

    call = router.call("read")
    return answer(jobs.shown(jobs.get(call.ports, banks.get(call.ports, call.account, bank_id), _id(job_id))))


@router.post(
    "/memory_banks/<bank_id>/jobs/<job_id>/cancel", summary="Cancel a job", tags=TAGS, responses=documented("Job", "The job")
)
def cancel_job(bank_id: str, job_id: str) -> Answer:
    """Stops at its next step; a job that has ended stays as it is."""
    from memory_banks import jobs

    call = router.call("write")
    bank = banks.get(call.ports, call.account, bank_id)
    job = jobs.cancel(call.ports, bank, _id(job_id))
    if job["kind"] == "rebuild":
        from memory_banks import rebuild

        # It may be waiting; what it has registered is to be taken back now.
        rebuild.announce(call.ports, bank.account, bank.id, job["sk"])
    if job["kind"] == "distillation":
        from memory_banks.capture import trigger

        trigger.cancelled(call.ports, bank, job)
    return answer(jobs.shown(job))


def _id(job_id: str) -> str:
    if CALLER_ID.fullmatch(job_id):
        return job_id
    raise NotFound("There is no such job.")

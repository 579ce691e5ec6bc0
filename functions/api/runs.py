"""Routes of captured runs: capture, look, edit, delete, flush, regenerate."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Body, Header, Query
from memory_banks import agents, banks
from memory_banks.errors import NotFound
from memory_banks.ids import CALLER_ID
from memory_banks.requests import AskMismatch, CaptureRun, EditMessage, ListRuns, RunsOfKey

from .answers import Answer, answer, documented, nothing
from .entries import version_of
from .router import Router

router = Router()
TAGS = ["Runs"]


@router.post(
    "/memory_banks/<bank_id>/runs",
    summary="Capture a run",
    tags=TAGS,
    status_code=201,
    responses=documented("CapturedRun", "The run, counted", 201),
)
def capture_run(bank_id: str, body: Annotated[CaptureRun, Body()]) -> Answer:
    """A finished run with its messages: counted once by its id, durable when answered, distilled when it is time.

    At `threshold` waiting runs of the key at once, fewer when it was quiet for `idle_seconds`, and never later than
    `max_wait_seconds`. While auto_capture is off a run is stored and not counted. 409 `capture_off` where the bank has no capture
    settings, `other_flow` for the run of another flow, `id_conflict` for an id that is known with other content.
    """
    from memory_banks.capture import runs

    call = router.call("write")
    captured = runs.capture(call.ports, call.account, bank_id, body.run(), deadline=call.deadline)
    agents.note(call.ports, bank_id, body.agent_id)
    return answer(
        {
            "run_id": captured.run,
            "number": captured.number,
            "message_ids": list(captured.messages),
            "counted": captured.counted,
            "existing": captured.existing,
            "pending_runs": captured.pending,
            "job_id": captured.job,
        },
        201,
    )


@router.get("/memory_banks/<bank_id>/runs", summary="List runs", tags=TAGS, responses=documented("RunPage", "A page of runs"))
def list_runs(bank_id: str, query: Annotated[ListRuns, Query()]) -> Answer:
    """The captured runs of a key with their messages, oldest first, and how far they are distilled."""
    from memory_banks.capture import listing

    call = router.call("read")
    bank = banks.get(call.ports, call.account, bank_id)
    return answer(listing.runs(call.ports, bank, query.key, limit=query.limit, cursor=query.cursor))


@router.get(
    "/memory_banks/<bank_id>/runs/mismatch",
    summary="Compare runs and entries",
    tags=TAGS,
    responses=documented("Mismatch", "What was made, and what of it is missing"),
)
def check_mismatch(bank_id: str, query: Annotated[AskMismatch, Query()]) -> Answer:
    """Whether all that was made of a key's messages is there; `regenerate` makes it again."""
    from memory_banks.capture import mismatch

    call = router.call("read")
    return answer(mismatch.check(call.ports, banks.get(call.ports, call.account, bank_id), query.key))


@router.patch(
    "/memory_banks/<bank_id>/messages/<message_id>",
    summary="Edit a message",
    tags=TAGS,
    responses=documented("EditedMessage", "The message as it is now"),
)
def edit_message(
    bank_id: str,
    message_id: str,
    body: Annotated[EditMessage, Body()],
    if_match: Annotated[str | None, Header(alias="If-Match")] = None,
) -> Answer:
    """Another text. What was made of the message follows: an entry is corrected, what a model made of it is made again."""
    from memory_banks.capture import messages

    call = router.call("write")
    bank = banks.get(call.ports, call.account, bank_id)
    wanted = version_of(if_match)
    item = messages.edit(call.ports, bank, _id(message_id), body.text, if_match=wanted, deadline=call.deadline)
    shown = {"id": item["id"], "sender": item["sender"], "text": item["text"], "version": item["version"]}
    return answer(shown, headers={"ETag": f'"{item["version"]}"'})


@router.delete(
    "/memory_banks/<bank_id>/messages/<message_id>",
    summary="Delete a message",
    tags=TAGS,
    status_code=204,
    responses=documented(None, "Gone", 204),
)
def delete_message(bank_id: str, message_id: str) -> Answer:
    """Gone, with what was made of it alone; what a model made of it and others is made again of the others."""
    from memory_banks.capture import messages

    call = router.call("write")
    messages.delete(call.ports, banks.get(call.ports, call.account, bank_id), _id(message_id), deadline=call.deadline)
    return nothing()


@router.post(
    "/memory_banks/<bank_id>/flush",
    summary="Distil now",
    tags=TAGS,
    status_code=202,
    responses=documented("Job", "The job", 202),
)
def flush(bank_id: str, body: Annotated[RunsOfKey, Body()]) -> Answer:
    """What waits under a key is distilled without waiting longer, runs that were only stored included.

    409 `capture_off` where the bank has no capture settings.
    """
    from memory_banks import jobs
    from memory_banks.capture import trigger

    call = router.call("write")
    bank = banks.get(call.ports, call.account, bank_id)
    return answer(jobs.shown(trigger.flush(call.ports, bank, body.key, deadline=call.deadline)), 202)


@router.post(
    "/memory_banks/<bank_id>/regenerate",
    summary="Distil again from the start",
    tags=TAGS,
    status_code=202,
    responses=documented("Job", "The job", 202),
)
def regenerate(bank_id: str, body: Annotated[RunsOfKey, Body()]) -> Answer:
    """What was made of a key's messages is removed and made again from them, by the settings of now. Nothing is doubled: what was
    compacted stays, as the summary tells it. 409 `capture_off` where the bank has no capture settings."""
    from memory_banks import jobs
    from memory_banks.capture import trigger

    call = router.call("write")
    bank = banks.get(call.ports, call.account, bank_id)
    return answer(jobs.shown(trigger.regenerate(call.ports, bank, body.key, deadline=call.deadline)), 202)


@router.post(
    "/memory_banks/<bank_id>/jobs/<job_id>/retry",
    summary="Try a distillation again",
    tags=TAGS,
    status_code=202,
    responses=documented("Job", "The new job", 202),
)
def retry_job(bank_id: str, job_id: str) -> Answer:
    """What the job has set aside, or all that it failed at, is distilled again. 409 `nothing_to_retry` where that is nothing."""
    from memory_banks import jobs
    from memory_banks.capture import messages

    call = router.call("write")
    bank = banks.get(call.ports, call.account, bank_id)
    if not CALLER_ID.fullmatch(job_id):
        raise NotFound("There is no such job.")
    return answer(jobs.shown(messages.retry(call.ports, bank, job_id, deadline=call.deadline)), 202)


def _id(message_id: str) -> str:
    if CALLER_ID.fullmatch(message_id):
        return message_id
    raise NotFound("There is no such message.")

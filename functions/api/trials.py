"""Routes that try a compaction prompt. A trial changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aws_lambda_powertools.event_handler.openapi.params import Body
from memory_banks import banks
from memory_banks.requests import TestCompaction, TestCompactionAlone

from .answers import Answer, answer, documented
from .router import Router

if TYPE_CHECKING:
    from memory_banks.bank import Bank

    from .call import Call

router = Router()
TAGS = ["Compaction"]


@router.post(
    "/memory_banks/test-compaction",
    summary="Try a compaction prompt without a bank",
    tags=TAGS,
    responses=documented("CompactionTest", "What came of it"),
)
def try_alone(body: Annotated[TestCompactionAlone, Body()]) -> Answer:
    """On pasted or generated entries."""
    from memory_banks.bank import stand_in_of

    call = router.call("read")
    return _tried(call, stand_in_of(call.account, body.bank_type), body)


@router.post(
    "/memory_banks/<bank_id>/test-compaction",
    summary="Try a compaction prompt",
    tags=TAGS,
    responses=documented("CompactionTest", "What came of it"),
)
def try_on_bank(bank_id: str, body: Annotated[TestCompaction, Body()]) -> Answer:
    """On pasted or generated entries, or on the newest ones of the bank's fullest key."""
    call = router.call("read")
    return _tried(call, banks.get(call.ports, call.account, bank_id), body)


def _tried(call: Call, bank: Bank, body: TestCompaction) -> Answer:
    from memory_banks import trials

    samples = [
        trials.Sample(one) if isinstance(one, str) else trials.Sample(one.content, one.speaker) for one in body.sample_entries or ()
    ]
    trial = trials.try_prompt(
        call.ports,
        bank,
        prompt=body.compaction_prompt,
        samples=samples,
        direction=body.generate_direction,
        count=body.entry_count,
        deadline=call.deadline,
    )
    return answer(trial.shown())

"""The route of statistics."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Query
from memory_banks import banks
from memory_banks.requests import StatsRange

from .answers import Answer, answer, documented
from .router import Router

router = Router()


@router.get(
    "/memory_banks/<bank_id>/stats", summary="Statistics of a bank", tags=["Banks"], responses=documented("Stats", "The figures")
)
def get_stats(bank_id: str, query: Annotated[StatsRange, Query()]) -> Answer:
    """Counts, distributions and the most frequent values of the entries created in a range, the last 30 days by default.

    They come from the index: a write counts as soon as it can be found.
    """
    from memory_banks import stats

    call = router.call("read")
    bank = banks.get(call.ports, call.account, bank_id)
    wanted = stats.Range(query.days, query.start_date, query.end_date)
    return answer(stats.of_bank(call.ports, bank, wanted))

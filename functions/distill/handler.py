"""The `distill` function: a message of the distillation queue, given back when it should come again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from memory_banks import bootstrap
from memory_banks.distillation import distilling

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


def _distill(record: SQSRecord, lambda_context: Any = None) -> None:
    ports = bootstrap.ports()
    left = lambda_context.get_remaining_time_in_millis() if lambda_context else 300_000
    distilling.handle(ports, record.json_body, deadline=ports.clock.now() + left)


def handler(event: dict[str, Any], context: Any) -> PartialItemFailureResponse:
    """SQS event in, `batchItemFailures` out."""
    return process_partial_response(event=event, record_handler=_distill, processor=processor, context=context)

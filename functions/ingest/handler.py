"""The `ingest` function: a batch of the ingestion queue, failed messages named so that only they come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from memory_banks import bootstrap, ingestion

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


def _ingest(record: SQSRecord) -> None:
    ingestion.ingest(bootstrap.ports(), record.json_body)


def handler(event: dict[str, Any], context: Any) -> PartialItemFailureResponse:
    """SQS event in, `batchItemFailures` out."""
    return process_partial_response(event=event, record_handler=_ingest, processor=processor, context=context)

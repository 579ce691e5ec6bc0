"""A queue on Amazon SQS."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from ..ports import QueueUnavailable

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

BATCH = 10


class SqsQueue:
    """`ports.Queue` on a standard queue."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client
        self._url = url

    def send(self, messages: Sequence[Mapping[str, Any]], delay_seconds: int = 0) -> None:
        """See `ports.Queue.send`; a delay is at most 900 s."""
        for start in range(0, len(messages), BATCH):
            entries = [
                {"Id": str(position), "MessageBody": json.dumps(message, separators=(",", ":")), "DelaySeconds": delay_seconds}
                for position, message in enumerate(messages[start : start + BATCH])
            ]
            try:
                answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)  # type: ignore[arg-type]
            except (ClientError, BotoCoreError) as error:
                raise QueueUnavailable(str(error)) from error
            if answer.get("Failed"):
                raise QueueUnavailable(answer["Failed"][0].get("Message", "a message was not taken"))

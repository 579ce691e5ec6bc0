"""What Lambda's event source mapping does for a queue: fetch, call the function, remove what it was done with."""

from __future__ import annotations

import logging
import threading
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from local.aws import REGION
from local.lambdas import Function

logger = logging.getLogger(__name__)

LONG_POLL_SECONDS = 2
"""How long one fetch waits for messages; also how long stopping may take."""

PAUSE_SECONDS = 1.0
"""After a queue could not be reached."""


class Pump:
    """Feeds one queue to one function, in a thread of its own.

    A message goes only after the function was done with it. One that failed, or whose process died, comes back when its
    visibility ends, and after some tries goes to the dead letters.
    """

    def __init__(self, sqs: Any, url: str, function: Function, batch: int) -> None:
        """`batch` is how many messages one event carries at most (1 to 10)."""
        self._sqs = sqs
        self._url = url
        self._function = function
        self._batch = batch
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"pump {function.name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the batch at hand."""
        self._ending.set()
        if self._thread.ident:
            self._thread.join()

    def once(self, wait_seconds: int = 0) -> int:
        """Fetch and handle one batch; how many messages are done with. Raises what boto3 raises."""
        request = {"QueueUrl": self._url, "MaxNumberOfMessages": self._batch, "WaitTimeSeconds": wait_seconds}
        fetched = self._sqs.receive_message(**request, MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"])
        messages = fetched.get("Messages", [])
        if not messages:
            return 0
        failed = self._failed(messages)
        done = [message for message in messages if message["MessageId"] not in failed]
        if done:
            handles = [{"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]} for number, message in enumerate(done)]
            self._sqs.delete_message_batch(QueueUrl=self._url, Entries=handles)
        return len(done)

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self.once(LONG_POLL_SECONDS)
            except (BotoCoreError, ClientError) as error:
                logger.warning("the queue of %s can't be reached: %s", self._function.name, error)
                self._ending.wait(PAUSE_SECONDS)

    def _failed(self, messages: list[dict[str, Any]]) -> set[str]:
        """The ids of messages that must come back: those the function names, or all when it fails."""
        every = {message["MessageId"] for message in messages}
        try:
            result = self._function({"Records": [self._record(message) for message in messages]})
        except Exception:
            logger.exception("%s failed; its %d messages will be tried again", self._function.name, len(messages))
            return every
        named = [failure.get("itemIdentifier") for failure in (result or {}).get("batchItemFailures") or []]
        # Lambda takes an identifier it does not know for the failure of the whole batch.
        return set(named) if all(name in every for name in named) else every

    def _record(self, message: dict[str, Any]) -> dict[str, Any]:
        account, name = self._url.rsplit("/", 2)[1:]
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message.get("Attributes", {}),
            "messageAttributes": message.get("MessageAttributes", {}),
            "md5OfBody": message["MD5OfBody"],
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:{REGION}:{account}:{name}",
            "awsRegion": REGION,
        }

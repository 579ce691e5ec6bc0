"""A standard queue, the dead-letter queue behind it, and how a function works it off."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from .function import MemoryFunction

RECEIVES = 5
"""How often a message is handed out before it goes to the dead letters."""


class WorkQueue(Construct):
    """A queue for a function that runs `timeout` at most. `setting` is the name under which functions know its URL."""

    def __init__(self, scope: Construct, id: str, *, setting: str, timeout: Duration) -> None:
        super().__init__(scope, id)
        self._setting = setting
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            retention_period=Duration.days(14),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
        self.queue = sqs.Queue(
            self,
            "Queue",
            # Six times the function's timeout, as Lambda advises: a throttled batch must not be handed out twice meanwhile.
            visibility_timeout=Duration.seconds(6 * timeout.to_seconds()),
            retention_period=Duration.days(4),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letters, max_receive_count=RECEIVES),
        )

    def grant_send(self, function: MemoryFunction) -> None:
        """Let a function send messages."""
        function.setting(self._setting, self.queue.queue_url)
        self.queue.grant(function, "sqs:SendMessage")

    def feed(self, function: MemoryFunction, *, batch_size: int, concurrency: int) -> None:
        """Hand messages to a function in batches, of which it may give back some."""
        function.add_event_source(
            sources.SqsEventSource(
                self.queue,
                batch_size=batch_size,
                max_concurrency=concurrency,
                report_batch_item_failures=True,
            )
        )

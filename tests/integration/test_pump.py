"""The queue pump and the schedules, with the emulator's real queues."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aws_lambda_powertools.utilities.parser.models import SqsModel
from memory_banks.adapters.sqs import SqsQueue

from local.emulator import Emulator
from local.lambdas import Function
from local.pump import Pump
from local.schedule import Schedule

pytestmark = pytest.mark.emulator

Handler = Callable[[Any, Any], Any]


class Queues:
    """A queue whose messages come back at once, with dead letters after two tries."""

    def __init__(self, emulator: Emulator) -> None:
        self.sqs = emulator.client("sqs")
        name = f"pump-{random.SystemRandom().getrandbits(64):x}"
        self.dead = self.sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
        arn = self.sqs.get_queue_attributes(QueueUrl=self.dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 2})
        attributes = {"VisibilityTimeout": "0", "RedrivePolicy": redrive}
        self.url = self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]

    def send(self, *numbers: int) -> None:
        SqsQueue(self.sqs, self.url).send([{"n": number} for number in numbers])

    def pump(self, handler: Handler, batch: int = 10) -> Pump:
        return Pump(self.sqs, self.url, Function("double", handler), batch)

    def left(self, url: str | None = None) -> list[int]:
        found = self.sqs.receive_message(QueueUrl=url or self.url, MaxNumberOfMessages=10).get("Messages", [])
        return sorted(json.loads(message["Body"])["n"] for message in found)


@pytest.fixture
def queues(emulator: Emulator) -> Iterator[Queues]:
    return Queues(emulator)


def numbers(event: Any) -> list[int]:
    return [json.loads(record["body"])["n"] for record in event["Records"]]


def test_the_event_is_what_lambda_gives(queues: Queues) -> None:
    events: list[Any] = []
    queues.send(1, 2)
    queues.pump(lambda event, context: events.append(event)).once()

    parsed = SqsModel.model_validate(events[0])
    assert sorted(numbers(events[0])) == [1, 2]
    record = parsed.Records[0]
    assert record.eventSourceARN.endswith(queues.url.rsplit("/", 1)[1])
    assert record.attributes.ApproximateReceiveCount == "1"
    assert queues.left() == []


def test_only_what_is_named_comes_back(queues: Queues) -> None:
    def handler(event: Any, context: Any) -> Any:
        failed = [record["messageId"] for record in event["Records"] if json.loads(record["body"])["n"] % 2]
        return {"batchItemFailures": [{"itemIdentifier": one} for one in failed]}

    queues.send(1, 2, 3, 4)
    assert queues.pump(handler).once() == 2
    assert queues.left() == [1, 3]


@pytest.mark.parametrize("failures", [[{"itemIdentifier": "another"}], [{"itemIdentifier": ""}], [{}]])
def test_a_failure_that_names_no_message_is_everybodys(queues: Queues, failures: list[Any]) -> None:
    queues.send(1, 2)
    assert queues.pump(lambda event, context: {"batchItemFailures": failures}).once() == 0
    assert queues.left() == [1, 2]


def test_a_function_that_dies_loses_nothing_and_a_poisonous_message_ends_among_the_dead(queues: Queues) -> None:
    def handler(event: Any, context: Any) -> Any:
        raise RuntimeError("killed here")

    queues.send(7)
    pump = queues.pump(handler)
    assert [pump.once() for _ in range(3)] == [0, 0, 0]
    assert queues.left() == []
    assert queues.left(queues.dead) == [7]


def test_takes_no_more_than_its_batch(queues: Queues) -> None:
    batches: list[list[int]] = []
    queues.send(1, 2, 3)
    pump = queues.pump(lambda event, context: batches.append(numbers(event)), batch=1)
    while pump.once():
        pass
    assert sorted(batches) == [[1], [2], [3]]


def test_works_until_it_is_stopped(queues: Queues) -> None:
    done = threading.Semaphore(0)
    pump = queues.pump(lambda event, context: [done.release() for _ in event["Records"]] and None)
    pump.start()
    try:
        queues.send(*range(25))
        for _ in range(25):
            assert done.acquire(timeout=20)
    finally:
        pump.stop()
    queues.send(99)
    assert queues.left() == [99]


def test_the_schedules_come_at_the_start_and_at_their_rate_even_after_a_failure() -> None:
    fired: list[Any] = []
    enough = threading.Event()

    def handler(event: Any, context: Any) -> Any:
        fired.append(event)
        if len(fired) >= 6:
            enough.set()
        if len(fired) == 1:
            raise RuntimeError("killed here")

    schedule = Schedule(Function("double", handler), ("compaction", "retention"), 0.01)
    schedule.start()
    assert enough.wait(20)
    schedule.stop()

    assert fired[:6] == [{"sweep": "compaction"}, {"sweep": "retention"}] * 3

"""The AWS resources that the functions need, made in an emulator: what `infra/` declares for the cloud."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

VISIBILITY = {"ingestion": 120, "compaction": 300, "export": 900, "distillation": 300}
"""Seconds until a message that was not done with comes back: as long as its function may run."""

RECEIVES = 5
"""How often a message is tried before it goes to the dead letters."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Names of what was made; see `settings.Settings` for the same fields."""

    table: str
    bucket: str
    ingestion_queue_url: str
    compaction_queue_url: str
    export_queue_url: str
    distillation_queue_url: str


def create(client: Callable[[str], Any], name: str = "memory-banks") -> Resources:
    """Make the table, the bucket and the queues with their dead letters, all named after `name`.

    `client` gives the boto3 client of a service. Only the bucket may be there already: an emulator can keep it on disk.
    """
    client("dynamodb").create_table(**table_definition(name))
    s3 = client("s3")
    with suppress(s3.exceptions.BucketAlreadyOwnedByYou):
        s3.create_bucket(Bucket=name)
    queues = {kind: _queue(client("sqs"), f"{name}-{kind}", seconds) for kind, seconds in VISIBILITY.items()}
    return Resources(name, name, *(queues[kind] for kind in VISIBILITY))


def table_definition(name: str) -> dict[str, Any]:
    """The table with its two sparse, keys-only indexes, as `create_table` takes it."""
    kinds = {"pk": "S", "sk": "S", "due_pk": "S", "due_at": "N", "age_pk": "S", "age": "S"}
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": attribute, "AttributeType": kind} for attribute, kind in kinds.items()],
        "KeySchema": _schema("pk", "sk"),
        "GlobalSecondaryIndexes": [
            {"IndexName": index, "KeySchema": _schema(*keys), "Projection": {"ProjectionType": "KEYS_ONLY"}}
            for index, keys in {"due": ("due_pk", "due_at"), "age": ("age_pk", "age")}.items()
        ],
    }


def _schema(hash_key: str, range_key: str) -> list[dict[str, str]]:
    return [{"AttributeName": hash_key, "KeyType": "HASH"}, {"AttributeName": range_key, "KeyType": "RANGE"}]


def _queue(sqs: Any, name: str, visibility: int) -> str:
    dead = sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = {"deadLetterTargetArn": arn, "maxReceiveCount": RECEIVES}
    attributes = {"VisibilityTimeout": str(visibility), "RedrivePolicy": json.dumps(redrive)}
    url: str = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url

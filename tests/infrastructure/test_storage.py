"""The table and the bucket of the template."""

from __future__ import annotations

from collections.abc import Callable

from tests.infrastructure.assembly import Synthesised


def test_table_is_on_demand_recoverable_and_keyed_as_the_port_expects(stack: Synthesised) -> None:
    table = stack.one("AWS::DynamoDB::Table")
    assert table["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": 35}
    assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    types = {a["AttributeName"]: a["AttributeType"] for a in table["AttributeDefinitions"]}
    assert types == {"pk": "S", "sk": "S", "due_pk": "S", "due_at": "N", "age_pk": "S", "age": "S"}


def test_sparse_indexes_hold_keys_alone(stack: Synthesised) -> None:
    indexes = {index["IndexName"]: index for index in stack.one("AWS::DynamoDB::Table")["GlobalSecondaryIndexes"]}
    keys = {name: [k["AttributeName"] for k in index["KeySchema"]] for name, index in indexes.items()}
    assert keys == {"due": ["due_pk", "due_at"], "age": ["age_pk", "age"]}
    assert all(index["Projection"] == {"ProjectionType": "KEYS_ONLY"} for index in indexes.values())


def test_bucket_is_private_encrypted_and_keeps_no_versions(stack: Synthesised) -> None:
    bucket = stack.one("AWS::S3::Bucket")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"][0]["ServerSideEncryptionByDefault"] == {
        "SSEAlgorithm": "AES256"
    }
    assert "VersioningConfiguration" not in bucket


def test_data_outlives_the_stack_unless_told_otherwise(stack: Synthesised, synthesise: Callable[..., Synthesised]) -> None:
    kinds = ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::OpenSearchService::Domain")
    destroyed = synthesise(removal="destroy", recovery_days="1")
    for kind in kinds:
        (kept,), (gone,) = stack.of(kind).values(), destroyed.of(kind).values()
        assert (kept["DeletionPolicy"], gone["DeletionPolicy"]) == ("Retain", "Delete")
    assert stack.one(kinds[0])["DeletionProtectionEnabled"] is True
    assert destroyed.one(kinds[0])["DeletionProtectionEnabled"] is False
    assert destroyed.one(kinds[0])["PointInTimeRecoverySpecification"]["RecoveryPeriodInDays"] == 1

"""The table on Amazon DynamoDB, through the low-level client (its resource layer refuses floats and doubles import time).

Retries: botocore repeats a transaction under the same ClientRequestToken, so a lost answer can't apply it twice. A lone
update is not covered by a token; callers give it a condition or make it idempotent.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from ..marking import due_partition
from ..ports import (
    Action,
    Aged,
    Chance,
    Check,
    Clock,
    Condition,
    ConditionFailed,
    Contended,
    Delete,
    Due,
    Either,
    Is,
    Item,
    Key,
    Page,
    Put,
    TableUnavailable,
    Update,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

BATCH = 100
"""Keys of one BatchGetItem, and actions of one transaction."""

_CONTENDED = {
    "TransactionConflict",
    "TransactionConflictException",
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "ThrottlingError",
    "ThrottlingException",
    "Throttling",
    "RequestLimitExceeded",
}


def encode(value: Any) -> dict[str, Any]:
    """A value in DynamoDB's wire format."""
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int() | float():
            return {"N": repr(value)}
        case bytes():
            return {"B": value}
        case set() | frozenset():
            return {"SS": sorted(value)}
        case Mapping():
            return {"M": {name: encode(inner) for name, inner in value.items()}}
        case Sequence():
            return {"L": [encode(inner) for inner in value]}
    raise TypeError(f"no DynamoDB type for {type(value).__name__}")


def decode(value: Mapping[str, Any]) -> Any:
    """The value of a wire format; numbers are int or float again, as they were written."""
    ((kind, inner),) = value.items()
    match kind:
        case "NULL":
            return None
        case "N":
            return int(inner) if inner.lstrip("-").isdigit() else float(inner)
        case "B":
            return inner if isinstance(inner, bytes) else base64.b64decode(inner)
        case "SS":
            return set(inner)
        case "M":
            return {name: decode(member) for name, member in inner.items()}
        case "L":
            return [decode(member) for member in inner]
    return inner


def _encode_item(item: Item) -> dict[str, Any]:
    return {name: encode(value) for name, value in item.items()}


def _decode_item(item: Mapping[str, Any]) -> Item:
    return {name: decode(value) for name, value in item.items()}


def _encode_key(key: Key) -> dict[str, Any]:
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


class _Expression:
    """Names and values of one request's expressions."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Any] = {}

    def name(self, attribute: str) -> str:
        placeholder = f"#n{len(self.names)}"
        for known, meant in self.names.items():
            if meant == attribute:
                return known
        self.names[placeholder] = attribute
        return placeholder

    def value(self, value: Any) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = encode(value)
        return placeholder

    def test(self, test: Is | Either) -> str:
        if isinstance(test, Either):
            return "(" + " OR ".join(self.test(inner) for inner in test.tests) + ")"
        name = self.name(test.attribute)
        if test.operator == "exists":
            return f"attribute_exists({name})"
        if test.operator == "missing":
            return f"attribute_not_exists({name})"
        return f"{name} {test.operator} {self.value(test.value)}"

    def condition(self, when: Condition) -> dict[str, Any]:
        return {"ConditionExpression": " AND ".join(self.test(test) for test in when)} if when else {}

    def update(self, update: Update) -> dict[str, Any]:
        clauses = []
        if update.set:
            clauses.append("SET " + ", ".join(f"{self.name(name)} = {self.value(value)}" for name, value in update.set.items()))
        if update.add:
            clauses.append("ADD " + ", ".join(f"{self.name(name)} {self.value(value)}" for name, value in update.add.items()))
        if update.remove:
            clauses.append("REMOVE " + ", ".join(self.name(name) for name in update.remove))
        return {"UpdateExpression": " ".join(clauses)} if clauses else {}

    def used(self) -> dict[str, Any]:
        used: dict[str, Any] = {}
        if self.names:
            used["ExpressionAttributeNames"] = self.names
        if self.values:
            used["ExpressionAttributeValues"] = self.values
        return used


@contextmanager
def _errors() -> Iterator[None]:
    """botocore's errors as the port's."""
    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "ConditionalCheckFailedException":
            raise ConditionFailed from error
        if code == "TransactionCanceledException":
            reasons = [reason.get("Code", "None") for reason in error.response.get("CancellationReasons", [])]
            failed = tuple(position for position, reason in enumerate(reasons) if reason == "ConditionalCheckFailed")
            if failed:
                raise ConditionFailed(failed) from error
            if any(reason in _CONTENDED for reason in reasons):
                raise Contended(str(error)) from error
            raise
        if code in _CONTENDED:
            raise Contended(str(error)) from error
        # A transaction of the same token is still under way: whether it takes effect is unknown.
        if code == "TransactionInProgressException" or error.response["ResponseMetadata"].get("HTTPStatusCode", 500) >= 500:
            raise TableUnavailable(str(error)) from error
        raise
    except BotoCoreError as error:
        raise TableUnavailable(str(error)) from error


def _as_it_came(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Leave an answer's items as the JSON they are, which `decode` reads; botocore would walk each attribute to give the same.

    But for bytes, which others who share the client want from botocore.
    """
    if response_dict["status_code"] == 200 and b'"B"' not in response_dict["body"]:
        with suppress(ValueError):  # then botocore says what is wrong with it
            customized_response_dict |= json.loads(response_dict["body"])
            response_dict["body"] = b"{}"


def leave_items_as_they_come(client: Any) -> None:
    """Have a client give the items of its reads as the JSON that came."""
    for operation in ("BatchGetItem", "Query"):
        client.meta.events.register(f"before-parse.dynamodb.{operation}", _as_it_came, unique_id=f"as-it-came-{operation}")


class DynamoTable:
    """`ports.Table` on a DynamoDB table with the global secondary indexes `due` and `age`."""

    def __init__(self, client: DynamoDBClient, name: str, clock: Clock, chance: Chance) -> None:
        self._client = client
        self._name = name
        self._clock = clock
        self._chance = chance
        leave_items_as_they_come(client)

    def read(self, keys: Sequence[Key]) -> list[Item | None]:
        """See `ports.Table.read`."""
        found: dict[tuple[str, str], Item] = {}
        unique = list(dict.fromkeys(keys))
        for start in range(0, len(unique), BATCH):
            wanted: list[dict[str, Any]] = [_encode_key(key) for key in unique[start : start + BATCH]]
            for attempt in range(10):
                with _errors():
                    answer = self._client.batch_get_item(RequestItems={self._name: {"Keys": wanted, "ConsistentRead": True}})
                for raw in answer["Responses"].get(self._name, []):
                    item = _decode_item(raw)
                    found[item["pk"], item["sk"]] = item
                wanted = list(answer["UnprocessedKeys"].get(self._name, {"Keys": []})["Keys"])
                if not wanted:
                    break
                self._clock.sleep(self._chance.random() * min(0.05 * 2**attempt, 1))
            else:
                raise Contended("keys stayed unprocessed")
        return [found.get((key.pk, key.sk)) for key in keys]

    def query(
        self,
        pk: str,
        *,
        after: str | None = None,
        before: str | None = None,
        first: str | None = None,
        last: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
        attributes: Sequence[str] | None = None,
    ) -> Page:
        """See `ports.Table.query`."""
        expression = _Expression()
        request = self._range(expression, pk, after, before, first, last)
        if attributes is not None:
            names = dict.fromkeys(["pk", "sk", *attributes])
            request["ProjectionExpression"] = ", ".join(expression.name(name) for name in names)
        if limit is not None:
            # DynamoDB knows one condition on the sort key; an excluded upper end may come along and is dropped below.
            request["Limit"] = limit + (before is not None)
        with _errors():
            answer = self._client.query(
                TableName=self._name, ConsistentRead=True, ScanIndexForward=not reverse, **request, **expression.used()
            )
        items = [_decode_item(raw) for raw in answer["Items"] if raw["sk"]["S"] != before]
        more = answer.get("LastEvaluatedKey")
        follows = more["sk"]["S"] if more else None
        if limit is not None and len(items) > limit:
            items = items[:limit]
            follows = items[-1]["sk"]
        return Page(items, follows)

    def count(self, pk: str, *, after: str | None = None, before: str | None = None) -> int:
        """See `ports.Table.count`."""
        # With both bounds the upper end counts in BETWEEN, so one that exists is taken off again.
        total = 0 if after is None or before is None or not self.read([Key(pk, before)])[0] else -1
        start: dict[str, Any] = {}
        while True:
            expression = _Expression()
            request = self._range(expression, pk, after, before, None, None)
            with _errors():
                answer = self._client.query(
                    TableName=self._name, ConsistentRead=True, Select="COUNT", **request, **expression.used(), **start
                )
            total += answer["Count"]
            if not answer.get("LastEvaluatedKey"):
                return total
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    @staticmethod
    def _range(
        expression: _Expression, pk: str, after: str | None, before: str | None, first: str | None, last: str | None
    ) -> dict[str, Any]:
        low = first if first is not None else None if after is None else after + "\0"
        high = last if last is not None else before
        parts = [f"{expression.name('pk')} = {expression.value(pk)}"]
        # Only where it is used: a name taken back would be given to another attribute.
        sk = expression.name("sk") if low is not None or high is not None else ""
        if low is not None and high is not None:
            parts.append(f"{sk} BETWEEN {expression.value(low)} AND {expression.value(max(low, high))}")
        elif low is not None:
            parts.append(f"{sk} >= {expression.value(low)}")
        elif high is not None:
            parts.append(f"{sk} {'<=' if last is not None else '<'} {expression.value(high)}")
        return {"KeyConditionExpression": " AND ".join(parts)}

    def write(self, action: Put | Update | Delete) -> Item:
        """See `ports.Table.write`."""
        expression = _Expression()
        match action:
            case Put(item, when):
                condition = expression.condition(when)
                with _errors():
                    self._client.put_item(TableName=self._name, Item=_encode_item(item), **condition, **expression.used())
                return dict(item)
            case Update(key, when=when):
                request = expression.update(action) | expression.condition(when)
                with _errors():
                    answer = self._client.update_item(
                        TableName=self._name, Key=_encode_key(key), ReturnValues="ALL_NEW", **request, **expression.used()
                    )
                return _decode_item(answer["Attributes"])
            case Delete(key, when):
                condition = expression.condition(when)
                with _errors():
                    self._client.delete_item(TableName=self._name, Key=_encode_key(key), **condition, **expression.used())
                return {}

    def transact(self, actions: Sequence[Action]) -> None:
        """See `ports.Table.transact`."""
        with _errors():
            self._client.transact_write_items(TransactItems=[self._transact_item(action) for action in actions])

    def _transact_item(self, action: Action) -> Any:
        expression = _Expression()
        match action:
            case Put(item, when):
                return {"Put": self._request({"Item": _encode_item(item)}, expression.condition(when), expression)}
            case Update(key, when=when):
                changes = expression.update(action) | expression.condition(when)
                return {"Update": self._request({"Key": _encode_key(key)}, changes, expression)}
            case Delete(key, when):
                return {"Delete": self._request({"Key": _encode_key(key)}, expression.condition(when), expression)}
            case Check(key, when):
                return {"ConditionCheck": self._request({"Key": _encode_key(key)}, expression.condition(when), expression)}

    def _request(self, subject: dict[str, Any], parts: dict[str, Any], expression: _Expression) -> dict[str, Any]:
        return {"TableName": self._name} | subject | parts | expression.used()

    def due(self, partition: int, until: int, limit: int) -> list[Due]:
        """See `ports.Table.due`."""
        with _errors():
            answer = self._client.query(
                TableName=self._name,
                IndexName="due",
                KeyConditionExpression="due_pk = :pk AND due_at <= :until",
                ExpressionAttributeValues={":pk": {"S": due_partition(partition)}, ":until": {"N": str(until)}},
                Limit=limit,
            )
        items = [_decode_item(raw) for raw in answer["Items"]]
        return [Due(Key(item["pk"], item["sk"]), item["due_at"]) for item in items]

    def aged(
        self, age_pk: str, *, after: str | None = None, before: str | None = None, limit: int = 100, reverse: bool = False
    ) -> list[Aged]:
        """See `ports.Table.aged`."""
        condition, values = "age_pk = :pk", {":pk": {"S": age_pk}}
        low, high = None if after is None else after + "\0", before
        if low is not None and high is not None:
            condition += " AND age BETWEEN :low AND :high"
        elif low is not None or high is not None:
            condition += " AND age >= :low" if low is not None else " AND age < :high"
        values |= {name: {"S": value} for name, value in ((":low", low), (":high", high)) if value is not None}
        if low is not None and high is not None and low > high:
            return []
        with _errors():
            answer = self._client.query(
                TableName=self._name,
                IndexName="age",
                KeyConditionExpression=condition,
                ExpressionAttributeValues=values,
                Limit=limit,
                ScanIndexForward=not reverse,
            )
        items = [_decode_item(raw) for raw in answer["Items"]]
        return [Aged(Key(item["pk"], item["sk"]), item["age"]) for item in items if item["age"] != before]

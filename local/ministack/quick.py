"""The emulator, made quick: queries cost what they return, copies are cheap, and a waiting receiver is woken.

ministack keeps a partition of DynamoDB unsorted: every Query sorts all of it and evaluates its condition on each item, 0.1 s for
a thousand. Here a partition keeps its sort keys in order, a Query of the usual form (`pk = :a`, perhaps with one bound or two on
`sk`) is cut to the items it may return, and ministack's own code answers it from those alone. Every other request is ministack's
as it was, except that what it copies, items in JSON, is not copied by `copy.deepcopy`, which a third of a write goes into, and
that it remembers what expressions it has read. A receiver of SQS looks every 0.1 s whether something has come; here a message
that is sent wakes it.
"""

from __future__ import annotations

import asyncio
import copy
import re
from bisect import bisect_left, bisect_right, insort
from functools import lru_cache
from types import FunctionType, SimpleNamespace
from typing import Any

_FORM = re.compile(r"(\S+) = (:\w+)(?: AND (\S+) (?:(BETWEEN) (:\w+) AND (:\w+)|(>=|<=|<|>) (:\w+)))?")


class Partition(dict[str, Any]):
    """A partition's items by sort key. `order` are the keys, sorted."""

    def __init__(self, items: dict[str, Any]) -> None:
        super().__init__(items)
        self.order = sorted(items)

    def __setitem__(self, key: str, item: Any) -> None:
        if key not in self:
            insort(self.order, key)
        super().__setitem__(key, item)

    def pop(self, key: str, *default: Any) -> Any:
        """As of a dict."""
        if key in self:
            del self.order[bisect_left(self.order, key)]
        return super().pop(key, *default)

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return {key: copied(item) for key, item in self.items()}


def remembered(function: Any) -> Any:
    """A function of texts alone that is not asked the same twice: expressions, and many numbers, come again and again."""
    cached = lru_cache(16_384)(function)

    def answer(*texts: Any) -> Any:
        return cached(*texts) if all(type(text) is str for text in texts) else function(*texts)

    return answer


def copied(value: Any, *_: Any) -> Any:
    """A deep copy of what came from JSON; anything else as `copy.deepcopy` does it."""
    if type(value) is dict:
        return {name: copied(inner) for name, inner in value.items()}
    if type(value) is list:
        return [copied(inner) for inner in value]
    return value if value is None or type(value) in {str, bool, int, float, bytes} else copy.deepcopy(value)


def wake(sqs: Any) -> None:
    """Teach ministack's module of SQS to end a receiver's pause when a message is sent."""
    waiting: set[asyncio.Event] = set()

    async def pause(seconds: float) -> None:
        sent = asyncio.Event()
        waiting.add(sent)
        try:
            async with asyncio.timeout(seconds):
                await sent.wait()
        except TimeoutError:
            pass
        finally:
            waiting.discard(sent)

    def waking(send: Any) -> Any:
        def sent(data: Any, url: str) -> Any:
            answer = send(data, url)
            for one in waiting:
                one.set()
            return answer

        return sent

    sqs.asyncio = SimpleNamespace(sleep=pause, iscoroutine=asyncio.iscoroutine)
    for action in ("SendMessage", "SendMessageBatch"):
        sqs._HANDLERS[action] = waking(sqs._HANDLERS[action])


def order(dynamodb: Any) -> None:
    """Teach ministack's module of DynamoDB to keep partitions in order."""
    set_item, query, evaluate = dynamodb._set_item, dynamodb._query, dynamodb._evaluate_condition

    def ordered_set_item(table: Any, pk: Any, sk: Any, item: Any) -> Any:
        found = table["items"].get(pk)
        if not isinstance(found, Partition) and table["sk_name"] and dynamodb._get_attr_type(table, table["sk_name"]) == "S":
            table["items"][pk] = Partition(found or {})
        return set_item(table, pk, sk, item)

    def short_query(data: Any) -> Any:
        narrowed = _narrowed(dynamodb, data)
        if narrowed is None:
            return query(data)

        class Tables:
            get = staticmethod(lambda _: narrowed)

        # The same code, for which the table holds nothing else, and what is left meets the condition already.
        known = {**vars(dynamodb), "_tables": Tables, "_evaluate_condition": met}
        return FunctionType(query.__code__, known, query.__name__, query.__defaults__, query.__closure__)(data)

    def met(expression: Any, item: Any, values: Any, names: Any, slot: str = "ConditionExpression") -> Any:
        return slot == "KeyConditionExpression" or evaluate(expression, item, values, names, slot)

    dynamodb._set_item, dynamodb._query = ordered_set_item, short_query
    dynamodb.copy = SimpleNamespace(copy=copy.copy, deepcopy=copied)
    for name in ("_number_size_bytes", "_ddb_canonicalize_number", "_number_error", "_condition_syntax_error"):
        setattr(dynamodb, name, remembered(getattr(dynamodb, name)))
    tokens = remembered(dynamodb._tokenize)
    dynamodb._tokenize = lambda expression: list(tokens(expression))


def _narrowed(dynamodb: Any, data: Any) -> dict[str, Any] | None:
    """The table with only the items that the Query may return; None where it is not of the usual form."""
    if "IndexName" in data or "ExclusiveStartKey" in data or "KeyConditions" in data or "FilterExpression" in data:
        return None
    form = _FORM.fullmatch(data.get("KeyConditionExpression", ""))
    table = dynamodb._tables.get(dynamodb._normalize_table_name(data.get("TableName")))
    if form is None or not table:
        return None
    names, values = data.get("ExpressionAttributeNames", {}), data.get("ExpressionAttributeValues", {})
    pk_name, pk, sk_name, _, low, high, operator, bound = form.groups()
    if names.get(pk_name, pk_name) != table["pk_name"] or (sk_name and names.get(sk_name, sk_name) != table["sk_name"]):
        return None
    texts: dict[str, Any] = {name: value.get("S") if isinstance(value, dict) else None for name, value in values.items()}
    used = [name for name in (pk, low, high, bound) if name]
    partition = table["items"].get(texts.get(pk))
    if any(texts.get(name) is None for name in used) or not isinstance(partition, Partition):
        return None
    order = partition.order
    start, end = 0, len(order)
    if low:
        start, end = bisect_left(order, texts[low]), bisect_right(order, texts[high])
    elif operator in {">", ">="}:
        start = (bisect_left if operator == ">=" else bisect_right)(order, texts[bound])
    elif operator:
        end = (bisect_right if operator == "<=" else bisect_left)(order, texts[bound])
    limit = data.get("Limit")
    if isinstance(limit, int) and limit > 0:
        if data.get("ScanIndexForward", True):
            end = min(end, start + limit)
        else:
            start = max(start, end - limit)
    return {**table, "items": {texts[pk]: {key: partition[key] for key in order[start:end]}}}

"""What the emulator is made to do quickly, `local.ministack.quick`, and that it is as right as ministack's own."""

from __future__ import annotations

import random
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.emulator import Emulator

pytestmark = pytest.mark.emulator


@pytest.fixture(scope="module")
def table(emulator: Emulator) -> str:
    return emulator.create("test-queries").table


def fill(client: Any, table: str, pk: str, keys: list[str]) -> None:
    for start in range(0, len(keys), 25):
        puts = [{"PutRequest": {"Item": {"pk": {"S": pk}, "sk": {"S": key}}}} for key in keys[start : start + 25]]
        client.batch_write_item(RequestItems={table: puts})


def test_a_query_in_a_large_partition_is_as_quick_as_in_a_small_one(emulator: Emulator, table: str) -> None:
    client = emulator.client("dynamodb")

    def seconds(pk: str) -> float:
        times = []
        for _ in range(15):
            began = time.perf_counter()
            answer = client.query(
                TableName=table,
                KeyConditionExpression="pk = :a AND sk BETWEEN :b AND :c",
                ExpressionAttributeValues={":a": {"S": pk}, ":b": {"S": "k00003"}, ":c": {"S": "k9"}},
                Limit=2,
            )
            times.append(time.perf_counter() - began)
            assert [item["sk"]["S"] for item in answer["Items"]] == ["k00003", "k00004"]
            assert answer["ScannedCount"] == 2
        return statistics.median(times)

    fill(client, table, "small", [f"k{number:05}" for number in range(10)])
    fill(client, table, "large", [f"k{number:05}" for number in range(5_000)])
    assert seconds("large") < 10 * seconds("small")


def test_every_form_of_a_condition_gives_what_a_list_of_the_keys_gives(emulator: Emulator, table: str) -> None:
    client = emulator.client("dynamodb")
    chance = random.Random(3)
    keys = ["a", "a\0", "a\x01", "ab", "b", "é", "z", "\U0001f600", "c", "ca"]
    there: set[str] = set()
    forms = {
        "": lambda key, low, high: True,
        " AND sk > :b": lambda key, low, high: key > low,
        " AND sk >= :b": lambda key, low, high: key >= low,
        " AND sk < :b": lambda key, low, high: key < low,
        " AND sk <= :b": lambda key, low, high: key <= low,
        " AND sk BETWEEN :b AND :c": lambda key, low, high: low <= key <= high,
    }
    for _ in range(150):
        key = chance.choice(keys)
        if key in there and chance.random() < 0.5:
            client.delete_item(TableName=table, Key={"pk": {"S": "forms"}, "sk": {"S": key}})
            there.discard(key)
        else:
            client.put_item(TableName=table, Item={"pk": {"S": "forms"}, "sk": {"S": key}})
            there.add(key)
        form = chance.choice(list(forms))
        low, high = sorted(chance.choice(keys) for _ in range(2))
        values = (
            {":a": {"S": "forms"}} | ({":b": {"S": low}} if ":b" in form else {}) | ({":c": {"S": high}} if ":c" in form else {})
        )
        forward, limit = chance.random() < 0.5, chance.choice((None, 1, 3))
        answer = client.query(
            TableName=table,
            KeyConditionExpression="pk = :a" + form,
            ExpressionAttributeValues=values,
            ScanIndexForward=forward,
            ConsistentRead=True,
            **({"Limit": limit} if limit else {}),
        )
        expected = sorted((one for one in there if forms[form](one, low, high)), reverse=not forward)[:limit]
        assert [item["sk"]["S"] for item in answer["Items"]] == expected
        assert ("LastEvaluatedKey" in answer) == (limit is not None and len(expected) == limit)


def test_a_message_wakes_a_waiting_receiver(emulator: Emulator) -> None:
    url = emulator.create("test-woken").ingestion_queue_url
    sqs = [emulator.client("sqs"), emulator.client("sqs")]

    def received() -> float:
        [message] = sqs[1].receive_message(QueueUrl=url, WaitTimeSeconds=10)["Messages"]
        at = time.perf_counter()
        sqs[1].delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return at

    waited = []
    with ThreadPoolExecutor(1) as pool:
        for _ in range(8):
            waiting = pool.submit(received)
            time.sleep(0.33)  # by itself it looks again after 0.4
            sent = time.perf_counter()
            sqs[0].send_message(QueueUrl=url, MessageBody="{}")
            waited.append(waiting.result() - sent)
    assert min(waited) < 0.04

"""The contract of `ports.Table`, on every adapter: in memory, DynamoDB by moto, DynamoDB by the emulator, bare and journaled."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import pytest
from memory_banks.adapters.dynamodb import DynamoTable
from memory_banks.marking import due
from memory_banks.ports import Check, ConditionFailed, Delete, Either, Is, Key, Put, Table, TableUnavailable, Update

from tests.doubles.clock import ManualClock
from tests.doubles.memory_table import MemoryTable


def create_table(client: Any, name: str) -> None:
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": attribute, "AttributeType": kind}
            for attribute, kind in [("pk", "S"), ("sk", "S"), ("due_pk", "S"), ("due_at", "N"), ("age_pk", "S"), ("age", "S")]
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": name_,
                "KeySchema": [{"AttributeName": pk, "KeyType": "HASH"}, {"AttributeName": sk, "KeyType": "RANGE"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
            for name_, pk, sk in [("due", "due_pk", "due_at"), ("age", "age_pk", "age")]
        ],
    )


EMULATED = [pytest.param(name, marks=pytest.mark.emulator) for name in ("emulator", "journaled")]


@pytest.fixture(params=["memory", "moto", *EMULATED])
def table(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Table]:
    clock, chance = ManualClock(), random.Random(0)
    if request.param == "memory":
        yield MemoryTable()
    elif request.param == "moto":
        from moto import mock_aws

        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]:
            monkeypatch.setenv(name, "testing")
        with mock_aws():
            client = boto3.client("dynamodb", region_name="eu-central-1")
            create_table(client, "contract")
            yield DynamoTable(client, "contract", clock, chance)
    else:
        emulator = request.getfixturevalue("emulator")
        client = emulator.client("dynamodb")
        name = f"contract-{random.SystemRandom().getrandbits(64):x}"
        create_table(client, name)
        bare = DynamoTable(client, name, clock, chance)
        if request.param == "emulator":
            yield bare
        else:
            from local.journal import Journal, JournaledTable

            with closing(Journal(tmp_path / "table.sqlite", client, name)) as journal:
                yield JournaledTable(bare, journal)
        client.delete_table(TableName=name)


def item(sk: str, **attributes: Any) -> dict[str, Any]:
    return {"pk": "p", "sk": sk, **attributes}


def test_every_type_comes_back_as_it_was(table: Table) -> None:
    values = {
        "text": "ü\u4f60\U0001f600\n\"'\\",
        "empty": "",
        "int": -12345678901234,
        "float": 0.25,
        "yes": True,
        "no": False,
        "none": None,
        "bytes": b"\0\xff",
        "list": ["a", 1, 2.5, {"b": [True]}],
        "map": {"x": {"y": "z"}},
        "names": {"b", "a"},
    }
    table.write(Put(item("a", **values)))
    [found] = table.read([Key("p", "a")])
    assert found == item("a", **values)
    assert type(found["int"]) is int and type(found["yes"]) is bool


def test_read_keeps_order_and_shows_absence(table: Table) -> None:
    for number in range(120):
        table.write(Put(item(f"{number:03}", n=number)))
    keys = [Key("p", f"{number:03}") for number in reversed(range(120))]
    found = table.read([*keys, Key("p", "absent"), keys[0]])
    assert [one and one["n"] for one in found] == [*reversed(range(120)), None, 119]


def test_query_bounds_order_limit_and_pages(table: Table) -> None:
    for letter in "abcdef":
        table.write(Put(item(letter, letter=letter, other=1)))
    table.write(Put({"pk": "q", "sk": "c"}))

    def names(**bounds: Any) -> list[str]:
        return [one["sk"] for one in table.query("p", **bounds).items]

    assert names() == list("abcdef")
    assert names(after="b") == list("cdef")
    assert names(before="c") == ["a", "b"]
    assert names(after="a", before="d") == ["b", "c"]
    assert names(first="b", last="d") == ["b", "c", "d"]
    assert names(after="b", last="d") == ["c", "d"]
    assert names(reverse=True, before="d", after="a") == ["c", "b"]
    assert names(after="e", before="b") == []
    page = table.query("p", limit=2, reverse=True, before="e")
    assert [one["sk"] for one in page.items] == ["d", "c"] and page.after == "c"
    page = table.query("p", limit=2, after="a", before="e")
    assert [one["sk"] for one in page.items] == ["b", "c"] and page.after == "c"
    assert table.query("p", limit=1, after="a", attributes=["letter"]).items == [item("b", letter="b")]
    assert table.query("p", limit=1, attributes=["letter"]).items == [item("a", letter="a")]
    assert table.query("p", limit=2, attributes=[]).items == [item("a"), item("b")]
    assert table.query("absent").items == []
    assert table.count("p") == 6 and table.count("p", after="a", before="e") == 3 and table.count("p", before="c") == 2


def test_a_page_holds_at_most_a_megabyte(table: Table) -> None:
    for number in range(6):
        table.write(Put(item(str(number), body="x" * 300_000)))
    seen: list[str] = []
    page = table.query("p")
    while True:
        seen += [one["sk"] for one in page.items]
        assert len(page.items) <= 4
        if page.after is None:
            break
        page = table.query("p", after=page.after)
    assert seen == list("012345")


def test_conditional_writes(table: Table) -> None:
    fresh = (Is("pk", "missing"),)
    assert table.write(Put(item("a", n=1), fresh)) == item("a", n=1)
    with pytest.raises(ConditionFailed):
        table.write(Put(item("a", n=2), fresh))
    after = table.write(Update(Key("p", "a"), set={"name": "x"}, add={"n": 4, "m": 2}, when=(Is("n", "<", 2),)))
    assert after == item("a", n=5, m=2, name="x")
    with pytest.raises(ConditionFailed):
        table.write(Update(Key("p", "a"), set={"name": "y"}, when=(Is("n", "<", 2),)))
    with pytest.raises(ConditionFailed):
        table.write(Delete(Key("p", "a"), (Is("absent", "=", 1),)))
    either = (Either((Is("absent", "missing"), Is("n", ">", 100))), Is("name", "=", "x"))
    assert table.write(Update(Key("p", "a"), remove=("name", "absent"), when=either)) == item("a", n=5, m=2)
    assert table.write(Delete(Key("p", "a"), (Is("n", ">=", 5), Is("n", "<=", 5), Is("n", "<>", 4)))) == {}
    assert table.read([Key("p", "a")]) == [None]
    assert table.write(Delete(Key("p", "a"))) == {}
    assert table.write(Update(Key("p", "new"), add={"n": 1})) == item("new", n=1)


def test_a_transaction_is_all_or_nothing(table: Table) -> None:
    table.write(Put(item("a", n=1)))
    with pytest.raises(ConditionFailed) as caught:
        table.transact(
            [
                Put(item("b")),
                Update(Key("p", "a"), add={"n": 1}, when=(Is("n", "=", 2),)),
                Check(Key("p", "c"), (Is("pk", "exists"),)),
            ]
        )
    assert caught.value.failed == (1, 2)
    assert table.read([Key("p", "a"), Key("p", "b")]) == [item("a", n=1), None]
    table.transact(
        [
            Put(item("b"), (Is("pk", "missing"),)),
            Update(Key("p", "a"), add={"n": 1}, when=(Is("n", "=", 1),)),
            Check(Key("p", "c"), (Is("pk", "missing"),)),
            Delete(Key("p", "d")),
        ]
    )
    assert table.read([Key("p", "a"), Key("p", "b")]) == [item("a", n=2), item("b")]


def test_a_hundred_actions_fit(table: Table) -> None:
    table.transact([Put(item(f"{number:02}")) for number in range(100)])
    assert table.count("p") == 100


def test_due_is_sparse_and_sorted(table: Table) -> None:
    for name, at in [("a", 30), ("b", 10), ("c", 20)]:
        table.write(Put(item(name, **due("same", at))))
    table.write(Put(item("never")))
    partition = int(str(due("same", 0)["due_pk"]).removeprefix("DUE#"))
    assert [(one.key, one.at) for one in table.due(partition, 20, 10)] == [(Key("p", "b"), 10), (Key("p", "c"), 20)]
    assert [one.key.sk for one in table.due(partition, 100, 2)] == ["b", "c"]
    table.write(Update(Key("p", "b"), remove=("due_pk", "due_at")))
    assert [one.key.sk for one in table.due(partition, 100, 10)] == ["c", "a"]
    assert table.due((partition + 1) % 16, 100, 10) == []


def test_age_lists_the_oldest_first(table: Table) -> None:
    for name, age in [("a", "3"), ("b", "1"), ("c", "2")]:
        table.write(Put(item(name, age_pk="A", age=age)))
    assert [(one.key.sk, one.age) for one in table.aged("A", before="3")] == [("b", "1"), ("c", "2")]
    assert [one.key.sk for one in table.aged("A", limit=1)] == ["b"]
    assert [one.key.sk for one in table.aged("A", after="1")] == ["c", "a"]
    assert [one.key.sk for one in table.aged("A", after="1", before="3")] == ["c"]
    assert table.aged("A", after="2", before="2") == []
    assert [one.key.sk for one in table.aged("A")] == ["b", "c", "a"]
    assert [one.key.sk for one in table.aged("A", limit=2, reverse=True)] == ["a", "c"]
    assert [one.key.sk for one in table.aged("A", before="3", reverse=True)] == ["c", "b"]
    assert [one.key.sk for one in table.aged("A", after="1", before="3", reverse=True)] == ["c"]
    table.write(Delete(Key("p", "b")))
    assert [one.key.sk for one in table.aged("A")] == ["c", "a"]
    assert table.aged("B") == []


def test_an_unreachable_table_says_so() -> None:
    from botocore.config import Config

    client = boto3.client(
        "dynamodb",
        endpoint_url="http://127.0.0.1:9",
        region_name="eu-central-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"max_attempts": 0}),
    )
    table = DynamoTable(client, "contract", ManualClock(), random.Random(0))
    with pytest.raises(TableUnavailable):
        table.read([Key("p", "a")])
    with pytest.raises(TableUnavailable):
        table.transact([Put(item("a"))])


def test_a_transaction_still_under_way_is_in_doubt_not_contended() -> None:
    from botocore.stub import Stubber

    client = boto3.client("dynamodb", region_name="eu-central-1", aws_access_key_id="x", aws_secret_access_key="x")
    table = DynamoTable(client, "contract", ManualClock(), random.Random(0))
    with Stubber(client) as stubber:
        stubber.add_client_error("transact_write_items", "TransactionInProgressException", http_status_code=400)
        with pytest.raises(TableUnavailable):
            table.transact([Put(item("a"))])

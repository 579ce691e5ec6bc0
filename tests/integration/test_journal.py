"""The journal: what the table held is there again after the emulator lost everything."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memory_banks.adapters.dynamodb import DynamoTable
from memory_banks.ports import Check, ConditionFailed, Delete, Is, Key, Put, Table, Update

from local.emulator import Emulator
from local.journal import READ, Journal, JournaledTable
from local.resources import table_definition
from tests.doubles.clock import ManualClock

pytestmark = pytest.mark.emulator


class Tables:
    """Fresh tables in the emulator, each with the journal of one file, as after a restart."""

    def __init__(self, emulator: Emulator, path: Path) -> None:
        self.client = emulator.client("dynamodb")
        self.path = path
        self._journals: list[Journal] = []

    def opened(self, client: Any = None, name: str | None = None) -> tuple[Table, Journal]:
        if name is None:
            name = f"journal-{random.SystemRandom().getrandbits(64):x}"
            self.client.create_table(**table_definition(name))
        journal = Journal(self.path, client or self.client, name)
        self.name = name
        return JournaledTable(DynamoTable(self.client, name, ManualClock(), random.Random(0)), journal), journal

    def after_a_kill(self) -> Table:
        table, journal = self.opened()
        journal.load()
        return table

    def stored(self) -> dict[str, Any]:
        with sqlite3.connect(self.path) as file:
            return {sk: json.loads(item) for sk, item in file.execute("SELECT sk, item FROM items")}


@pytest.fixture
def tables(emulator: Emulator, tmp_path: Path) -> Iterator[Tables]:
    return Tables(emulator, tmp_path / "table.sqlite")


def test_every_type_comes_back_as_it_was(tables: Tables) -> None:
    item = {
        "pk": "p",
        "sk": "ü\u4f60\U0001f600",
        "text": "a\0b\n\"'\\",
        "int": 10**30,
        "float": 0.1,
        "yes": True,
        "none": None,
        "bytes": bytes(range(256)),
        "set": {"a", "b"},
        "list": [1, "1", [b"\xff"], {}],
        "like the journal's own form": {"base64": "YQ=="},
    }
    table, journal = tables.opened()
    table.write(Put(item))
    journal.flush()

    assert tables.after_a_kill().read([Key("p", item["sk"])]) == [item]


def test_what_was_changed_or_removed_is_as_it_was_left(tables: Tables) -> None:
    table, journal = tables.opened()
    for sk in "abc":
        table.write(Put({"pk": "p", "sk": sk, "n": 1}))
    journal.flush()
    table.transact(
        [
            Update(Key("p", "a"), add={"n": 4}),
            Delete(Key("p", "b")),
            Put({"pk": "p", "sk": "d"}),
            Check(Key("p", "c"), when=(Is("pk", "exists"),)),
        ]
    )
    assert journal.flush() == 3

    assert [item["sk"] for item in tables.after_a_kill().query("p").items] == ["a", "c", "d"]
    assert tables.after_a_kill().read([Key("p", "a")]) == [{"pk": "p", "sk": "a", "n": 5}]


def test_the_indexes_are_filled_again(tables: Tables) -> None:
    table, journal = tables.opened()
    table.write(Put({"pk": "p", "sk": "a", "age_pk": "x", "age": "1"}))
    journal.flush()

    assert [aged.key for aged in tables.after_a_kill().aged("x")] == [Key("p", "a")]


def test_a_refused_write_stores_what_is_there(tables: Tables) -> None:
    table, journal = tables.opened()
    table.write(Put({"pk": "p", "sk": "a", "n": 1}))
    with pytest.raises(ConditionFailed):
        table.transact([Update(Key("p", "a"), add={"n": 1}), Check(Key("p", "absent"), when=(Is("pk", "exists"),))])
    journal.flush()

    assert tables.after_a_kill().read([Key("p", "a")]) == [{"pk": "p", "sk": "a", "n": 1}]


class Failing:
    """DynamoDB's client whose batch reads fail after so many."""

    def __init__(self, client: Any, reads: int) -> None:
        self._client = client
        self.reads = reads

    def batch_get_item(self, **request: Any) -> Any:
        if not self.reads:
            raise ConnectionError("killed here")
        self.reads -= 1
        return self._client.batch_get_item(**request)


def test_a_flush_that_dies_half_way_leaves_the_last_cut_and_the_next_stores_all(tables: Tables) -> None:
    failing = Failing(tables.client, reads=1)
    table, journal = tables.opened(client=failing)
    table.write(Put({"pk": "p", "sk": "000", "n": 0}))
    journal.flush()
    for number in range(READ + 1):
        table.write(Put({"pk": "p", "sk": f"{number:03}", "n": 1}))
    failing.reads = 1
    with pytest.raises(ConnectionError):
        journal.flush()
    assert {sk: item["n"] for sk, item in tables.stored().items()} == {"000": {"N": "0"}}

    failing.reads = 2
    assert journal.flush() == READ + 1
    assert len(tables.after_a_kill().query("p").items) == READ + 1


def test_never_stores_half_a_transaction(tables: Tables) -> None:
    table, journal = tables.opened()
    stop = threading.Event()

    def transfer(own: str) -> None:
        while not stop.is_set():
            table.transact([Update(Key("p", f"{own}-left"), add={"n": 1}), Update(Key("q", f"{own}-right"), add={"n": 1})])

    writers = [threading.Thread(target=transfer, args=(own,)) for own in "abcd"]
    for writer in writers:
        writer.start()
    try:
        for _ in range(20):
            journal.flush()
            numbers = {sk: item["n"]["N"] for sk, item in tables.stored().items()}
            assert all(numbers[f"{own}-left"] == numbers[f"{own}-right"] for own in "abcd" if f"{own}-left" in numbers)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert len(numbers) == 8
    assert all(int(number) > 1 for number in numbers.values())


def test_two_processes_never_put_an_older_state_over_a_newer_one(tables: Tables) -> None:
    first, first_journal = tables.opened()
    second, second_journal = tables.opened(name=tables.name)
    first.write(Put({"pk": "p", "sk": "a", "n": 1}))
    second.write(Put({"pk": "p", "sk": "a", "n": 2}))
    second_journal.flush()
    first_journal.flush()

    assert tables.stored()["a"]["n"] == {"N": "2"}


def test_stores_within_a_second_or_so_by_itself_and_for_good_when_closed(tables: Tables) -> None:
    table, journal = tables.opened()
    journal.start()
    table.write(Put({"pk": "p", "sk": "a"}))
    stored = threading.Event()

    def watch() -> None:
        while "a" not in tables.stored():
            pass
        stored.set()

    threading.Thread(target=watch, daemon=True).start()
    assert stored.wait(4)
    table.write(Put({"pk": "p", "sk": "b"}))
    journal.close()

    assert tables.stored().keys() == {"a", "b"}


def test_only_its_owner_can_read_the_file(tables: Tables) -> None:
    tables.opened()

    assert tables.path.stat().st_mode & 0o077 == 0

"""Banks: defaults by type, mode, embedder and version; changes that never mix; what makes a bank due."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_banks import banks, versions
from memory_banks.bank import Bank, key_of
from memory_banks.errors import BadRequest, DatabaseUnavailable, Invalid, NotFound
from memory_banks.ports import Contended, Delete, Update
from memory_banks.requests import CreateBank, ListBanks, UpdateBank

from tests.doubles.clock import ManualClock
from tests.doubles.embedding import HashedEmbedders
from tests.doubles.memory_table import MemoryTable

OLD, NEW = "2026-07-27", "2026-08-03"


class Messages(list[Any]):
    """A queue that keeps what it was sent."""

    def send(self, messages: Any, delay_seconds: int = 0) -> None:
        self.extend(messages)


@pytest.fixture
def ports(clock: ManualClock, chance: random.Random) -> Any:
    return SimpleNamespace(clock=clock, chance=chance, table=MemoryTable(), embedders=HashedEmbedders(), compaction=Messages())


def create(ports: Any, version: str = versions.DEFAULT, account: str = "acme", **settings: Any) -> Bank:
    return banks.create(ports, account, CreateBank.model_validate({"name": "Support"} | settings), version)


def update(ports: Any, bank: Bank, version: str = versions.DEFAULT, **changes: Any) -> Bank:
    wanted = UpdateBank.model_validate(changes)
    return banks.update(ports, "acme", bank.id, wanted, version, deadline=ports.clock.now() + 25_000)


def test_a_new_bank_is_there_as_it_was_answered(ports: Any) -> None:
    bank = create(ports, description="d", compaction_prompt="keep names", max_turns=20, max_size_tokens=4000)
    assert banks.get(ports, "acme", bank.id) == bank
    assert bank.source_connection_id and bank.source_connection_id != bank.id
    assert (bank.version, bank.generation, bank.status) == (1, 1, "empty")
    assert create(ports).secret != bank.secret


def test_another_accounts_bank_is_not_there(ports: Any) -> None:
    bank = create(ports)
    for account, bank_id in [("other", bank.id), ("acme", "nope"), ("acme", ""), ("acme", "x" * 3000), ("acme", "\ud800")]:
        with pytest.raises(NotFound):
            banks.get(ports, account, bank_id)


@pytest.mark.parametrize(
    ("mode", "dimensions", "chunk_size"),
    [("fast_and_cheap", 256, 2000), ("balanced", 512, 1200), ("slow_and_thorough", 1024, 800), ("custom", 1024, 1200)],
)
def test_a_mode_chooses_dimensions_and_chunks(ports: Any, mode: str, dimensions: int, chunk_size: int) -> None:
    bank = create(ports, mode=mode)
    assert (bank.dimensions, bank.chunk_size, bank.embedding_model) == (dimensions, chunk_size, "hashed/words")


@pytest.mark.parametrize("mode", ["fast_and_cheap", "balanced", "slow_and_thorough", "custom"])
def test_with_a_model_of_one_size_every_mode_means_that(ports: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HashedEmbedders, "default", "hashed/small")
    assert create(ports, mode=mode).dimensions == 64


def test_a_custom_bank_chooses_all(ports: Any) -> None:
    bank = create(ports, mode="custom", embedding_model="hashed/words", dimensions=512, chunk_size=500, chunk_overlap=100)
    assert (bank.dimensions, bank.chunk_size, bank.chunk_overlap) == (512, 500, 100)
    assert create(ports, mode="custom", embedding_model="hashed/small").dimensions == 64
    assert create(ports, mode="custom", chunk_size=100).chunk_overlap <= 50


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"embedding_model": "hashed/words"}, "embedding_model"),
        ({"dimensions": 256}, "dimensions"),
        ({"mode": "balanced", "chunk_size": 500}, "chunk_size"),
        ({"chunk_overlap": 0}, "chunk_overlap"),
        ({"mode": "custom", "embedding_model": "hashed/none"}, "embedding_model"),
        ({"mode": "custom", "dimensions": 300}, "dimensions"),
        ({"mode": "custom", "chunk_size": 49}, "chunk_size"),
        ({"mode": "custom", "chunk_size": 20_001}, "chunk_size"),
        ({"mode": "custom", "chunk_size": 100, "chunk_overlap": 51}, "chunk_overlap"),
        ({"type": "general", "strip_quoted_reply_chains": True}, "strip_quoted_reply_chains"),
    ],
)
def test_a_setting_that_can_not_be_is_named_and_nothing_is_made(ports: Any, settings: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        create(ports, **settings)
    assert refused.value.loc == ("body", field)
    assert ports.table.everything() == []


@pytest.mark.parametrize(
    ("version", "settings", "retention"),
    [
        (OLD, {}, 30),
        (OLD, {"type": "general"}, 30),
        (NEW, {}, 90),
        (NEW, {"type": "general"}, None),
        (OLD, {"retention_days": None}, None),
        (NEW, {"retention_days": None}, None),
        (OLD, {"retention_days": 0}, None),
        (NEW, {"retention_days": 7}, 7),
        (OLD, {"max_age_days": 60}, 60),
        (OLD, {"max_age_days": 10}, 30),
        (OLD, {"max_age_days": 60, "retention_days": 5}, 5),
        (OLD, {"max_age_days": 60, "retention_days": None}, None),
        (NEW, {"max_age_days": 0}, 90),
    ],
)
def test_the_retention_of_a_new_bank(ports: Any, version: str, settings: dict[str, Any], retention: int | None) -> None:
    assert create(ports, version, **settings).retention_days == retention


def test_the_age_can_be_set_only_before_it_was_retired_and_always_be_cleared(ports: Any) -> None:
    with pytest.raises(BadRequest, match="retention_days"):
        create(ports, NEW, max_age_days=5)
    bank = create(ports, OLD, max_age_days=5)
    assert bank.max_age_days == 5
    assert banks.shown(bank, OLD)["max_age_days"] == 5
    assert banks.shown(bank, NEW)["max_age_days"] is None
    with pytest.raises(BadRequest):
        update(ports, bank, NEW, max_age_days=9)
    assert update(ports, bank, OLD, max_age_days=9).max_age_days == 9
    assert update(ports, bank, NEW, max_age_days=0).max_age_days is None


@pytest.mark.parametrize(
    ("retention", "age", "after"),
    [(None, 14, 14), (None, None, None), (30, 60, 60), (30, 10, 30), (30, None, None), (7, 60, 7), (365, None, 365)],
)
def test_a_bank_brought_in_takes_its_age_over_once(ports: Any, retention: int | None, age: int | None, after: int | None) -> None:
    assert banks.migrated_retention(retention, age) == after
    wanted = CreateBank(name="b", retention_days=retention, max_age_days=age, brought_in=True)
    made = banks.create(ports, "acme", wanted, NEW)
    assert (made.retention_days, made.max_age_days) == (after, None)


def test_an_update_changes_what_is_given_and_only_that(ports: Any) -> None:
    bank = create(ports, description="d", max_turns=5, max_size_tokens=100, compaction_prompt="p")
    ports.clock.advance(1)
    after = update(ports, bank, name="New", description="", max_turns=0, compaction_prompt=None)
    assert after == replace(
        bank, name="New", description=None, max_turns=None, compaction_prompt=None, version=2, updated_at=ports.clock.now()
    )
    assert banks.get(ports, "acme", bank.id) == after


def test_an_update_that_changes_nothing_writes_nothing(ports: Any) -> None:
    bank = create(ports, max_turns=5)
    writes = ports.table.writes
    assert update(ports, bank) == bank
    assert update(ports, bank, max_turns=5, name="Support") == bank
    assert ports.table.writes == writes


def due(ports: Any) -> list[Any]:
    """What the sweeps would find now."""
    return [one.key for number in range(16) for one in ports.table.due(number, ports.clock.now(), 10)]


@pytest.mark.parametrize("change", [{"retention_days": 3}, {"retention_days": None}])
def test_a_new_retention_makes_the_bank_due_now(ports: Any, change: dict[str, Any]) -> None:
    bank = create(ports)
    assert due(ports) == []
    update(ports, bank, **change)
    assert due(ports) == [key_of("acme", bank.id)]


@pytest.mark.parametrize("change", [{"max_turns": 9}, {"max_size_tokens": 100}])
def test_new_thresholds_have_every_key_looked_at_even_when_the_message_is_lost(ports: Any, change: dict[str, Any]) -> None:
    bank = create(ports)
    update(ports, bank, **change)
    [message] = ports.compaction
    assert (message["bank"], message["version"]) == (bank.id, 2)
    [record] = due(ports)
    assert ports.table.read([record])[0]["version"] == 2


def test_thresholds_taken_away_concern_nobody(ports: Any) -> None:
    bank = create(ports, max_turns=9)
    update(ports, bank, max_turns=0)
    assert (due(ports), ports.compaction) == ([], [])


def test_a_new_name_leaves_due_marks_and_unknown_attributes_alone(ports: Any) -> None:
    bank = create(ports)
    ports.table.write(Update(key_of("acme", bank.id), set={"due_pk": "DUE#3", "due_at": 77, "rebuild": "x"}))
    update(ports, bank, name="New")
    [item] = ports.table.everything()
    assert (item["name"], item["due_at"], item["rebuild"]) == ("New", 77, "x")


class Between:
    """A table on which something happens just before the first transaction."""

    def __init__(self, table: MemoryTable, happening: Callable[[], Any]) -> None:
        self._table = table
        self._happening: Callable[[], Any] | None = happening

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def transact(self, actions: Any) -> Any:
        happening, self._happening = self._happening, None
        if happening:
            happening()
        return self._table.transact(actions)


def test_two_updates_at_once_do_not_mix(ports: Any) -> None:
    bank = create(ports)
    table = ports.table
    inner = SimpleNamespace(**vars(ports))
    ports.table = Between(table, lambda: update(inner, bank, description="theirs", max_turns=3))
    after = update(ports, bank, name="Mine", max_turns=8)
    assert (after.name, after.description, after.max_turns, after.version) == ("Mine", "theirs", 8, 3)


def test_a_bank_deleted_under_an_update_stays_deleted(ports: Any) -> None:
    bank = create(ports)
    table = ports.table
    ports.table = Between(table, lambda: table.write(Delete(key_of("acme", bank.id))))
    with pytest.raises(NotFound):
        update(ports, bank, name="Mine")
    assert table.everything() == []


def test_a_table_that_stays_contended_is_given_up_at_the_deadline(ports: Any) -> None:
    bank = create(ports)

    def contended(actions: Any) -> Any:
        raise Contended

    ports.table = SimpleNamespace(read=ports.table.read, transact=contended)
    start = ports.clock.now()
    with pytest.raises(DatabaseUnavailable):
        update(ports, bank, name="Mine")
    assert ports.clock.now() <= start + 25_000


@given(
    names=st.lists(st.text(min_size=1, max_size=5), max_size=12), limit=st.integers(1, 5), order=st.sampled_from(["asc", "desc"])
)
def test_pages_give_every_bank_once_in_order(names: list[str], limit: int, order: Any) -> None:
    clock = ManualClock()
    ports: Any = SimpleNamespace(clock=clock, chance=random.Random(1), table=MemoryTable(), embedders=HashedEmbedders())
    made = []
    for name in names:
        bank = banks.create(ports, "acme", CreateBank.model_construct(name=name), versions.DEFAULT)
        made.append((bank.name, bank.id))
        clock.advance(1)
    create(ports, account="other")
    seen: list[tuple[str, str]] = []
    page = 1
    while found := banks.list_page(ports, "acme", ListBanks(page=page, limit=limit, sort="name", order=order)).banks:
        assert len(found) <= limit
        seen += [(bank.name, bank.id) for bank in found]
        page += 1
    assert seen == sorted(made, reverse=order == "desc")
    assert banks.list_page(ports, "acme", ListBanks(page=page)).total == len(made)


def test_banks_are_listed_by_type_and_found_by_name(ports: Any) -> None:
    create(ports, name="Müller support")
    ports.clock.advance(1)
    facts = create(ports, name="Facts", type="general", description="about MÜLLER")
    create(ports, account="other", name="Müller")
    assert [bank.id for bank in banks.list_page(ports, "acme", ListBanks(type="general")).banks] == [facts.id]
    assert [bank.name for bank in banks.find(ports, "acme", "müller", 10)] == ["Müller support", "Facts"]
    assert len(banks.find(ports, "acme", "m", 1)) == 1

"""Which version a request means."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from memory_banks import versions
from memory_banks.errors import BadRequest

from tests.doubles.clock import ManualClock
from tests.doubles.memory_table import MemoryTable


@pytest.fixture
def ports(clock: ManualClock, chance: random.Random) -> Any:
    return SimpleNamespace(clock=clock, chance=chance, table=MemoryTable())


def test_the_known_versions_are_those_of_the_contract_in_order() -> None:
    assert list(versions.KNOWN) == sorted(versions.KNOWN)
    assert (len(versions.KNOWN), versions.DEFAULT, versions.LATEST) == (13, "2026-07-01", "2026-10-21")


def test_header_wins_over_pin_and_pin_over_default(ports: Any) -> None:
    assert versions.effective(ports, "acme", None) == "2026-07-01"
    versions.set_pin(ports, "acme", "2026-08-03")
    assert versions.effective(ports, "acme", None) == "2026-08-03"
    assert versions.effective(ports, "acme", "2026-10-21") == "2026-10-21"
    assert versions.effective(ports, "other", None) == "2026-07-01"
    versions.set_pin(ports, "acme", None)
    assert versions.effective(ports, "acme", None) == "2026-07-01"


@pytest.mark.parametrize("wrong", ["", "2026-07-02", "2026-7-1", "latest", "2026-10-21 ", "9999-12-31"])
def test_any_other_version_is_refused(ports: Any, wrong: str) -> None:
    with pytest.raises(BadRequest) as refused:
        versions.effective(ports, "acme", wrong)
    assert refused.value.code == "unknown_version"
    with pytest.raises(BadRequest):
        versions.set_pin(ports, "acme", wrong)
    assert versions.pin(ports, "acme", fresh=True) is None


def test_a_pin_costs_a_read_a_minute_and_none_with_a_header(ports: Any) -> None:
    for _ in range(3):
        versions.effective(ports, "acme", "2026-10-21")
    assert ports.table.reads == 0
    for _ in range(3):
        versions.effective(ports, "acme", None)
    assert ports.table.reads == 1


def test_a_pin_set_by_another_process_is_followed_within_a_minute(ports: Any) -> None:
    assert versions.effective(ports, "acme", None) == "2026-07-01"
    before = versions._pins._tables[ports.table].copy()
    versions.set_pin(ports, "acme", "2026-08-03")
    versions._pins._tables[ports.table] = before
    assert versions.pin(ports, "acme", fresh=True) == "2026-08-03"
    versions._pins._tables[ports.table] = before
    ports.clock.advance(60)
    assert versions.effective(ports, "acme", None) == "2026-08-03"

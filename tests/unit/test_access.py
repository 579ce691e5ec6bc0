"""API keys: stored as a hash, checked, remembered for a minute, revoked."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any

import pytest
from memory_banks import access
from memory_banks.errors import Forbidden, Invalid, NotFound, Unauthorized

from tests.doubles.clock import ManualClock
from tests.doubles.memory_table import MemoryTable


@pytest.fixture
def ports(clock: ManualClock, chance: random.Random) -> Any:
    return SimpleNamespace(clock=clock, chance=chance, table=MemoryTable())


def test_a_key_is_random_and_nowhere_in_the_table(ports: Any) -> None:
    made = [access.create_key(ports, "acme", name="ci")[1] for _ in range(20)]
    assert len(set(made)) == 20
    stored = json.dumps(ports.table.everything(), default=str)
    for secret in made:
        assert secret.startswith("mb_") and len(secret) == 46
        assert secret not in stored and secret[3:] not in stored


@pytest.mark.parametrize("header", ["X-API-Key", "x-api-key", "Authorization", "authorization"])
def test_either_header_in_any_case_names_the_caller(ports: Any, header: str) -> None:
    key, secret = access.create_key(ports, "acme", scopes=("read", "write"))
    value = f"Bearer {secret}" if header.lower() == "authorization" else secret
    caller = access.authenticate(ports, {header: value, "X-Account-Id": "someone-else"})
    assert caller == access.Caller("acme", frozenset({"read", "write"}), key.id, None)


@pytest.mark.parametrize(
    "headers",
    [{}, {"x-api-key": " "}, {"authorization": "Bearer"}, {"authorization": "Basic abc"}, {"x-api-key": "mb_unknown"}],
)
def test_without_a_known_key_there_is_no_caller(ports: Any, headers: dict[str, str]) -> None:
    with pytest.raises(Unauthorized):
        access.authenticate(ports, headers)


def test_a_known_key_is_read_once_a_minute(ports: Any) -> None:
    _, secret = access.create_key(ports, "acme")
    before = ports.table.reads
    for _ in range(5):
        access.authenticate(ports, {"x-api-key": secret})
    assert ports.table.reads == before + 1
    ports.clock.advance(60)
    access.authenticate(ports, {"x-api-key": secret})
    assert ports.table.reads == before + 2


def test_an_unknown_key_is_looked_up_each_time_so_that_a_new_one_works_at_once(ports: Any) -> None:
    with pytest.raises(Unauthorized):
        access.authenticate(ports, {"x-api-key": "mine"})
    access.create_key(ports, "acme", secret="mine")
    assert access.authenticate(ports, {"x-api-key": "mine"}).account == "acme"


def test_a_revoked_key_dies_at_once_here_and_within_a_minute_elsewhere(ports: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    key, secret = access.create_key(ports, "acme")
    access.authenticate(ports, {"x-api-key": secret})
    elsewhere = access._callers._tables[ports.table].copy()
    access.revoke_key(ports, "acme", key.id)
    with pytest.raises(Unauthorized):
        access.authenticate(ports, {"x-api-key": secret})
    # Another process still remembers the caller, for the rest of the minute.
    access._callers._tables[ports.table] = elsewhere
    ports.clock.advance(59.9)
    assert access.authenticate(ports, {"x-api-key": secret}).account == "acme"
    ports.clock.advance(0.1)
    with pytest.raises(Unauthorized):
        access.authenticate(ports, {"x-api-key": secret})
    assert access.list_keys(ports, "acme") == []


def test_an_expired_key_dies_in_its_millisecond_even_when_remembered(ports: Any) -> None:
    _, secret = access.create_key(ports, "acme", expires_at=ports.clock.now() + 1000)
    ports.clock.advance(milliseconds=999)
    access.authenticate(ports, {"x-api-key": secret})
    ports.clock.advance(milliseconds=1)
    with pytest.raises(Unauthorized, match="expired"):
        access.authenticate(ports, {"x-api-key": secret})


def test_keys_of_an_account_are_listed_and_no_others(ports: Any) -> None:
    mine = []
    for number in range(3):
        mine.append(access.create_key(ports, "acme", name=f"k{number}")[0].id)
        ports.clock.advance(1)
    access.create_key(ports, "other")
    assert [key.id for key in access.list_keys(ports, "acme")] == mine
    shown = access.list_keys(ports, "acme")[0].shown()
    assert shown["name"] == "k0" and "sha256" not in shown


def test_another_account_can_not_revoke(ports: Any) -> None:
    key, secret = access.create_key(ports, "acme")
    with pytest.raises(NotFound):
        access.revoke_key(ports, "other", key.id)
    assert access.authenticate(ports, {"x-api-key": secret}).key_id == key.id


def test_revoking_the_older_of_two_keys_with_one_secret_leaves_the_newer(ports: Any) -> None:
    old, _ = access.create_key(ports, "acme", secret="same")
    ports.clock.advance(1)
    new, _ = access.create_key(ports, "acme", secret="same")
    access.revoke_key(ports, "acme", old.id)
    assert access.authenticate(ports, {"x-api-key": "same"}).key_id == new.id


@pytest.mark.parametrize(
    ("held", "asked", "may"),
    [
        ({"read"}, "read", True),
        ({"read"}, "write", False),
        ({"write"}, "read", False),
        ({"read", "write"}, "admin", False),
        ({"admin"}, "read", True),
        ({"admin"}, "write", True),
        ({"admin"}, "admin", True),
    ],
)
def test_scopes(held: set[str], asked: Any, may: bool) -> None:
    caller = access.Caller("acme", frozenset(held), "id")
    if may:
        caller.require(asked)
    else:
        with pytest.raises(Forbidden, match=asked):
            caller.require(asked)


@pytest.mark.parametrize(
    ("account", "more"),
    [("", {}), ("a/b", {}), ("a" * 65, {}), ("acme", {"scopes": ()}), ("acme", {"scopes": ("root",)}), ("acme", {"secret": " "})],
)
def test_a_key_needs_an_account_and_known_scopes(ports: Any, account: str, more: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        access.create_key(ports, account, **more)
    assert ports.table.everything() == []

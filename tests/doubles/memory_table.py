"""`ports.Table` in memory: what DynamoDB promises, without its waits. The contract suite binds it to the real adapter."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from memory_banks.marking import due_partition
from memory_banks.ports import (
    Action,
    Aged,
    Check,
    Condition,
    ConditionFailed,
    Delete,
    Due,
    Either,
    Is,
    Item,
    Key,
    Page,
    Put,
    Update,
)

PAGE_BYTES = 1_000_000


class MemoryTable:
    """Items under (pk, sk). Thread safe: each call is atomic. `reads` and `writes` count the calls DynamoDB would charge."""

    def __init__(self) -> None:
        self._items: dict[str, dict[str, Item]] = {}
        self._order: dict[str, list[str]] = {}
        self._due: dict[Key, tuple[str, int]] = {}
        self._age: dict[str, list[tuple[str, Key]]] = {}
        self._lock = threading.RLock()
        self.reads = 0
        self.writes = 0

    def read(self, keys: Sequence[Key]) -> list[Item | None]:
        with self._lock:
            self.reads += -(-len(set(keys)) // 100)
            return [_copy(self._items.get(key.pk, {}).get(key.sk)) for key in keys]

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
        with self._lock:
            self.reads += 1
            names = self._between(pk, after, before, first, last)
            if reverse:
                names.reverse()
            found: list[Item] = []
            size = 0
            for name in names:
                if (limit is not None and len(found) == limit) or size > PAGE_BYTES:
                    return Page(found, found[-1]["sk"])
                item = _copy(self._items[pk][name])
                size += _size(item)
                if attributes is not None:
                    item = {key: value for key, value in item.items() if key in {"pk", "sk", *attributes}}
                found.append(item)
            return Page(found, None)

    def _between(self, pk: str, after: str | None, before: str | None, first: str | None, last: str | None) -> list[str]:
        order = self._order.get(pk, [])
        start = bisect_right(order, after) if after is not None else bisect_left(order, first) if first is not None else 0
        end = bisect_left(order, before) if before is not None else bisect_right(order, last) if last is not None else len(order)
        return order[start:end]

    def count(self, pk: str, *, after: str | None = None, before: str | None = None) -> int:
        with self._lock:
            self.reads += 1
            return len(self._between(pk, after, before, None, None))

    def write(self, action: Put | Update | Delete) -> Item:
        with self._lock:
            self.writes += 1
            if not self._holds(action):
                raise ConditionFailed
            return _copy(self._apply(action))

    def transact(self, actions: Sequence[Action]) -> None:
        keys = [_key(action) for action in actions]
        assert 1 <= len(actions) <= 100, "a transaction takes 1 to 100 actions"
        assert len(set(keys)) == len(keys), "a transaction names an item once"
        with self._lock:
            self.writes += 1
            failed = tuple(position for position, action in enumerate(actions) if not self._holds(action))
            if failed:
                raise ConditionFailed(failed)
            for action in actions:
                if not isinstance(action, Check):
                    self._apply(action)

    def _holds(self, action: Action) -> bool:
        key = _key(action)
        return _met(action.when, self._items.get(key.pk, {}).get(key.sk) or {})

    def _apply(self, action: Put | Update | Delete) -> Item:
        key = _key(action)
        match action:
            case Put(item):
                after: Item | None = _copy(item)
            case Update(_, changes, additions, removals):
                after = self._items.get(key.pk, {}).get(key.sk) or {"pk": key.pk, "sk": key.sk}
                after = dict(after) | _copy(dict(changes))
                for name, number in additions.items():
                    after[name] = after.get(name, 0) + number
                for name in removals:
                    after.pop(name, None)
            case Delete():
                after = None
        self._store(key, after)
        return after or {}

    def _store(self, key: Key, item: Item | None) -> None:
        before = self._items.get(key.pk, {}).get(key.sk)
        if before and "age_pk" in before:
            self._age[before["age_pk"]].remove((before["age"], key))
        self._due.pop(key, None)
        if item is None:
            if before:
                del self._items[key.pk][key.sk]
                self._order[key.pk].remove(key.sk)
            return
        if before is None:
            insort(self._order.setdefault(key.pk, []), key.sk)
        self._items.setdefault(key.pk, {})[key.sk] = item
        if "due_pk" in item:
            self._due[key] = (item["due_pk"], item["due_at"])
        if "age_pk" in item:
            insort(self._age.setdefault(item["age_pk"], []), (item["age"], key))

    def due(self, partition: int, until: int, limit: int) -> list[Due]:
        with self._lock:
            self.reads += 1
            name = due_partition(partition)
            found = sorted((at, key) for key, (pk, at) in self._due.items() if pk == name and at <= until)
            return [Due(key, at) for at, key in found[:limit]]

    def aged(
        self, age_pk: str, *, after: str | None = None, before: str | None = None, limit: int = 100, reverse: bool = False
    ) -> list[Aged]:
        with self._lock:
            self.reads += 1
            ages = self._age.get(age_pk, [])
            found = [(age, key) for age, key in ages if (before is None or age < before) and (after is None or age > after)]
            return [Aged(key, age) for age, key in (found[::-1] if reverse else found)[:limit]]

    def fill(self, items: Iterable[Item]) -> None:
        """Put many items at once, uncounted, for tests of large tables. They are not copied."""
        with self._lock:
            for item in items:
                self._store(Key(item["pk"], item["sk"]), item)

    def everything(self) -> list[Item]:
        """All items, for checks in tests."""
        with self._lock:
            return [_copy(item) for partition in self._items.values() for item in partition.values()]


class LaggingTable(MemoryTable):
    """A table whose two indexes can stay behind, as DynamoDB's do: they show what they knew when `lag` began."""

    def __init__(self) -> None:
        super().__init__()
        self._known: tuple[dict[Key, tuple[str, int]], dict[str, list[tuple[str, Key]]]] | None = None

    def lag(self, behind: bool) -> None:
        """From now on the indexes stay behind, or have caught up."""
        self._known = (dict(self._due), {pk: list(ages) for pk, ages in self._age.items()}) if behind else None

    def due(self, partition: int, until: int, limit: int) -> list[Due]:
        with self._lock, self._behind():
            return super().due(partition, until, limit)

    def aged(
        self, age_pk: str, *, after: str | None = None, before: str | None = None, limit: int = 100, reverse: bool = False
    ) -> list[Aged]:
        with self._lock, self._behind():
            return super().aged(age_pk, after=after, before=before, limit=limit, reverse=reverse)

    @contextmanager
    def _behind(self) -> Iterator[None]:
        now = self._due, self._age
        if self._known:
            self._due, self._age = self._known
        try:
            yield
        finally:
            self._due, self._age = now


def _copy(value: Any) -> Any:
    """A deep copy of what an item can hold; many times faster than `copy.deepcopy`."""
    if isinstance(value, dict):
        return {name: _copy(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(inner) for inner in value]
    return set(value) if isinstance(value, set) else value


def _size(value: Any) -> int:
    """About how many bytes a value takes."""
    if isinstance(value, dict):
        return sum(len(name) + _size(inner) for name, inner in value.items())
    if isinstance(value, list | set):
        return sum(map(_size, value))
    return len(value.encode()) if isinstance(value, str) else len(value) if isinstance(value, bytes) else 8


def _key(action: Action) -> Key:
    return Key(action.item["pk"], action.item["sk"]) if isinstance(action, Put) else action.key


def _met(when: Condition, item: Item) -> bool:
    return all(any(_true(one, item) for one in test.tests) if isinstance(test, Either) else _true(test, item) for test in when)


def _true(test: Is, item: Item) -> bool:
    present = test.attribute in item
    if test.operator in {"exists", "missing"}:
        return present == (test.operator == "exists")
    if not present:
        return test.operator == "<>"
    value: Any = item[test.attribute]
    if test.operator == "=":
        return bool(value == test.value) and type(value) is type(test.value)
    if test.operator == "<>":
        return bool(value != test.value)
    if isinstance(value, str) != isinstance(test.value, str):
        return False
    return bool(
        {
            "<": value < test.value,
            "<=": value <= test.value,
            ">": value > test.value,
            ">=": value >= test.value,
        }[test.operator]
    )

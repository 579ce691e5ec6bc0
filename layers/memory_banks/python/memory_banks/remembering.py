"""What a process may use again for a while instead of reading it anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from .ports import Table

Value = TypeVar("Value")

_MOST = 10_000
"""Names remembered per table; beyond, all are forgotten, which only costs reads."""


@dataclass(frozen=True, slots=True)
class Found(Generic[Value]):
    """A remembered value (which may be None) and until when it may be used, ms."""

    value: Value
    until: int


class Remembered(Generic[Value]):
    """Values by table and name, each for a limited time. Knows nothing of another process."""

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds
        self._tables: WeakKeyDictionary[Table, dict[str, Found[Value]]] = WeakKeyDictionary()

    def get(self, table: Table, name: str, now: int) -> Found[Value] | None:
        """What was put less than the limit ago. A clock that went back forgets."""
        found = self._tables.get(table, {}).get(name)
        if found is None or not found.until - self._milliseconds <= now < found.until:
            return None
        return found

    def put(self, table: Table, name: str, value: Value, now: int) -> Found[Value]:
        """Remember from now on."""
        values = self._tables.setdefault(table, {})
        if len(values) >= _MOST:
            values.clear()
        values[name] = Found(value, now + self._milliseconds)
        return values[name]

    def forget(self, table: Table, name: str) -> None:
        """Forget at once."""
        self._tables.get(table, {}).pop(name, None)

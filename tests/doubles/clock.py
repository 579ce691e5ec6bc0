"""A clock that only a test moves."""

from __future__ import annotations

import threading

START = 1_790_000_000_000
"""When a manual clock starts: September 2026, ms."""


class ManualClock:
    """Time that stands still until `advance` or `sleep` moves it; safe to share by threads."""

    def __init__(self, now: int = START) -> None:
        self._now = now
        self._lock = threading.Lock()
        self.slept: list[float] = []
        """Every `sleep` so far, seconds."""

    def now(self) -> int:
        """Milliseconds since the Unix epoch."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Move by so many seconds, at once."""
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float = 0, *, milliseconds: int = 0, days: int = 0) -> int:
        """Move forward (or back, with negative values) and give the new time."""
        with self._lock:
            self._now += round(seconds * 1000) + milliseconds + days * 86_400_000
            return self._now

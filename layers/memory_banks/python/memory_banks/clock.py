"""The real clock; tests inject their own."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SystemClock:
    """The host's clock."""

    def now(self) -> int:
        """Milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Block the calling thread."""
        time.sleep(seconds)


def iso(milliseconds: int) -> str:
    """ISO 8601 in UTC with milliseconds: `2026-11-30T12:00:00.000Z`."""
    return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

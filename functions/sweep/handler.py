"""The `sweep` function: called by the two EventBridge schedules with `{"sweep": "compaction"}` or `{"sweep": "retention"}`."""

from __future__ import annotations

from typing import Any

from memory_banks import bootstrap, sweeping

MARGIN_MS = 5_000


def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """Take up what is due; answers what it found. Raises `ValueError` for another event."""
    schedule = event.get("sweep")
    if schedule not in ("compaction", "retention"):
        raise ValueError('the event must be {"sweep": "compaction"} or {"sweep": "retention"}')
    ports = bootstrap.ports()
    deadline = ports.clock.now() + context.get_remaining_time_in_millis() - MARGIN_MS
    return sweeping.sweep(ports, schedule, deadline=deadline)._asdict()

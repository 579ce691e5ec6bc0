"""Dated API versions: which are known, which one a request means, and what changes with them.

A gate is the version from which on something holds; ISO dates compare as text, so `version >= ENVELOPES` reads as it sounds.
"""

from __future__ import annotations

from typing import Any

from .errors import BadRequest
from .ports import Key, Ports, Update
from .remembering import Remembered

KNOWN = (
    "2026-07-01",
    "2026-07-27",
    "2026-08-03",
    "2026-08-21",
    "2026-09-28",
    "2026-09-30",
    "2026-10-03",
    "2026-10-05",
    "2026-10-13",
    "2026-10-16",
    "2026-10-18",
    "2026-10-19",
    "2026-10-21",
)
DEFAULT = KNOWN[0]
LATEST = KNOWN[-1]

ENVELOPES = "2026-07-27"
"""Lists come as `{data, pagination}`."""
STRICT_QUERIES = "2026-07-27"
"""Query parameters that a route does not declare are refused."""
AGE_RETIRED = "2026-08-03"
"""`max_age_days` can no longer be set and reads as null; an omitted `retention_days` goes by the bank's type."""

HEADER = "Seclai-Version"

_pins: Remembered[str | None] = Remembered(60_000)


def known(version: str) -> str:
    """The version, or `BadRequest` when it is none."""
    if version not in KNOWN:
        raise BadRequest(
            f"Unknown version {version!r}; known are {', '.join(KNOWN)}.",
            code="unknown_version",
        )
    return version


def effective(ports: Ports, account: str, header: str | None) -> str:
    """The version a request means: its header, else the account's pin, else the default. `BadRequest` for an unknown one."""
    if header is not None:
        return known(header)
    return pin(ports, account) or DEFAULT


def pin(ports: Ports, account: str, *, fresh: bool = False) -> str | None:
    """The account's pinned version. A process reads it at most once a minute, unless `fresh`."""
    now = ports.clock.now()
    found = None if fresh else _pins.get(ports.table, account, now)
    if found is None:
        item = ports.table.read([_key(account)])[0] or {}
        pinned = item.get("pinned_version")
        found = _pins.put(ports.table, account, pinned if pinned in KNOWN else None, now)
    return found.value


def set_pin(ports: Ports, account: str, version: str | None) -> None:
    """Pin the account to a version, or to none. Other processes follow within a minute. One idempotent write."""
    action = (
        Update(_key(account), remove=("pinned_version",))
        if version is None
        else Update(_key(account), set={"pinned_version": known(version)})
    )
    ports.table.write(action)
    _pins.put(ports.table, account, version, ports.clock.now())


def state(pinned: str | None, effective_version: str) -> dict[str, Any]:
    """What `/version` answers."""
    return {
        "pinned_version": pinned,
        "effective_version": effective_version,
        "default_version": DEFAULT,
        "latest_version": LATEST,
        "known_versions": list(KNOWN),
    }


def _key(account: str) -> Key:
    return Key(f"ACCOUNT#{account}", "ACCOUNT")

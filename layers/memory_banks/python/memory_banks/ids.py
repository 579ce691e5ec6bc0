"""Identifiers: ULIDs that grow within a partition, and entry ids that carry their partition.

A ULID is 48 bits of milliseconds and 80 random bits in 26 characters of Crockford's base 32 (https://github.com/ulid/spec):
its text order is its number order. An internal entry id is the ULID followed by its partition's 26 characters, so an id
alone is enough for a strong read.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from .ports import Chance

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ULID_LENGTH = 26
_VALUES = {character: value for value, character in enumerate(ALPHABET)}
_INTERNAL = re.compile(f"[0-7][{ALPHABET}]{{25}}[{ALPHABET}]{{26}}S?")
CALLER_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")

LOWEST = "0" * ULID_LENGTH
"""Below every ULID: the watermark of a partition that was never compacted."""


def encode(number: int) -> str:
    """A 128-bit number as 26 characters."""
    return "".join(ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def decode(text: str) -> int:
    """The number of 26 characters."""
    number = 0
    for character in text:
        number = number << 5 | _VALUES[character]
    return number


def ulids(now: int, above: str, count: int, chance: Chance) -> list[str]:
    """`count` growing ULIDs for the time `now` (ms), all strictly above the ULID `above`.

    When the clock is behind `above`, they take the millisecond after it, so order never depends on a host's clock.
    """
    milliseconds = max(now, milliseconds_of(above) + 1) if above >= at(now) else now
    # The top random bit stays clear, so that adding `count` never overflows into the next millisecond.
    number = milliseconds << 80 | chance.getrandbits(79)
    return [encode(number + i) for i in range(count)]


def at(milliseconds: int) -> str:
    """The lowest ULID of a millisecond."""
    return encode(milliseconds << 80)


def milliseconds_of(ulid: str) -> int:
    """The time a ULID carries, ms."""
    return decode(ulid[:10])


def partition_of(bank: str, key: str) -> str:
    """The 26 characters that stand for a key inside a bank: 128 bits of SHA-256 over both, in Crockford's base 32."""
    digest = hashlib.sha256(f"{bank}\0{key}".encode()).digest()
    return encode(int.from_bytes(digest[:16], "big"))


def fresh_partition(chance: Chance) -> str:
    """The 26 characters of a partition that no key's hash leads to."""
    return encode(chance.getrandbits(128))


class EntryId(NamedTuple):
    """The parts of an internal id. A summary's id ends in `S` and names the last ULID it replaces."""

    ulid: str
    partition: str
    summary: bool

    def __str__(self) -> str:
        return self.ulid + self.partition + ("S" if self.summary else "")

    @property
    def sort(self) -> str:
        """The sort position inside the partition: a summary comes right after the last entry it replaces."""
        return self.ulid + ("S" if self.summary else "")


def internal(partition: str, sort: str) -> str:
    """The internal id of what is at a sort position of a partition."""
    return sort[:ULID_LENGTH] + partition + sort[ULID_LENGTH:]


def parse(text: str) -> EntryId | None:
    """The parts of an internal id, or None when the text is not one."""
    if not _INTERNAL.fullmatch(text):
        return None
    return EntryId(text[:26], text[26:52], len(text) == 53)

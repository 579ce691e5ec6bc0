"""Homes: which partition the entries of a key are in.

The home of a key is the head at the hash of the key. A key that was never renamed lives there. A rename moves no entry: it
names another key on the head of their partition, and on both keys' homes, as `lives`, the partition where each now lives.
So every id, and all that names a partition, stays as it is, and only keys that were renamed cost a second read.

A home may thus be the head of another key's partition. Whose entries a partition holds is the head's `key`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import ids, partitions
from .bank import Bank
from .ports import Contended, Item, Key, Table

TRIES = 10


def of(bank: Bank, key: str) -> str:
    """The partition whose head is the key's home."""
    return ids.partition_of(bank.id, key)


def home_key(bank: Bank, key: str) -> Key:
    """Where the home of a key is."""
    return partitions.head_key(bank, of(bank, key))


def lives(bank: Bank, key: str, home: Item | None) -> str:
    """The partition where a key lives, as its home says; one that was never written to would live at its home."""
    return str(home["lives"]) if home is not None and "lives" in home else of(bank, key)


def find(table: Table, bank: Bank, key: str) -> tuple[str, Item | None]:
    """The partition where a key lives, and the item of its head, if there is one. One strong read, or two when it was renamed."""
    for _ in range(TRIES):
        [home] = table.read([home_key(bank, key)])
        partition = lives(bank, key, home)
        if partition == of(bank, key):
            return partition, home
        [head] = table.read([partitions.head_key(bank, partition)])
        if head is None or head["key"] == key:
            return partition, head
        # It was renamed between the reads.
    raise Contended("the key is being renamed again and again")


def guess(bank: Bank, keys: Sequence[str]) -> dict[str, str]:
    """By key, the partition where it lives unless it was renamed; what is read there tells (`corrected`)."""
    return {key: of(bank, key) for key in keys}


def corrected(bank: Bank, places: Mapping[str, str], read: Mapping[Key, Item | None]) -> dict[str, str]:
    """The places of these keys by their homes, which must have been read."""
    return {key: lives(bank, key, read.get(home_key(bank, key))) for key in places}

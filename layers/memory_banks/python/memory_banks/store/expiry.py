"""Expired documents: invisible from the moment they expire, and removed for good by the sweep."""

from __future__ import annotations

from ..errors import DatabaseUnavailable
from ..ports import Key, Ports
from . import namespaces, writing
from .writing import Write


def take_up(ports: Ports, key: Key, *, deadline: int) -> bool:
    """Remove the document at this key if it has expired; one that was read or written meanwhile stays."""
    account = key.pk.removeprefix("D#")
    namespace, item_key = namespaces.split(key.sk)
    try:
        writing.write(ports, account, None, [Write(namespace, item_key, None, if_expired=True)], deadline=deadline)
    except DatabaseUnavailable:
        return False
    return True

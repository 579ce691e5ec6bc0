"""Where distilled documents are kept: the bank's template, filled with a user and a memory type.

A label of the store has no dot and no NUL, so both are written as in addresses, and the percent sign itself is, too: `bob@x.org`
becomes `bob@x%2Eorg`. Nothing else is changed, two users never get one label, and `urllib.parse.unquote` gives the user back.
"""

from __future__ import annotations

from ..capture.settings import CaptureSettings, MemoryType
from ..errors import Invalid
from ..ports import ModelError
from ..store import namespaces
from ..store.namespaces import Namespace

_ESCAPED = str.maketrans({"%": "%25", ".": "%2E", "\0": "%00"})


def escaped(name: str) -> str:
    """A user id, or a memory type's name, as it can stand in a label."""
    return name.translate(_ESCAPED)


def namespace_of(settings: CaptureSettings, memory_type: MemoryType, user_id: str) -> Namespace:
    """The namespace of a user's documents of a type. Raises `ModelError` where the user id can't be in one."""
    values = {"user_id": escaped(user_id), "schema": escaped(memory_type.name)}
    labels = [label.format(**values) for label in settings.namespace]
    if labels and labels[0] == namespaces.RESERVED_ROOT:
        labels[0] = f"%{ord(labels[0][0]):02X}{labels[0][1:]}"
    try:
        return namespaces.checked(labels, ())
    except Invalid as error:
        raise ModelError(f"The user id {user_id[:50]!r} can't be part of a namespace: {error.message}.") from error


def key_of(memory_type: MemoryType) -> str:
    """The item key of the one document of a `patch` type."""
    return memory_type.name

"""Namespaces: the labels that lead to a document, from the root down, as in `("users", "42", "notes")`.

In the table a label ends with NUL, which no label may contain: what begins with the encoded prefix `users␀` is what is under
`("users",)`, whole labels only, and texts sort as the tuples do. After the last label another NUL begins the item key, so a
namespace's own documents come right before those of the namespaces below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from ..errors import BadRequest, Invalid

Namespace = tuple[str, ...]

RESERVED_ROOT = "langgraph"
"""The one root label that callers may not write to."""

LABELS = 32
"""The deepest namespace. A document has an ordered row for each prefix, and one transaction writes them all."""
NAMESPACE_BYTES = 512
"""Of all labels in UTF-8, each counted with its end."""
KEY_BYTES = 500

WILDCARD = "*"
"""In a condition on namespaces: exactly one label, whichever. Elsewhere it is a label like any other."""

END = "\0"
_AFTER_END = "\x01"


class Condition(NamedTuple):
    """What a listed namespace must begin or end with; `*` stands for one label."""

    kind: Literal["prefix", "suffix"]
    labels: Namespace

    def met(self, namespace: Namespace) -> bool:
        """Whether a namespace has these labels at that end."""
        count = len(self.labels)
        if len(namespace) < count:
            return False
        there = namespace[:count] if self.kind == "prefix" else namespace[len(namespace) - count :]
        return all(wanted in (WILDCARD, label) for wanted, label in zip(self.labels, there, strict=True))

    @property
    def fixed(self) -> Namespace:
        """The labels every namespace that meets it begins with."""
        return () if self.kind == "suffix" else _literal(self.labels)

    def beyond(self, namespace: Namespace) -> str:
        """Past a namespace that does not meet it: no sort key before this one is of a namespace that does."""
        if self.kind == "suffix":
            return past_documents(namespace)
        for position, wanted in enumerate(self.labels):
            there = namespace[:position]
            if position == len(namespace) or (wanted != WILDCARD and namespace[position] < wanted):
                return max(past_documents(there), encoded(there + _literal(self.labels[position:])))
            if wanted not in (WILDCARD, namespace[position]):
                return past_everything(namespace[: max(position, 1)])
        return past_documents(namespace)


def _literal(labels: Namespace) -> Namespace:
    """Those before the first wildcard."""
    return labels[: labels.index(WILDCARD)] if WILDCARD in labels else labels


class Bounds(NamedTuple):
    """Sort keys of the table, `last` being one that no document has; None leaves an end open."""

    first: str | None
    last: str | None


def checked(labels: Sequence[Any], loc: tuple[str | int, ...]) -> Namespace:
    """The namespace, or prefix, of these labels. Raises `Invalid` at `loc` for a label that can't be one."""
    if isinstance(labels, str | bytes):
        raise Invalid(loc, "must be a list of labels, not a text", "list_type")
    for position, label in enumerate(labels):
        if flaw := label_flaw(label):
            raise Invalid((*loc, position), flaw, "namespace_label")
    namespace = tuple(labels)
    if len(namespace) > LABELS:
        raise Invalid(loc, f"at most {LABELS} labels are allowed, these are {len(namespace)}", "too_long")
    size = len(encoded(namespace).encode())
    if size > NAMESPACE_BYTES:
        raise Invalid(loc, f"at most {NAMESPACE_BYTES} bytes are allowed with the ends of labels, these are {size}", "too_long")
    return namespace


def label_flaw(label: Any) -> str | None:
    """What keeps something from being a label, or None when nothing does."""
    if not isinstance(label, str):
        return f"a label must be a text, not {type(label).__name__}"
    if not label:
        return "a label must not be empty"
    if "." in label:
        return "a label must not contain a period"
    if END in label:
        return "a label must not contain NUL (U+0000)"
    try:
        label.encode()
    except UnicodeEncodeError:
        return "a label must be valid Unicode"
    return None


def writable(namespace: Namespace) -> Namespace:
    """The namespace, if callers may write to it. Raises `BadRequest` for the empty one and for the reserved root."""
    if not namespace:
        raise BadRequest("namespace: must not be empty", code="invalid_namespace")
    if namespace[0] == RESERVED_ROOT:
        raise BadRequest(f"namespace: the root label {RESERVED_ROOT!r} is reserved", code="invalid_namespace")
    return namespace


def checked_key(key: Any, loc: tuple[str | int, ...]) -> str:
    """The item key. Raises `Invalid` at `loc`."""
    if not isinstance(key, str):
        raise Invalid(loc, "must be a text", "string_type")
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise Invalid(loc, "must be valid Unicode", "invalid_text") from None
    if size > KEY_BYTES:
        raise Invalid(loc, f"at most {KEY_BYTES} bytes of UTF-8 are allowed, these are {size}", "too_long")
    return key


def encoded(namespace: Namespace) -> str:
    """What the sort keys of everything under a namespace begin with; empty for the root."""
    return "".join(label + END for label in namespace)


def place(namespace: Namespace, key: str) -> str:
    """The sort key of a document."""
    return encoded(namespace) + END + key


def split(place: str) -> tuple[Namespace, str]:
    """The namespace and the item key of a document's sort key."""
    labels, _, key = place.partition(END + END)
    return tuple(labels.split(END)), key


def under(prefix: Namespace) -> Bounds:
    """Everything at and below a prefix."""
    start = encoded(prefix)
    return Bounds(start, start[:-1] + _AFTER_END) if start else Bounds(None, None)


def past_documents(namespace: Namespace) -> str:
    """The first sort key after a namespace's own documents: that of the first namespace below it."""
    return encoded(namespace) + _AFTER_END


def past_everything(namespace: Namespace) -> str:
    """The first sort key after all that is under a namespace."""
    return encoded(namespace)[:-1] + _AFTER_END


def prefixes(namespace: Namespace) -> list[Namespace]:
    """Every prefix, from the root to the namespace itself."""
    return [namespace[:count] for count in range(len(namespace) + 1)]


def begins_with(namespace: Namespace, prefix: Namespace) -> bool:
    """Whether a namespace is at or below a prefix."""
    return namespace[: len(prefix)] == prefix

"""Metadata as keyword terms, so that any number of unknown paths never grows the mapping.

A value at a path becomes the term `path NUL kind value`: `s` text, `b` a boolean, `e` a number as it is (for equality),
`n` a number as sixteen hex digits that sort like the number (for ranges). One path's values of one kind lie next to each
other in the order of terms, so a range is a range of terms. NUL can't be in metadata: the API refuses it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from ...metadata import Scalar, leaves
from ...ports import MetadataTest

Clause = dict[str, Any]

TERMS = "metadata"
PATHS = "metadata_paths"
NOTHING: Clause = {"match_none": {}}


def indexed(metadata: Mapping[str, Any]) -> dict[str, list[str]]:
    """The two fields of a document: its terms, and the paths that hold a value."""
    terms: set[str] = set()
    paths: set[str] = set()
    for path, value in leaves(metadata):
        paths.add(path)
        terms.update(_terms(path, value))
    return {TERMS: sorted(terms), PATHS: sorted(paths)}


def clause(test: MetadataTest) -> Clause:
    """The query that holds for the documents whose metadata passes the test (see `metadata.holds`)."""
    path, value = test.path, test.value
    if test.operator == "exists":
        # "/" follows "." in the order of terms, so this is every path below.
        below = {"range": {PATHS: {"gte": f"{path}.", "lt": f"{path}/"}}}
        there = {"bool": {"should": [{"term": {PATHS: path}}, below]}}
        return there if value else {"bool": {"must_not": there}}
    if test.operator in ("eq", "in"):
        wanted = [value] if test.operator == "eq" else list(value)
        return {"terms": {TERMS: [_term(path, one) for one in wanted]}}
    if isinstance(value, str):
        kind, bound = "s", value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        kind, bound = "n", _sortable(value)
    else:
        return NOTHING
    start = f"{path}\0{kind}"
    limits = {test.operator: start + bound}
    if test.operator in ("gt", "gte"):
        limits["lt"] = f"{path}\0{chr(ord(kind) + 1)}"
    else:
        limits["gte"] = start
    return {"range": {TERMS: limits}}


def _terms(path: str, value: Scalar) -> Iterator[str]:
    yield _term(path, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield f"{path}\0n{_sortable(value)}"


def _term(path: str, value: Any) -> str:
    """The term that stands for a value being there. Numbers that are equal have one term: 1 and 1.0."""
    if isinstance(value, bool):
        return f"{path}\0b{value}"
    if isinstance(value, str):
        return f"{path}\0s{value}"
    whole = isinstance(value, int) or value.is_integer()
    return f"{path}\0e{int(value) if whole else value!r}"


def _sortable(number: float) -> str:
    """Hex digits in the order of the numbers. Integers beyond 2⁵³ share those of their nearest float."""
    try:
        number = float(number)
    except OverflowError:
        number = float("inf") if number > 0 else float("-inf")
    (bits,) = struct.unpack(">Q", struct.pack(">d", number + 0.0))  # + 0.0 makes -0.0 zero
    # IEEE 754 sorts as an integer once negatives are flipped and positives raised above them.
    return f"{bits ^ 0xFFFFFFFFFFFFFFFF if bits >> 63 else bits | 1 << 63:016x}"

"""Between the port's documents and OpenSearch's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ...ids import ULID_LENGTH
from ...ports import Form, Hit, IndexDocument, Indexed, Member
from . import terms
from .mapping import text_field, vector_field

Score = Callable[[float], float]


def body(document: IndexDocument, dimensions: int) -> dict[str, Any]:
    """The fields to index. Raises `ValueError` for a vector that no engine can rank."""
    return {
        "bank": document.bank,
        "generation": document.generation,
        "partition": document.partition,
        "place": place(document.entry),
        "entry": document.entry,
        "form": document.form,
        "kind": document.kind,
        "members": [member.entry for member in document.members],
        "versions": [member.version for member in document.members],
        "previous": document.previous,
        "start": document.start,
        "end": document.end,
        "speaker": document.speaker,
        "tags": list(document.tags),
        **terms.indexed(document.metadata),
        "occurred_at": document.occurred_at,
        "created_at": document.created_at,
        "tokens": document.tokens,
        text_field(document.form): document.text,
        vector_field(document.form): _unit(document.vector, dimensions),
    }


def stored_id(bank: str, id: str) -> str:
    """The `_id`: with the bank in it, so that no request about one bank can name a document of another."""
    return f"{bank}:{id}"


def place(entry: str) -> str:
    """The partition, then the sort position in it: a summary comes right after the last entry it replaces."""
    return entry[ULID_LENGTH : 2 * ULID_LENGTH] + entry[:ULID_LENGTH] + entry[2 * ULID_LENGTH :]


def hit(found: Mapping[str, Any], score: Score) -> Hit:
    """A search's hit."""
    source = found["_source"]
    return Hit(
        _id(found),
        source["entry"],
        source["form"],
        _members(source),
        source["previous"],
        source["start"],
        source["end"],
        source["occurred_at"],
        score(found["_score"]),
    )


def indexed(found: Mapping[str, Any]) -> Indexed:
    """What a scan shows of a document."""
    source = found["_source"]
    form: Form = source["form"]
    return Indexed(_id(found), source["entry"], form, found["_version"], _members(source))


def as_it_is(score: float) -> float:
    """BM25, and Lucene's score of a cosine, which is (1 + cosine) / 2 already."""
    return score


def of_inner_product(score: float) -> float:
    """(1 + cosine) / 2 from faiss' score of an inner product p: p + 1, or 1 / (1 - p) when p is negative."""
    product = score - 1 if score >= 1 else 1 - 1 / score
    return (1 + product) / 2


def _id(found: Mapping[str, Any]) -> str:
    id: str = found["_id"]
    return id.rpartition(":")[2]


def _members(source: Mapping[str, Any]) -> tuple[Member, ...]:
    return tuple(map(Member, source["members"], source["versions"]))


def _unit(vector: Any, dimensions: int) -> list[float]:
    values = [float(value) for value in vector]
    if len(values) != dimensions:
        raise ValueError(f"the vector has {len(values)} dimensions, the index {dimensions}")
    length = math.hypot(*values)
    if not math.isfinite(length) or length == 0:
        raise ValueError("the vector has no direction (all zero, or not finite)")
    return values if abs(length - 1) < 1e-4 else [value / length for value in values]

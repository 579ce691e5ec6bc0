"""What is asked: the filters of the port as clauses, and one search for each form and method."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import orjson

from ...ids import LOWEST
from ...ports import Filter, Form, Method
from .mapping import SHOWN, text_field, vector_field
from .terms import Clause, clause

MOST_WORDS = 500
"""Of a query's text. A query of 1,024 clauses is refused by OpenSearch; filters need their share."""

MOST_WATERMARKS = 400
"""Of one query: each is a clause of its own."""

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|\w+|[^\w\s]")


def within(bank: str, generation: int | None = None, partition: str | None = None) -> list[Clause]:
    """The documents of a bank, of a generation of it, of a partition of that."""
    clauses: list[Clause] = [{"term": {"bank": bank}}]
    if generation is not None:
        clauses.append({"term": {"generation": generation}})
    if partition is not None:
        clauses.append({"term": {"partition": partition}})
    return clauses


def filters(wanted: Filter) -> Clause:
    """The filter as one clause."""
    kept = within(wanted.bank, wanted.generation)
    dropped: list[Clause] = []
    if wanted.above is not None:
        kept.append({"terms": {"partition": list(wanted.above)}})
        # Only what compaction replaced and has not removed yet lies at or below a watermark: few terms to walk through.
        dropped += [
            {"range": {"place": {"gte": partition, "lte": partition + watermark}}}
            for partition, watermark in wanted.above.items()
            if watermark > LOWEST
        ]
    for name, values in (("kind", wanted.kinds), ("speaker", wanted.speakers), ("tags", wanted.tags_any)):
        if values:
            kept.append({"terms": {name: list(values)}})
    kept += [{"term": {"tags": tag}} for tag in wanted.tags_all]
    kept += [clause(test) for test in wanted.metadata]
    occurred = {name: at for name, at in (("gte", wanted.since), ("lt", wanted.until)) if at is not None}
    if occurred:
        kept.append({"range": {"occurred_at": occurred}})
    if wanted.created_after is not None:
        kept.append({"range": {"created_at": {"gt": wanted.created_after}}})
    return {"bool": {"filter": kept, **({"must_not": dropped} if dropped else {})}}


def portions(wanted: Filter) -> list[Filter]:
    """The filter, or several that together let through the same, none with more watermarks than a query has room for.

    No document passes two of them. Words weigh the same in each, so their hits compare.
    """
    above = wanted.above or {}
    compacted = [partition for partition, watermark in above.items() if watermark > LOWEST]
    if len(compacted) <= MOST_WATERMARKS:
        return [wanted]
    parts = [compacted[first : first + MOST_WATERMARKS] for first in range(0, len(compacted), MOST_WATERMARKS)]
    parts[-1] += [partition for partition, watermark in above.items() if watermark <= LOWEST]
    return [replace(wanted, above={partition: above[partition] for partition in part}) for part in parts]


def searches(
    wanted: Filter, *, vector: Sequence[float] | None, text: str | None, forms: Sequence[Form], size: int, ef_search: int
) -> list[tuple[Form, Method, dict[str, Any] | None]]:
    """What to ask for each form and method; nothing for a vector without a direction, which is near to nothing."""
    allowed = filters(wanted)
    asked: list[tuple[Form, Method, dict[str, Any] | None]] = []
    for form in forms:
        if vector is not None:
            asked.append((form, "vector", nearest(form, vector, size, ef_search, allowed) if any(vector) else None))
        if text is not None:
            asked.append((form, "keyword", wordiest(form, text, size, allowed)))
    return asked


def msearch(name: str, bank: str, bodies: Sequence[dict[str, Any]]) -> bytes:
    """The body of one request for all searches. An index that is not there has no hits; a shard that fails is an error."""
    where = {"index": name, "routing": bank, "ignore_unavailable": True, "allow_partial_search_results": False}
    header = orjson.dumps(where) + b"\n"
    return b"".join(header + orjson.dumps(body) + b"\n" for body in bodies)


def nearest(form: Form, vector: Sequence[float], size: int, ef_search: int, allowed: Clause) -> dict[str, Any]:
    """The documents of a form nearest to a vector; the filter works inside the graph's walk."""
    breadth = {"ef_search": max(ef_search, size)}
    asked = {"vector": list(vector), "k": size, "filter": allowed, "method_parameters": breadth}
    return _search({"knn": {vector_field(form): asked}}, size)


def wordiest(form: Form, text: str, size: int, allowed: Clause) -> dict[str, Any]:
    """The documents of a form that match words of a text best; the filter does not score."""
    asked = {"match": {text_field(form): {"query": shortened(text)}}}
    return _search({"bool": {"must": [asked], "filter": [allowed]}}, size)


def shortened(text: str) -> str:
    """The text, cut after `MOST_WORDS` words, or characters of scripts that write none."""
    last = next(islice(_WORD.finditer(text), MOST_WORDS, None), None)
    return text[: last.start()] if last else text


def _search(query: Clause, size: int) -> dict[str, Any]:
    return {"size": size, "track_total_hits": False, "_source": SHOWN, "query": query}

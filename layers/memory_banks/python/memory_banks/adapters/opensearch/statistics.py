"""Statistics: what is asked of the aggregations, and how their answer is read.

Figures come from one shard (a bank's documents are routed to one), so terms and their counts are exact. A distribution of
whole numbers is read from the counts of its values, largest first; only the ages of more than 200,000 entries are estimated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ... import ids
from ...ports import Counted, Spread, Statistics, Tally
from . import queries
from .terms import Clause

VALUES = 10_000
"""Of a distribution, the most values asked for. The largest twentieth is among them for up to 200,000 keys, and for any number
of entries whose tokens differ in less than 10,000 ways there."""

RANKS = 10_000
"""How deep OpenSearch goes into sorted hits."""

PRECISION = 40_000
"""Up to so many distinct values are counted about exactly; the most that OpenSearch takes."""


CHEAP = 20
"""Up to so many ranges of places are asked for at once. Each takes up to half a millisecond a segment, even where nothing is in
it, and nearly all are empty: what lay there was removed within minutes."""


def oldest_left(counted: Counted) -> dict[str, Any]:
    """The request for how old the oldest documents are in each of the partitions that have a watermark."""
    oldest = {"oldest": {"min": {"field": "created_at"}}}
    kept = [*queries.within(counted.bank, counted.generation), {"exists": {"field": "tokens"}}]
    kept.append({"terms": {"partition": list(counted.hidden)}})
    kept.append({"range": {"created_at": {"lte": max(map(ids.milliseconds_of, counted.hidden.values()))}}})
    kinds = {kind: {"filter": {"term": {"kind": kind}}, "aggs": oldest} for kind in ("entry", "summary")}
    return {
        "size": 0,
        "track_total_hits": False,
        "query": {"bool": {"filter": kept}},
        "aggs": {"partitions": {"terms": {"field": "partition", "size": len(counted.hidden)}, "aggs": kinds}},
    }


def still_hiding(counted: Counted, answer: Mapping[str, Any]) -> Counted:
    """Without the watermarks that hide nothing any more, by the answer to `oldest_left`."""
    kept = {}
    for bucket in answer.get("aggregations", {}).get("partitions", {}).get("buckets", ()):
        watermark = counted.hidden[bucket["key"]]
        at = ids.milliseconds_of(watermark)
        # The summary at its watermark sorts after it, and is not hidden.
        newest = {"entry": at, "summary": at if len(watermark) > ids.ULID_LENGTH else at - 1}
        if any(bucket[kind]["doc_count"] and bucket[kind]["oldest"]["value"] <= newest[kind] for kind in newest):
            kept[bucket["key"]] = watermark
    return replace(counted, hidden=kept)


def markers(counted: Counted, kind: str | None = None) -> Clause:
    """The documents that stand for the entries."""
    kept = queries.within(counted.bank, counted.generation)
    kept.append({"exists": {"field": "tokens"}})
    kept.append({"range": {"created_at": {"gte": counted.since, "lt": counted.until}}})
    if kind is not None:
        kept.append({"term": {"kind": kind}})
    gone = [
        {"range": {"place": {"gte": partition, "lte": partition + watermark}}} for partition, watermark in counted.hidden.items()
    ]
    return {"bool": {"filter": kept, **({"must_not": gone} if gone else {})}}


MOST = ({"_count": "desc"}, {"_key": "asc"})


def _terms(field: str, size: int, *order: dict[str, str]) -> dict[str, Any]:
    return {"terms": {"field": field, "size": size, "shard_size": size, **({"order": list(order)} if order else {})}}


def asked(counted: Counted, top: int) -> dict[str, Any]:
    """The request for all figures but those that only few banks need, and the age that 95 % do not exceed."""
    figures = {
        "tokens": {"stats": {"field": "tokens"}},
        "token_values": _terms("tokens", VALUES, {"_key": "desc"}),
        "created_at": {"stats": {"field": "created_at"}},
        "partitions": _terms("partition", VALUES, *MOST),
        "distinct_speakers": {"cardinality": {"field": "speaker", "precision_threshold": PRECISION}},
        "speakers": _terms("speaker", top, *MOST),
        "tags": _terms("tags", top, *MOST),
    }
    return {
        "size": 0,
        "track_total_hits": False,
        "query": markers(counted),
        "aggs": {
            "entries": {"filter": {"term": {"kind": "entry"}}, "aggs": figures},
            "summaries": {"filter": {"term": {"kind": "summary"}}},
        },
    }


def further(counted: Counted, answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """The request for the rest, by the answer to `asked`: the entry of that age by its rank, or an estimate of the age where its
    rank is out of reach; what is to be known of keys where not all could be listed. None without entries.
    """
    entries = _entries(answer)
    if not entries["doc_count"]:
        return None
    wanted: dict[str, Any] = {"size": 0, "_source": False, "track_total_hits": False, "query": markers(counted, "entry")}
    figures: dict[str, Any] = {}
    rank = entries["doc_count"] - _rank(entries["doc_count"])
    if rank < RANKS:
        wanted |= {"size": 1, "from": rank, "sort": [{"created_at": "asc"}]}
    else:
        figures["created_early"] = {"percentiles": {"field": "created_at", "percents": [5], "tdigest": {"compression": 1_000}}}
    if entries["partitions"]["sum_other_doc_count"]:
        figures["rarest"] = _terms("partition", 1, {"_count": "asc"}, {"_key": "asc"})
        figures["distinct"] = {"cardinality": {"field": "partition", "precision_threshold": PRECISION}}
    return wanted | ({"aggs": figures} if figures else {})


def read(answer: Mapping[str, Any], rest: Mapping[str, Any] | None, top: int) -> Statistics:
    """Both answers as the port gives them."""
    entries = _entries(answer)
    count = entries["doc_count"]
    summaries = answer["aggregations"]["summaries"]["doc_count"] if "aggregations" in answer else 0
    if not count or rest is None:
        return Statistics(summaries=summaries)
    tokens, created, buckets = entries["tokens"], entries["created_at"], entries["partitions"]["buckets"]
    figures = rest.get("aggregations", {})
    distinct, fewest = len(buckets), buckets[-1]["doc_count"]
    if "distinct" in figures:
        distinct = max(figures["distinct"]["value"], distinct + 1)
        fewest = figures["rarest"]["buckets"][0]["doc_count"]
    sizes = [(bucket["doc_count"], 1) for bucket in buckets]
    return Statistics(
        entries=count,
        summaries=summaries,
        partitions=distinct,
        speakers=entries["distinct_speakers"]["value"],
        tokens=Spread(
            tokens["avg"],
            _p95([(bucket["key"], bucket["doc_count"]) for bucket in entries["token_values"]["buckets"]], count),
            tokens["min"],
            tokens["max"],
        ),
        created_at=Spread(created["avg"], _early(rest, created["min"]), created["min"], created["max"]),
        entries_per_partition=Spread(count / distinct, _p95(sizes, distinct), fewest, sizes[0][0]),
        top_partitions=_tallies(buckets[:top]),
        top_speakers=_tallies(entries["speakers"]["buckets"]),
        top_tags=_tallies(entries["tags"]["buckets"]),
    )


def _early(rest: Mapping[str, Any], first: float) -> int:
    """The time after which 95 % were created; the first entry's where the others have gone since they were counted."""
    if "created_early" in rest.get("aggregations", {}):
        estimate: float = rest["aggregations"]["created_early"]["values"]["5.0"]
        return round(estimate)
    found = rest["hits"]["hits"]
    return int(found[0]["sort"][0]) if found else round(first)


def _entries(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of the entries; an index that is not there has no aggregations at all."""
    found: dict[str, Any] = answer.get("aggregations", {}).get("entries", {"doc_count": 0})
    return found


def _rank(count: int) -> int:
    """The nearest rank of the 95th percentile, from 1."""
    return -(-count * 95 // 100)


def _p95(values: Sequence[tuple[float, int]], count: int) -> float:
    """From values with how often each occurs, largest first, perhaps without the smallest."""
    above = count - _rank(count)
    for value, often in values:
        above -= often
        if above < 0:
            return value
    return values[-1][0]


def _tallies(buckets: Sequence[Mapping[str, Any]]) -> tuple[Tally, ...]:
    return tuple(Tally(bucket["key"], bucket["doc_count"]) for bucket in buckets)

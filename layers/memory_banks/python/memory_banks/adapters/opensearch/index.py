"""The port's methods, each a few requests."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Self

from ...ports import (
    Chance,
    Clock,
    Counted,
    Filter,
    Form,
    IndexDocument,
    Indexed,
    IndexUnavailable,
    Method,
    Metrics,
    Outcome,
    Ranking,
    Statistics,
)
from ...settings import Settings
from . import bulk, documents, mapping, queries, statistics
from .calls import OVERLOADED, REFUSED_US, Calls, Patience, Refused, reason
from .client import connect

logger = logging.getLogger(__name__)

SEARCH_SECONDS = 8.0
WRITE_SECONDS = 25.0
"""How long an operation may take with all its retries; well inside the functions' time."""

PAGE = 1000
"""Entries a delete names at a time, and documents that a delete or a scan reads at a time."""


class OpenSearchIndex:
    """`OpenSearchIndex.from_settings(settings, clock, chance)`. Safe for threads; connects with the first request."""

    def __init__(self, calls: Calls, settings: Settings, metrics: Metrics | None = None) -> None:
        self._calls = calls
        self._metrics = metrics
        self._settings = settings
        self._known: set[str] = set()
        faiss = settings.opensearch_engine == "faiss"
        self._similarity = documents.of_inner_product if faiss else documents.as_it_is

    @classmethod
    def from_settings(cls, settings: Settings, clock: Clock, chance: Chance, metrics: Metrics | None = None) -> Self:
        """The index at `opensearch_url`."""
        return cls(Calls(lambda: connect(settings), clock, chance), settings, metrics)

    # ----------------------------------------------------------------------------------------------------------------
    # Writes

    def write(self, name: str, documents: Sequence[IndexDocument], dimensions: int) -> list[Outcome]:
        """Write documents, each only over an older or equal version; outcomes in their order. Creates the index."""
        patience = self._calls.patience(WRITE_SECONDS)
        while True:
            self._create(name, dimensions, patience)
            try:
                return bulk.write(self._calls, name, documents, dimensions, patience)
            except bulk.IndexMissing:
                self._known.discard(name)
                patience.rest(f"the index {name} keeps going away")

    def delete(self, name: str, bank: str, ids: Sequence[str]) -> None:
        """Remove documents of a bank by id; absent ones are no error. One that is written anew meanwhile stays."""
        for first in range(0, len(ids), PAGE):
            patience = self._calls.patience(WRITE_SECONDS)
            wanted = [{"_id": documents.stored_id(bank, id), "routing": bank} for id in ids[first : first + PAGE]]
            asked = {"docs": wanted}
            answer = self._calls.ask("POST", f"/{name}/_mget", params={"_source": "false"}, body=asked, patience=patience)
            found = [bulk.Dated(one["_id"], one["_version"]) for one in answer["docs"] if one.get("found")]
            bulk.delete(self._calls, name, bank, found, patience)

    def delete_entries(self, name: str, bank: str, entries: Sequence[str]) -> None:
        """Remove every chunk of these entries, and every window that has one of them as a member."""
        for first in range(0, len(entries), PAGE):
            some = list(entries[first : first + PAGE])
            self._delete(name, bank, [*queries.within(bank), {"terms": {"members": some}}])

    def delete_partition(self, name: str, bank: str, generation: int, partition: str | None, through: str | None = None) -> None:
        """Remove a generation's documents: of one partition (only with ULID at or below `through`, if given), or all of it."""
        clauses = queries.within(bank, generation, partition)
        if through is not None:
            if partition is None:
                raise ValueError("`through` is a place in a partition: name the partition")
            clauses.append({"range": {"place": {"gte": partition, "lte": partition + through}}})
        self._delete(name, bank, clauses)

    def refresh(self, name: str) -> None:
        """Make what was written so far visible to `search`."""
        self._refresh(name, self._calls.patience(WRITE_SECONDS))

    # ----------------------------------------------------------------------------------------------------------------
    # Reads

    def search(
        self,
        name: str,
        filter: Filter,
        *,
        vector: Sequence[float] | None,
        text: str | None,
        forms: Sequence[Form],
        size: int,
    ) -> list[Ranking]:
        """One round trip: for each form, the `size` best by vector (if given) and by keyword (if text is given)."""
        wanted: dict[str, Any] = {"vector": vector, "text": text, "forms": forms, "size": size}
        ef_search = self._settings.opensearch_ef_search
        asked = [queries.searches(part, **wanted, ef_search=ef_search) for part in queries.portions(filter)]
        found = iter(self._searched(name, filter.bank, [query for part in asked for _, _, query in part if query]))
        answered = [[self._ranking(form, method, next(found) if query else []) for form, method, query in part] for part in asked]
        return [_merged(rankings, size) for rankings in zip(*answered, strict=True)]

    def scan(self, name: str, bank: str, generation: int, partition: str | None = None) -> Iterator[Indexed]:
        """Every document of a generation of a bank, in any order."""
        self.refresh(name)
        query = {"bool": {"filter": queries.within(bank, generation, partition)}}
        asked = {"size": PAGE, "version": True, "_source": mapping.SHOWN, "sort": ["_doc"], "query": query}
        scroll = None
        try:
            params = {"scroll": "2m", "routing": bank, "ignore_unavailable": "true"}
            page = self._calls.ask("POST", f"/{name}/_search", params=params, body=asked, patience=self._patient())
            while page["hits"]["hits"]:
                if page["_shards"]["failed"]:
                    raise IndexUnavailable("OpenSearch could not read all shards")
                scroll = page["_scroll_id"]
                yield from map(documents.indexed, page["hits"]["hits"])
                asked = {"scroll": "2m", "scroll_id": scroll}
                try:
                    page = self._calls.ask("POST", "/_search/scroll", body=asked, patience=self._patient())
                except Refused as problem:
                    raise IndexUnavailable(f"the scan was cut off: {problem}") from problem
        finally:
            if scroll:
                self._calls.ask("DELETE", "/_search/scroll", body={"scroll_id": [scroll]}, accept=[404], patience=self._patient())

    def statistics(self, name: str, counted: Counted, top: int) -> Statistics:
        """See `ports.Index.statistics`. All documents of a bank are on one shard, so what it counts is exact."""
        if len(counted.hidden) > statistics.CHEAP:
            counted = statistics.still_hiding(counted, self._counted(name, counted.bank, statistics.oldest_left(counted)))
        answer = self._counted(name, counted.bank, statistics.asked(counted, top))
        further = statistics.further(counted, answer)
        rest = None if further is None else self._counted(name, counted.bank, further)
        return statistics.read(answer, rest, top)

    # ----------------------------------------------------------------------------------------------------------------
    # Underneath

    def _ranking(self, form: Form, method: Method, found: Sequence[dict[str, Any]]) -> Ranking:
        score = self._similarity if method == "vector" else documents.as_it_is
        return Ranking(form, method, [documents.hit(one, score) for one in found])

    def _patient(self) -> Patience:
        return self._calls.patience(SEARCH_SECONDS)

    def _counted(self, name: str, bank: str, body: dict[str, Any]) -> dict[str, Any]:
        params = {"routing": bank, "ignore_unavailable": "true", "allow_partial_search_results": "false"}
        answer: dict[str, Any] = self._calls.ask("POST", f"/{name}/_search", params=params, body=body, patience=self._patient())
        return answer

    def _create(self, name: str, dimensions: int, patience: Patience) -> None:
        """Make the index unless it is there. Two processes may do so at once: the second finds it made.

        One that dies after the template leaves a template, which the next one writes again.
        """
        if name in self._known:
            return
        if not self._there(name, patience):
            template = mapping.template(name, dimensions, self._settings)
            self._calls.ask("PUT", f"/_index_template/{name}", body=template, patience=patience)
            made = self._calls.ask("PUT", f"/{name}", accept=[400], patience=patience)
            if "error" in made and made["error"]["type"] != "resource_already_exists_exception":
                raise Refused(made["status"], reason(made["error"]))
        self._known.add(name)

    def _there(self, name: str, patience: Patience) -> bool:
        """Whether the index is there; one that an earlier version made has all fields then, and what else differs is told."""
        try:
            told = self._calls.ask("GET", f"/{name}", patience=patience)
        except Refused as problem:
            if problem.status != 404:
                raise
            return False
        for made in told.values():
            if mapping.lacks(made):
                self._calls.ask("PUT", f"/{name}/_mapping", body={"properties": mapping.ADDED}, patience=patience)
            for difference in mapping.differences(made, self._settings):
                logger.warning(
                    "the index %s is not as it would be made today: %s; docs/opensearch.md says how to renew it", name, difference
                )
                if self._metrics is not None:
                    self._metrics.count("IndexOutdated")
        return True

    def _refresh(self, name: str, patience: Patience) -> None:
        self._calls.ask("POST", f"/{name}/_refresh", params={"ignore_unavailable": "true"}, patience=patience)

    def _delete(self, name: str, bank: str, clauses: Sequence[dict[str, Any]]) -> None:
        """Remove what a query finds, a page at a time, until it finds nothing.

        It finds what a refresh has shown, so that comes first. A document that changes between being found and being deleted
        is looked at again. One that dies half way has removed some; the same call removes the rest.
        """
        asked = {"size": PAGE, "version": True, "_source": False, "sort": ["_doc"], "query": {"bool": {"filter": list(clauses)}}}
        params = {"routing": bank, "ignore_unavailable": "true", "allow_partial_search_results": "false"}
        patience = self._calls.patience(WRITE_SECONDS)
        while True:
            self._refresh(name, patience)
            page = self._calls.ask("POST", f"/{name}/_search", params=params, body=asked, patience=patience)["hits"]["hits"]
            if not page:
                return
            found = [bulk.Dated(one["_id"], one["_version"]) for one in page]
            if bulk.delete(self._calls, name, bank, found, patience) < len(found):
                patience = self._calls.patience(WRITE_SECONDS)
            else:
                patience.rest("documents keep changing while they are being deleted")

    def _searched(self, name: str, bank: str, searches: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
        """The hits of each search, all in one request; an index that is not there has none."""
        if not searches:
            return []
        body = queries.msearch(name, bank, searches)
        patience = self._patient()
        while True:
            answers = self._calls.ask("POST", "/_msearch", body=body, patience=patience)["responses"]
            problem = next((answer for answer in answers if "error" in answer), None)
            if problem is None:
                return [answer["hits"]["hits"] for answer in answers]
            why = reason(problem["error"])
            if problem["status"] in REFUSED_US:
                raise IndexUnavailable(f"OpenSearch answered {problem['status']}: {why}")
            if problem["status"] not in OVERLOADED:
                raise Refused(problem["status"], why)
            patience.rest(f"OpenSearch is overloaded: {why}")


def _merged(rankings: Sequence[Ranking], size: int) -> Ranking:
    """The best of the portions of one search."""
    if len(rankings) == 1:
        return rankings[0]
    hits = sorted((hit for ranking in rankings for hit in ranking.hits), key=lambda hit: -hit.score)
    return Ranking(rankings[0].form, rankings[0].method, hits[:size])

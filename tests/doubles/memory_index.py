"""`ports.Index` in a dict: versions, deletes and filters as the contract says, by brute force. For thousands of short lives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memory_banks.ports import Filter, Form, Hit, IndexDocument, Indexed, Outcome, Ranking


class MemoryIndex:
    """Documents by index name and id. Metadata tests are not supported."""

    def __init__(self) -> None:
        self._documents: dict[str, dict[str, IndexDocument]] = {}

    def write(self, name: str, documents: Sequence[IndexDocument], dimensions: int) -> list[Outcome]:
        kept = self._documents.setdefault(name, {})
        outcomes = []
        for document in documents:
            assert len(document.vector) == dimensions
            stale = document.id in kept and kept[document.id].version > document.version
            if not stale:
                kept[document.id] = document
            outcomes.append(Outcome(document.id, "stale" if stale else "written"))
        return outcomes

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
        assert not filter.metadata
        seen = [one for one in list(self._documents.get(name, {}).values()) if _passes(one, filter)]
        words = set(text.lower().split()) if text else set()
        rankings = []
        for form in forms:
            mine = [one for one in seen if one.form == form]
            if vector is not None:
                near = [(_hit(one, (1 + sum(a * b for a, b in zip(vector, one.vector, strict=True))) / 2)) for one in mine]
                rankings.append(Ranking(form, "vector", sorted(near, key=lambda hit: -hit.score)[:size]))
            if text is not None:
                said = [_hit(one, float(len(words & set(one.text.lower().split())))) for one in mine]
                found = sorted((hit for hit in said if hit.score), key=lambda hit: -hit.score)
                rankings.append(Ranking(form, "keyword", found[:size]))
        return rankings

    def delete(self, name: str, bank: str, ids: Sequence[str]) -> None:
        for one in ids:
            self._documents.get(name, {}).pop(one, None)

    def delete_entries(self, name: str, bank: str, entries: Sequence[str]) -> None:
        gone = set(entries)
        self._drop(name, lambda one: one.bank == bank and (one.entry in gone or any(m.entry in gone for m in one.members)))

    def delete_partition(self, name: str, bank: str, generation: int, partition: str | None, through: str | None = None) -> None:
        self._drop(
            name,
            lambda one: (
                (one.bank, one.generation) == (bank, generation)
                and partition in (None, one.partition)
                and (through is None or _sort(one) <= through)
            ),
        )

    def _drop(self, name: str, goes) -> None:  # type: ignore[no-untyped-def]
        kept = self._documents.get(name, {})
        for one in [one for one in kept.values() if goes(one)]:
            del kept[one.id]

    def scan(self, name: str, bank: str, generation: int, partition: str | None = None) -> Iterator[Indexed]:
        for one in list(self._documents.get(name, {}).values()):
            if (one.bank, one.generation) == (bank, generation) and partition in (None, one.partition):
                yield Indexed(one.id, one.entry, one.form, one.version, one.members)

    def everything(self) -> list[tuple[str, IndexDocument]]:
        """All documents with the name of their index, for checks in tests."""
        return [(name, one) for name, kept in self._documents.items() for one in kept.values()]

    def refresh(self, name: str) -> None:
        """Everything is visible at once."""


def _sort(document: IndexDocument) -> str:
    """The ULID of the (middle) entry, and `S` of a summary."""
    return document.entry[:26] + document.entry[52:]


def _passes(one: IndexDocument, filter: Filter) -> bool:
    return (
        (one.bank, one.generation) == (filter.bank, filter.generation)
        and (filter.above is None or (one.partition in filter.above and _sort(one) > filter.above[one.partition]))
        and (not filter.kinds or one.kind in filter.kinds)
        and (not filter.speakers or one.speaker in filter.speakers)
        and (not filter.tags_any or bool(set(filter.tags_any) & set(one.tags)))
        and set(filter.tags_all) <= set(one.tags)
        and (filter.since is None or one.occurred_at >= filter.since)
        and (filter.until is None or one.occurred_at < filter.until)
        and (filter.created_after is None or one.created_at > filter.created_after)
    )


def _hit(one: IndexDocument, score: float) -> Hit:
    return Hit(one.id, one.entry, one.form, one.members, one.previous, one.start, one.end, one.occurred_at, score)

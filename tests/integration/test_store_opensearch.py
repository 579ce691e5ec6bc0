"""The store of documents on a real OpenSearch node: a put is found at once, under whole labels only, and a delete is final."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from memory_banks.store.indexing import Indexing

from tests.doubles.embedding import HashedEmbedder
from tests.doubles.world import World
from tests.unit.store.conftest import Shelf

if TYPE_CHECKING:
    from memory_banks.adapters.opensearch import OpenSearchIndex

pytestmark = pytest.mark.opensearch


@pytest.fixture
def shelf(opensearch_index: OpenSearchIndex) -> Shelf:
    embedding = Indexing(f"memory-banks-test-store-{time.time_ns()}", 64, HashedEmbedder("hashed/small", 64), ("text",))
    return Shelf(World(index=opensearch_index), embedding=embedding)


def found(shelf: Shelf, prefix: tuple[str, ...], query: str, **rest: Any) -> list[tuple[str, bool]]:
    return [(one.document.key, one.score is not None) for one in shelf.store.search(prefix, query=query, **rest)]


def test_a_put_is_found_by_query_when_it_returns(shelf: Shelf) -> None:
    for number in range(30):
        namespace = ("foo",) if number % 2 else ("foobar",)
        shelf.put(namespace, f"k{number}", {"text": f"word{number} apple", "n": number, "s": "x"})
        assert found(shelf, namespace, f"word{number} apple")[0] == (f"k{number}", True)
    assert len(found(shelf, ("foo",), "apple", limit=100)) == 15
    assert found(shelf, ("fo",), "apple") == []
    assert {key for key, _ in found(shelf, (), "apple", filter={"n": {"$gte": 28}, "s": "x"})} == {"k28", "k29"}


def test_updates_and_deletes_leave_nothing_behind(shelf: Shelf) -> None:
    shelf.put(("a",), "k", {"text": "apple"})
    shelf.put(("a",), "k", {"text": "pear"})
    assert shelf.store.search((), query="pear")[0].score == pytest.approx(1, abs=1e-3)
    shelf.put(("a",), "k", {"text": "pear"}, index=False)
    assert found(shelf, (), "pear") == [("k", False)]
    for _ in range(3):
        shelf.put(("a",), "k", {"text": "plum"})
        assert found(shelf, (), "plum") == [("k", True)]
        shelf.delete(("a",), "k")
        assert found(shelf, (), "plum") == []
    index = shelf.world.index
    assert list(index.scan(shelf.store._embedding.index, "store-acme", 1)) == []  # type: ignore[union-attr]


def test_pages_make_up_the_whole_list(shelf: Shelf) -> None:
    for number in range(40):
        shelf.put(("a", f"n{number % 3}"), f"k{number}", {"text": f"apple word{number % 7}"}, index=None if number % 4 else False)
    whole = found(shelf, ("a",), "apple word3", limit=100)
    assert len(set(whole)) == 40
    assert [one for offset in range(0, 40, 7) for one in found(shelf, ("a",), "apple word3", limit=7, offset=offset)] == whole

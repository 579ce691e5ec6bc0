"""Reranked searches: who decides the order, what is shown of it, and what happens when the model does not answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from memory_banks import corrections, deletion
from memory_banks.adapters.models import reranker
from memory_banks.bank import Bank
from memory_banks.ports import ModelError, ModelUnavailable
from memory_banks.reranking import LONGEST, RERANKED, SECONDS
from memory_banks.search import Found, SearchRequest, search
from memory_banks.settings import Settings

from tests.doubles.model_server import ModelServer, Reply
from tests.doubles.world import World

TALK = (
    "I bought a red bicycle last week",
    "My dog Rex ate the sofa",
    "We are flying to Lisbon in June",
    "The dentist was quick today",
    "The printer is out of toner again",
)


class Opinion:
    """A reranker with an opinion of its own on every text, which it remembers having read."""

    model = "double/opinion"

    def __init__(self, score: Callable[[str], float]) -> None:
        self.score = score
        self.read: list[tuple[str, list[str], float]] = []

    def rerank(self, query: str, texts: Sequence[str], *, timeout_seconds: float) -> list[float]:
        self.read.append((query, list(texts), timeout_seconds))
        return [self.score(text) for text in texts]


class Failing:
    model = "double/failing"

    def __init__(self, problem: ModelError) -> None:
        self.problem = problem

    def rerank(self, *_: Any, **__: Any) -> list[float]:
        raise self.problem


@pytest.fixture
def world() -> World:
    return World()


def remember(world: World, *texts: str, bank: Bank | None = None) -> Bank:
    bank = bank or world.bank()
    for first in range(0, len(texts), 100):
        world.write(bank, *texts[first : first + 100])
    world.drain()
    return bank


def find(world: World, bank: Bank, query: str, **request: Any) -> list[Found]:
    return search(world, world.again(bank), SearchRequest(query, **request))


def likes(*words: str) -> Opinion:
    """Likes the first word best."""
    worth = {word: 1 - 0.1 * place for place, word in enumerate(words)}
    return Opinion(lambda text: max((worth[word] for word in words if word in text), default=0.0))


def test_the_reranker_decides_order_and_score(world: World) -> None:
    bank = remember(world, *TALK)
    assert find(world, bank, "red bicycle")[0].entry.content == TALK[0]
    world.reranker = likes("toner", "Lisbon", "bicycle")
    found = find(world, bank, "red bicycle", top_k=4)
    assert [one.entry.content for one in found[:3]] == [TALK[4], TALK[2], TALK[0]]
    assert [one.score for one in found] == [1.0, 0.9, 0.8, 0.0]
    (asked,) = world.reranker.read
    assert asked[0] == "red bicycle"
    assert any(text.startswith("user (") and text.endswith("): I bought a red bicycle last week") for text in asked[1])
    assert asked[2] == SECONDS


def test_what_is_equal_to_the_reranker_stays_as_it_was_fused(world: World) -> None:
    bank = remember(world, *TALK)
    fused = [one.entry.content for one in find(world, bank, "where is the dog?")]
    world.reranker = Opinion(lambda _: 0.5)
    assert [one.entry.content for one in find(world, bank, "where is the dog?")] == fused


def test_it_reads_more_than_the_page_and_nothing_beyond_its_share(world: World) -> None:
    bank = remember(world, *(f"apple number {n}" for n in range(120)), bank=world.bank(type="general"))
    world.reranker = likes("number 3 ")
    assert len(find(world, bank, "apple number", top_k=3)) == 3
    assert len(world.reranker.read[-1][1]) == RERANKED
    assert len(find(world, bank, "apple number", top_k=100)) == 100
    assert len(world.reranker.read[-1][1]) == 100


def test_debug_tells_what_the_reranker_said_and_what_the_fusion_did(world: World) -> None:
    bank = remember(world, *TALK)
    fused = find(world, bank, "red bicycle")
    assert "rerank" not in (find(world, bank, "red bicycle", debug=True)[0].parts or {})
    world.reranker = likes("toner", "bicycle")
    for one in find(world, bank, "red bicycle", debug=True):
        assert one.parts is not None
        told = one.parts["rerank"]
        before = fused[told["fused_place"] - 1]
        assert before.entry.id == one.entry.id
        assert told == {"score": one.score, "fused_score": before.score, "fused_place": told["fused_place"]}


@pytest.mark.parametrize("problem", [ModelUnavailable("down"), ModelError("refused")])
def test_a_failing_reranker_leaves_the_fused_order_and_is_counted(world: World, problem: ModelError) -> None:
    bank = remember(world, *TALK)
    fused = find(world, bank, "red bicycle", top_k=3)
    world.reranker = Failing(problem)
    assert find(world, bank, "red bicycle", top_k=3) == fused
    assert world.metrics.counted["RerankFailed"] == 1
    shown = find(world, bank, "red bicycle", debug=True)[0]
    assert shown.parts is not None
    assert shown.parts["rerank"] is None


def test_a_provider_that_answers_nonsense_leaves_the_fused_order(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Over a real socket, through the adapter that the settings name."""
    bank = remember(world, *TALK)
    fused = find(world, bank, "red bicycle")
    with ModelServer() as server:
        world.reranker = reranker(Settings(rerank_model="openai/m", rerank_base_url=server.url))
        assert find(world, bank, "red bicycle")[0].entry.content == TALK[0]
        assert "RerankFailed" not in world.metrics.counted
        server.instead.append(Reply(body={"results": [{"index": 0, "relevance_score": 0.4}]}))
        assert find(world, bank, "red bicycle") == fused
    world.reranker = reranker(Settings(rerank_model="openai/m", rerank_base_url="http://127.0.0.1:9"))  # nobody listens there
    assert find(world, bank, "red bicycle") == fused
    assert world.metrics.counted["RerankFailed"] == 2
    assert "did not score each of 5 texts" in caplog.text


def test_a_setting_that_names_no_model_fails_no_search(world: World) -> None:
    bank = remember(world, *TALK)
    fused = find(world, bank, "red bicycle")

    class Misspelt(World):
        @property
        def reranker(self) -> Any:
            return reranker(Settings(rerank_model="amazn/rerank"))

        @reranker.setter
        def reranker(self, _: Any) -> None: ...

    other = Misspelt(clock=world.clock, table=world.table, index=world.index, embedders=world.embedders)
    assert find(other, bank, "red bicycle") == fused
    assert other.metrics.counted["RerankFailed"] == 1


@pytest.mark.parametrize("mode", ["semantic", "keyword"])
def test_who_asks_for_one_ranking_gets_it(world: World, mode: Any) -> None:
    bank = remember(world, *TALK)
    world.reranker = likes("toner")
    assert find(world, bank, "red bicycle", mode=mode)[0].entry.content == TALK[0]
    assert world.reranker.read == []


def test_nothing_found_is_nothing_to_rerank(world: World) -> None:
    bank = world.bank()
    world.reranker = likes("toner")
    assert find(world, bank, "red bicycle") == []
    assert world.reranker.read == []


def test_it_is_never_shown_what_is_dead(world: World) -> None:
    bank = remember(world, *TALK)
    by_text = {entry.content: entry for entry in world.load(bank)}
    deletion.delete_entry(world, bank, by_text[TALK[4]].id, deadline=world.deadline())
    corrections.correct(world, bank, by_text[TALK[2]].id, content="We are staying at home", deadline=world.deadline())
    world.reranker = likes("toner", "Lisbon")
    found = find(world, bank, "printer toner and flying to Lisbon")
    assert not {TALK[4], TALK[2]} & {one.entry.content for one in found}
    assert not any("toner" in text or "Lisbon" in text for text in world.reranker.read[0][1])


def test_long_texts_and_queries_are_cut(world: World) -> None:
    bank = remember(world, "apple " * 3_000)
    world.reranker = Opinion(lambda _: 0.5)
    find(world, bank, "apple " * 1_000)
    query, texts, _ = world.reranker.read[0]
    assert len(query) == LONGEST
    assert texts
    assert all(0 < len(text) <= LONGEST for text in texts)


def test_min_score_and_neighbours_are_as_without_it(world: World) -> None:
    bank = remember(world, *TALK)
    least = (find(world, bank, "red bicycle", debug=True)[0].parts or {})["similarity"] - 0.001
    kept = {one.entry.id for one in find(world, bank, "red bicycle", min_score=least)}
    world.reranker = likes("toner")
    reranked = find(world, bank, "red bicycle", min_score=least, neighbors=1)
    assert {one.entry.id for one in reranked} == kept
    assert reranked[0].neighbors

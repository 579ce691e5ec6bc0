"""Fusion: rankings in, explained candidates out."""

from __future__ import annotations

import math

import pytest
from memory_banks.fusion import LIFT, WEIGHTS, WITHOUT_WINDOWS, fuse
from memory_banks.ports import Form, Hit, Member, Method, Ranking


def hit(
    entry: str, score: float, *, form: Form = "chunk", members: str = "", previous: str | None = None, at: int = 0, piece: int = 0
) -> Hit:
    row = tuple(Member(one, 1) for one in (members or entry))
    return Hit(f"{entry}#{piece}", entry, form, row, previous, piece * 10, piece * 10 + 10, at, score)


def chunks(method: Method, *hits: Hit) -> Ranking:
    return Ranking("chunk", method, list(hits))


def windows(method: Method, *hits: Hit) -> Ranking:
    return Ranking("window", method, list(hits))


def order(rankings: list[Ranking], size: int = 100, **options: object) -> list[str]:
    return [one.entry for one in fuse(rankings, size, **options)]  # type: ignore[arg-type]


def test_nothing_found_is_nothing() -> None:
    assert fuse([], 10) == []
    assert fuse([chunks("vector"), chunks("keyword")], 10) == []


def test_one_ranking_keeps_its_order() -> None:
    assert order([chunks("vector", hit("a", 0.9), hit("b", 0.8), hit("c", 0.1))]) == ["a", "b", "c"]


def test_scores_of_different_kinds_weigh_the_same() -> None:
    """BM25 is ten times the cosine here; `b` is the best of both together."""
    vector = chunks("vector", hit("a", 0.9), hit("b", 0.85), hit("c", 0.5))
    keyword = chunks("keyword", hit("c", 9.0), hit("b", 8.0), hit("a", 1.0))
    assert order([vector, keyword])[0] == "b"
    bigger = chunks("keyword", *(hit(one.entry, one.score * 100) for one in keyword.hits))
    assert order([vector, bigger]) == order([vector, keyword])


def test_standardised_scores_have_mean_0_and_deviation_1() -> None:
    found = fuse([chunks("vector", hit("a", 0.9), hit("b", 0.7), hit("c", 0.2)), chunks("keyword", hit("a", 3.0))], 100)
    for source in (("chunk", "vector"), ("chunk", "keyword")):
        values = [one.parts[source].standardised for one in found]  # type: ignore[index]
        assert sum(values) == pytest.approx(0)
        assert sum(value**2 for value in values) / len(values) == pytest.approx(1)


def test_the_parts_of_a_score_add_up() -> None:
    found = fuse(
        [
            chunks("vector", hit("a", 0.9), hit("b", 0.7, previous="a"), hit("c", 0.2, previous="b")),
            chunks("keyword", hit("a", 3.0)),
            windows("vector", hit("b", 0.8, form="window", members="abc"), hit("a", 0.6, form="window", members="ab")),
        ],
        100,
    )
    for one in found:
        assert one.own == pytest.approx(sum(part.standardised for part in one.parts.values()) / len(one.parts))
        assert one.score == pytest.approx(1 / (1 + math.exp(-one.own - one.lift)))
        assert 0 < one.score < 1
    raw = {one.entry: one.parts["chunk", "keyword"].raw for one in found}
    assert raw == {"a": 3.0, "b": None, "c": None}


def test_weights_shift_the_balance() -> None:
    rankings = [
        chunks("vector", hit("a", 0.9), hit("b", 0.8), hit("c", 0.1)),
        chunks("keyword", hit("b", 5.0), hit("a", 1.0), hit("c", 0.5)),
    ]
    assert order(rankings, weights={("chunk", "vector"): 50.0, ("chunk", "keyword"): 1.0})[0] == "a"
    assert order(rankings, weights={("chunk", "vector"): 1.0, ("chunk", "keyword"): 5.0})[0] == "b"
    assert set(WITHOUT_WINDOWS) < set(WEIGHTS)


def test_an_entry_counts_once_with_its_best_chunk() -> None:
    (first, second) = fuse(
        [
            chunks("vector", hit("a", 0.9, piece=3), hit("b", 0.8), hit("a", 0.7, piece=1)),
            chunks("keyword", hit("a", 2.0, piece=1)),
        ],
        100,
    )
    assert (first.entry, second.entry) == ("a", "b")
    assert first.best_chunk is not None
    assert (first.best_chunk.start, first.similarity) == (30, 0.9)


def test_the_best_chunk_by_words_stands_in_where_no_vector_tells() -> None:
    (only,) = fuse([chunks("keyword", hit("a", 2.0, piece=1), hit("a", 1.0, piece=0))], 100)
    assert only.best_chunk is not None
    assert (only.best_chunk.start, only.similarity) == (10, None)


def test_what_a_cut_off_ranking_leaves_out_scores_like_its_last_hit() -> None:
    vector = chunks("vector", hit("a", 0.9), hit("b", 0.8))
    found = {one.entry: one for one in fuse([vector, chunks("keyword", hit("c", 5.0), hit("a", 4.0))], 2)}
    assert found["c"].parts["chunk", "vector"].standardised == found["b"].parts["chunk", "vector"].standardised
    assert found["b"].parts["chunk", "keyword"].standardised == found["a"].parts["chunk", "keyword"].standardised


def test_words_in_common_with_nobody_score_zero_when_there_was_room() -> None:
    found = {
        one.entry: one for one in fuse([chunks("vector", hit("a", 0.9), hit("b", 0.8)), chunks("keyword", hit("a", 4.0))], 100)
    }
    assert found["b"].parts["chunk", "keyword"].standardised == pytest.approx(-1)


def test_neighbours_lift_each_other() -> None:
    """`b` and `x` score the same; `b` stands between two that score high."""
    row = [
        hit("a", 0.9, at=1),
        hit("c", 0.9, previous="b", at=3),
        hit("b", 0.5, previous="a", at=2),
        hit("x", 0.5, previous="w", at=4),
        hit("z", 0.1, previous="y", at=5),
    ]
    found = {one.entry: one for one in fuse([chunks("vector", *row)], 100)}
    assert found["b"].own == found["x"].own
    lowest = found["z"].own
    assert found["b"].lift == pytest.approx(LIFT[0] * (found["a"].own + found["c"].own - 2 * lowest))
    assert found["a"].lift == pytest.approx(LIFT[0] * (found["b"].own - lowest) + LIFT[1] * (found["c"].own - lowest))
    assert found["x"].lift == 0
    assert found["b"].beside == ("a", "c")


def test_windows_tell_neighbours_too() -> None:
    rankings = [
        chunks("vector", hit("a", 0.9), hit("b", 0.6), hit("c", 0.5)),
        windows("vector", hit("b", 0.9, form="window", members="abc")),
    ]
    found = {one.entry: one for one in fuse(rankings, 100)}
    assert found["b"].beside == ("a", "c")
    assert found["a"].lift > 0


def test_ties_go_to_the_newest() -> None:
    assert order([chunks("vector", hit("a", 0.5, at=1), hit("b", 0.5, at=3), hit("c", 0.5, at=2))]) == ["b", "c", "a"]


def test_the_newest_turn_is_not_behind_for_having_no_window() -> None:
    """Its chunk is clearly the best of all; that no window is around it yet must not cost it the first place."""
    rankings = [
        chunks("vector", hit("new", 0.95, previous="b"), hit("a", 0.6), hit("b", 0.55, previous="a")),
        chunks("keyword", hit("new", 5.0, previous="b")),
        windows("vector", hit("b", 0.85, form="window", members=["a", "b", "new"]), hit("a", 0.6, form="window", members="ab")),  # type: ignore[arg-type]
        windows("keyword", hit("b", 3.0, form="window", members=["a", "b", "new"])),  # type: ignore[arg-type]
    ]
    found = fuse(rankings, 100)
    assert found[0].entry == "new"
    assert set(found[0].parts) == {("chunk", "vector"), ("chunk", "keyword")}


def test_dead_hits_count_for_nothing() -> None:
    rankings = [
        chunks("vector", hit("a", 0.9), hit("b", 0.8, previous="a"), hit("c", 0.1)),
        windows("vector", hit("b", 0.9, form="window", members="abc"), hit("c", 0.2, form="window", members="bcd")),
    ]
    dead = {"a"}
    found = fuse(rankings, 100, alive=lambda one: not any(member.entry in dead for member in one.members))
    assert {one.entry for one in found} == {"b", "c"}
    (b,) = (one for one in found if one.entry == "b")
    assert [one.form for one in b.hits] == ["chunk"]

"""The rules that stand in for a model in the examples: what they take a sentence for, and what follows."""

from __future__ import annotations

import pytest

from examples.offline.facts import Fact, facts
from examples.offline.knowing import notes, profile


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Hi! My name is Bob.", [("name", "Bob", "")]),
        ("Please call me Robert, thanks", [("name", "Robert", "")]),
        ("My name is Bob and I like jazz and chess.", [("name", "Bob", ""), ("likes", "jazz", ""), ("likes", "chess", "")]),
        (
            "I'm 34. I live in Lisbon now; I work as a nurse",
            [("age", "34", ""), ("home", "Lisbon", ""), ("occupation", "nurse", "")],
        ),
        ("I don't like jazz any more.", [("no longer likes", "jazz", "")]),
        (
            "My friend Ana plays chess. My friend Ben bakes bread.",
            [("friend", "Ana", "plays chess"), ("friend", "Ben", "bakes bread")],
        ),
        ("Ana goes by Anouk now. And my friend Cleo sails.", [("renamed", "Anouk", "Ana"), ("friend", "Cleo", "sails")]),
        ("What is my name? Do I like tea?", []),
        ("Hello, are you there?", []),
        ("The weather is dull.", []),
    ],
)
def test_what_a_sentence_states(said: str, told: list[tuple[str, str, str]]) -> None:
    assert list(map(tuple, facts(said))) == told


def test_a_profile_changes_in_what_was_told_alone() -> None:
    told = [
        Fact("name", "Robert"),
        Fact("likes", "tea"),
        Fact("likes", "chess"),
        Fact("no longer likes", "jazz"),
        Fact("age", "34"),
    ]
    before = {"user_name": "Bob", "interests": ["jazz", "tea"], "home": "Lisbon", "x": 1}
    assert profile(before, told) == {"user_name": "Robert", "interests": ["tea", "chess"], "age": 34}
    assert profile({"interests": ["tea"]}, [Fact("no longer likes", "tea")]) == {"interests": []}
    assert profile({"user_name": "Bob"}, [Fact("name", "Bob"), Fact("friend", "Ana", "sails")]) == {}


def test_notes_are_one_a_friend() -> None:
    existing = {"a": {"context": "c", "content": "Ana plays chess"}, "b": {"context": "c", "content": "Ben bakes"}}
    made = notes(existing, [Fact("renamed", "Anouk", "Ana"), Fact("friend", "Cleo", "sails"), Fact("friend", "Ben", "sings")])
    assert made.edited == {
        "a": {"context": "c", "content": "Anouk, called Ana before, plays chess"},
        "b": {"context": "c", "content": "Ben sings"},
    }
    assert [one["content"] for one in made.new] == ["Cleo sails"]
    assert existing["a"]["content"] == "Ana plays chess"

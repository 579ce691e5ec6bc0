"""Reading the conversations of a LoCoMo file (Maharana et al., ACL 2024) in place; it is never part of the project."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ANSWERABLE = (1, 2, 3, 4)
"""The categories of questions whose evidence is measured; 5 is adversarial."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as the API would get it."""

    id: str
    speaker: str
    content: str
    occurred_at: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the ids of the turns that hold its answer."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation: its turns in order and its questions."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def conversations(path: Path) -> Iterator[Conversation]:
    """The conversations of a file."""
    for sample in json.loads(path.read_text(encoding="utf-8")):
        yield Conversation(sample["sample_id"], tuple(_turns(sample["conversation"])), tuple(_questions(sample["qa"])))


def _turns(conversation: dict[str, Any]) -> Iterator[Turn]:
    number = 1
    while f"session_{number}_date_time" in conversation:
        said = datetime.strptime(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in conversation.get(f"session_{number}", []):
            image = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            yield Turn(turn["dia_id"], turn["speaker"], turn["text"] + image, said.isoformat())
        number += 1


def _questions(asked: list[dict[str, Any]]) -> Iterator[Question]:
    for one in asked:
        # A few evidence strings hold several ids, separated by semicolons, commas or spaces.
        evidence = {part for text in one.get("evidence", []) for part in text.replace(";", " ").replace(",", " ").split()}
        if evidence and one["category"] in ANSWERABLE:
            yield Question(one["question"], one["category"], frozenset(evidence))

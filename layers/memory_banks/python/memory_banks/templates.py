"""Templates: settings of banks for the patterns that agents need, to create from or to start with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Template:
    """A named set of settings. `defaults` are fields of a create request."""

    id: str
    name: str
    description: str
    use_case: str
    defaults: Mapping[str, Any]

    def shown(self) -> dict[str, Any]:
        """As the API shows it."""
        return {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "use_case": self.use_case,
            "defaults": {"name": self.name, "description": self.description, **self.defaults},
        }


TEMPLATES: tuple[Template, ...] = (
    Template(
        "chat-history",
        "Chat history",
        "Everything that was said in a conversation, the older part condensed.",
        "A chat assistant that should still know last week's conversation without reading all of it.",
        {
            "type": "conversation",
            "mode": "fast_and_cheap",
            "max_turns": 60,
            "retention_days": 90,
            "compaction_prompt": (
                "Summarise the conversation so far for the assistant who continues it. Keep what the user wants, what was "
                "decided, what is still open, and every name, number and date. Leave out greetings and small talk."
            ),
        },
    ),
    Template(
        "customer-support",
        "Customer support",
        "One customer a key: problems, what was tried, and how it ended.",
        "A support agent that recognises a returning customer and does not ask the same questions twice.",
        {
            "type": "conversation",
            "mode": "balanced",
            "max_turns": 80,
            "retention_days": 365,
            "strip_quoted_reply_chains": True,
            "compaction_prompt": (
                "Summarise this customer's history for the next support agent. For each problem: what happened, what was "
                "tried, how it was solved or that it is open. Keep product names, versions, order and ticket numbers, "
                "dates and promises made. Note how the customer prefers to be contacted. Leave out pleasantries and "
                "signatures."
            ),
        },
    ),
    Template(
        "user-preferences",
        "User preferences",
        "What one user likes, dislikes and wants to be asked about, kept for good.",
        "An assistant that adapts to a person: language, tone, diet, favourite tools.",
        {
            "type": "general",
            "mode": "balanced",
            "max_size_tokens": 4_000,
            "retention_days": None,
            "compaction_prompt": (
                "Merge these notes into one list of the user's current preferences, one line each. Where two contradict "
                "each other keep the newer one. Keep names, amounts and conditions exactly. Drop what was only true for "
                "one occasion."
            ),
        },
    ),
    Template(
        "facts-and-entities",
        "Facts and entities",
        "Single facts about people, places, products and how they belong together.",
        "A knowledge store that agents add to as they learn and ask by meaning.",
        {"type": "general", "mode": "slow_and_thorough", "retention_days": None},
    ),
    Template(
        "meeting-notes",
        "Meeting notes",
        "What was decided, by whom, and who does what until when; filler is dropped.",
        "An agent that takes part in meetings and answers what was agreed weeks later.",
        {
            "type": "conversation",
            "mode": "balanced",
            "max_size_tokens": 12_000,
            "retention_days": 730,
            "compaction_prompt": (
                "Condense these meeting notes. Keep every decision with its reason and who made it, every action with its "
                "owner and due date, every open question, and all figures. Drop filler, repetition, and discussion that "
                "led nowhere."
            ),
        },
    ),
    Template(
        "coding-assistant",
        "Coding assistant",
        "What an assistant learned about a code base: conventions, decisions, traps, commands that work.",
        "A coding agent that starts its next session where the last one stopped.",
        {
            "type": "conversation",
            "mode": "slow_and_thorough",
            "max_size_tokens": 16_000,
            "retention_days": 180,
            "compaction_prompt": (
                "Summarise this work for a developer who takes over. Keep the goal, decisions with their reasons, file "
                "paths, identifiers, commands and error messages word for word, what was tried and failed, and what is "
                "left to do. Leave out output that can be produced again and steps that were undone."
            ),
        },
    ),
    Template(
        "persona",
        "Persona",
        "Who a character is: past, manner of speaking, relations; it grows and never contradicts itself.",
        "A companion or game character that stays the same person over months.",
        {
            "type": "conversation",
            "mode": "balanced",
            "max_turns": 100,
            "retention_days": None,
            "compaction_prompt": (
                "Update the character's memory in the third person. Keep who the character and the others are, how they "
                "feel about each other, promises, shared experiences in their order, and turns of phrase that are the "
                "character's own. What was established earlier stays true unless the conversation changed it."
            ),
        },
    ),
    Template(
        "session-scratch",
        "Short session scratch",
        "Notes of a running task; the newest stay, everything is gone after a week.",
        "An agent that needs a place for intermediate results and nothing afterwards.",
        {"type": "general", "mode": "fast_and_cheap", "max_turns": 200, "retention_days": 7},
    ),
    Template(
        "research-log",
        "Research log",
        "Sources read and what each of them says, with where it stands.",
        "A research agent that works for days and must be able to cite.",
        {
            "type": "general",
            "mode": "slow_and_thorough",
            "max_size_tokens": 24_000,
            "retention_days": 365,
            "compaction_prompt": (
                "Condense this research log by question. Under each question give the findings, each with its source "
                "(title, author, address, date) exactly as noted, how sure it is, and what contradicts it. Drop sources "
                "that contributed nothing."
            ),
        },
    ),
)
"""In the order in which they are shown."""

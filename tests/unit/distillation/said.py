"""Captured messages, made shortly."""

from __future__ import annotations

from typing import Any

from memory_banks.capture.message import Message

from tests.doubles.clock import START


def said(*texts: str, sender: str = "user", **rest: Any) -> list[Message]:
    """Messages of one run, a minute apart."""
    return [
        Message(id=f"m{number}", run="r1", sender=sender, text=text, occurred_at=START + number * 60_000, **rest)
        for number, text in enumerate(texts)
    ]

"""Any number of distinct real-looking sentences, and their vectors.

The sentences are those of a LoCoMo file's turns; when more are wanted, two of them one after the other, never the same pair
twice. Vectors are the default local model's, kept in `.build/` so that a second run starts at once.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from memory_banks.adapters.embedded.embedder import DIMENSIONS, SentenceEncoder

from benchmarks.locomo import conversations

Vectors = npt.NDArray[np.float32]

KEPT = Path(__file__).parents[1] / ".build" / "benchmarks"
_END = re.compile(r"(?<=[.!?])\s+")
BLOCK = 1_000


def sentences(path: Path, count: int) -> list[str]:
    """`count` distinct texts, the same ones for the same file."""
    turns = [turn.content for conversation in conversations(path) for turn in conversation.turns]
    found = list(dict.fromkeys(part.strip() for turn in turns for part in _END.split(turn) if len(part.split()) > 3))
    chance = random.Random(1)
    chance.shuffle(found)
    texts = dict.fromkeys(found[:count])
    while len(texts) < count:
        first, second = chance.sample(found, 2)
        texts[f"{first} {second}"] = None
    return list(texts)


def questions(path: Path, count: int) -> list[str]:
    """`count` distinct questions of the file, or as many as it has."""
    asked = list(dict.fromkeys(one.text for conversation in conversations(path) for one in conversation.questions))
    return random.Random(2).sample(asked, min(count, len(asked)))


def vectors(texts: Sequence[str]) -> Vectors:
    """One unit vector a text, kept a block at a time: a run that is stopped goes on where it was."""
    KEPT.mkdir(parents=True, exist_ok=True)
    encoder = SentenceEncoder()
    made = np.empty((len(texts), DIMENSIONS), np.float32)
    for first in range(0, len(texts), BLOCK):
        block = texts[first : first + BLOCK]
        file = KEPT / f"{_digest(block)}.npy"
        if not file.is_file():
            new = file.with_suffix(".new.npy")
            np.save(new, np.array(encoder.embed(block), np.float32))
            new.replace(file)
        made[first : first + BLOCK] = np.load(file)
    return made


def _digest(block: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(block).encode()).hexdigest()[:32]

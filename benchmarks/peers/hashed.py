"""The embedding that both sides of a comparison use, and the texts they are given. Needs no package."""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Iterator

DIMENSIONS = 384
WORDS = [f"{first}{second}{third}" for first in "bdfgklmn" for second in ("ar", "el", "io", "um", "ys") for third in "aeioustr"]


def embed(text: str) -> list[float]:
    """A vector of unit length: one hashed direction a word, so that texts which share words are near."""
    vector = [1e-6] * DIMENSIONS
    for word in text.lower().split():
        vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]


def texts(seed: int, words: int = 40) -> Iterator[str]:
    """Different texts without end, the same for the same seed."""
    chance = random.Random(seed)
    while True:
        yield " ".join(chance.choices(WORDS, k=words))

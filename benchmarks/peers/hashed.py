"""The embedding that both sides of a comparison use, and the texts they are given. Needs no package."""

from __future__ import annotations

import math
import random
import zlib
from collections import Counter
from collections.abc import Iterator

DIMENSIONS = 384
WORDS = [f"{first}{second}{third}" for first in "bdfgklmn" for second in ("ar", "el", "io", "um", "ys") for third in "aeioustr"]


def embed(text: str) -> list[float]:
    """A vector of unit length: one hashed direction a word, so that texts which share words are near."""
    counts = Counter(zlib.crc32(word.encode()) % DIMENSIONS for word in text.lower().split())
    length = math.sqrt(sum(count * count for count in counts.values())) or 1.0
    vector = [0.0] * DIMENSIONS
    for direction, count in counts.items():
        vector[direction] = count / length
    return vector


def texts(seed: int, words: int = 40) -> Iterator[str]:
    """Different texts without end, the same for the same seed."""
    chance = random.Random(seed)
    while True:
        yield " ".join(chance.choices(WORDS, k=words))

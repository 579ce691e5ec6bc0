"""An embedder without a model: texts that share words have close vectors. Of Titan's sizes, so every mode has its own."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from functools import lru_cache

from memory_banks.ports import UnknownModel


class HashedEmbedder:
    """Adds one hashed direction a word and scales to unit length."""

    def __init__(self, model: str, dimensions: int) -> None:
        self.model = model
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return list(_hashed(text, self.dimensions))


@lru_cache(10_000)
def _hashed(text: str, dimensions: int) -> tuple[float, ...]:
    vector = [1e-6] * dimensions
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % dimensions] += 1
    length = math.sqrt(sum(value * value for value in vector))
    return tuple(value / length for value in vector)


class HashedEmbedders:
    """`ports.Embedders` for `hashed/words`, and for a second model of one size only."""

    default = "hashed/words"

    def sizes(self, model: str) -> tuple[int, ...]:
        sizes = {"hashed/words": (256, 512, 1024), "hashed/small": (64,)}
        if model not in sizes:
            raise UnknownModel(f"Unknown model {model!r}: one of {', '.join(sizes)}.")
        return sizes[model]

    def __call__(self, model: str, dimensions: int) -> HashedEmbedder:
        if dimensions not in self.sizes(model):
            raise UnknownModel(f"{model} has no vectors of {dimensions} dimensions")
        return HashedEmbedder(model, dimensions)

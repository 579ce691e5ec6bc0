"""The command line with the hash embedding of the comparisons in place of a model: what is measured is everything else.

python -m benchmarks.hashed_service serve --port 0
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks.peers.hashed import DIMENSIONS, embed


class Hashed:
    """`ports.Embedder`."""

    model = "hashed/words"
    dimensions = DIMENSIONS

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text."""
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        return embed(text)


class HashedEmbedders:
    """`ports.Embedders` with one model."""

    default = Hashed.model

    def sizes(self, _model: str) -> tuple[int, ...]:
        """One size."""
        return (DIMENSIONS,)

    def __call__(self, _model: str, _dimensions: int) -> Hashed:
        return Hashed()


def used() -> None:
    """Make this process embed with it."""
    from memory_banks.adapters import models

    models.embedders = lambda _: HashedEmbedders()  # type: ignore[assignment, return-value]


if __name__ == "__main__":
    from clients.cli.main import main as command_line

    used()
    sys.exit(command_line())

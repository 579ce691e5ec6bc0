"""`ports.Blobs` in a dict."""

from __future__ import annotations

from collections.abc import Sequence


class MemoryBlobs:
    """Bytes by name."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, name: str, body: bytes, content_type: str = "application/octet-stream") -> None:
        self.kept[name] = body

    def get(self, name: str) -> bytes | None:
        return self.kept.get(name)

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self.kept.pop(name, None)

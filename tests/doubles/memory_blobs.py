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

    def upload(self, name: str, content_type: str) -> MemoryUpload:
        return MemoryUpload(self, name)

    def link(self, name: str, seconds: int, file_name: str) -> str:
        return f"https://blobs.example/{name}?file={file_name}&seconds={seconds}"

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self.kept.pop(name, None)


class MemoryUpload:
    """`ports.Upload` in a list of pieces."""

    def __init__(self, blobs: MemoryBlobs, name: str) -> None:
        self._blobs = blobs
        self._name = name
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def finish(self) -> None:
        self._blobs.put(self._name, b"".join(self._pieces))

    def abort(self) -> None:
        self._pieces.clear()

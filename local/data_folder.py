"""The folder in which one machine's memory lives."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class InUse(Exception):
    """Another process serves from this folder."""


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Names of what is in it. Only its owner may look inside: texts and a key are there in plain form."""

    path: Path

    @property
    def table(self) -> Path:
        """The journal of the table: the truth."""
        return self.path / "table.sqlite"

    @property
    def index(self) -> Path:
        """The embedded index, which could be rebuilt from the table."""
        return self.path / "index.sqlite"

    @property
    def bucket(self) -> Path:
        """The objects of the bucket."""
        return self.path / "bucket"

    @property
    def log(self) -> Path:
        """What the emulator printed."""
        return self.path / "emulator.log"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Have the folder alone, making it if need be. Raises `InUse`. Ends with the process, however that ends."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.path / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InUse(f"another process is using {self.path}") from error
            yield

    @contextmanager
    def announced(self, **facts: Any) -> Iterator[None]:
        """While inside, other processes can learn these facts (the emulator's endpoint) by `facts`."""
        _write_privately(self._facts, json.dumps(facts | {"pid": os.getpid()}))
        try:
            yield
        finally:
            self._facts.unlink(missing_ok=True)

    def facts(self) -> dict[str, Any]:
        """What the process that has the folder announced. Raises `InUse` when it has not yet."""
        try:
            facts: dict[str, Any] = json.loads(self._facts.read_text())
        except FileNotFoundError as error:
            raise InUse(f"another process is just starting or stopping in {self.path}; try again") from error
        return facts

    def own_key(self) -> str:
        """The API key that `serve` uses here when none is given, made on the first call."""
        path = self.path / "api-key"
        if not path.exists():
            _write_privately(path, f"mb_{secrets.token_urlsafe(32)}\n")
        return path.read_text().strip()

    @property
    def _facts(self) -> Path:
        return self.path / "serve.json"


def _write_privately(path: Path, text: str) -> None:
    """All or nothing, readable by its owner alone."""
    temporary = path.with_suffix(".new")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    temporary.replace(path)

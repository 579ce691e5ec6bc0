"""The deployed functions, called in this process the way Lambda calls one instance: one event at a time."""

from __future__ import annotations

import importlib
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from local.aws import ACCOUNT, REGION

TIMEOUTS = {"api": 30, "ingest": 120, "compact": 300, "export": 900, "sweep": 300}
"""Seconds a function may run in the cloud; here only told to it."""


@dataclass(frozen=True, slots=True)
class Context:
    """Lambda's context object."""

    function_name: str
    timeout_seconds: float
    function_version: str = "$LATEST"
    memory_limit_in_mb: int = 1024
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    started: float = field(default_factory=time.monotonic)

    @property
    def invoked_function_arn(self) -> str:
        """The function's name in AWS's long form."""
        return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        """How long the function may still run."""
        return max(0, round((self.timeout_seconds - time.monotonic() + self.started) * 1000))


class Function:
    """One function. Callers queue for it: its resolver is not thread safe, and on Lambda it is alone too."""

    def __init__(self, name: str, handler: Callable[[Any, Any], Any] | None = None) -> None:
        """`functions/{name}/handler.py`, imported now; or another `handler`."""
        self.name = name
        self._handler = handler or importlib.import_module(f"functions.{name}.handler").handler
        self._lock = threading.Lock()

    def __call__(self, event: Any) -> Any:
        """The function's result for an event; whatever it raises."""
        with self._lock:
            return self._handler(event, Context(f"memory-banks-{self.name}", TIMEOUTS.get(self.name, 60)))

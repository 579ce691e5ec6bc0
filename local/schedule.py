"""What EventBridge Scheduler does: sends each sweep its event, at the start, soon after it, and then at a fixed rate."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from local.lambdas import Function

logger = logging.getLogger(__name__)


SOON_SECONDS = 180
"""After the start: by then all is due whose message a killed process has lost."""


class Schedule:
    """Calls the sweep in a thread of its own, one kind after the other."""

    def __init__(self, sweep: Function, kinds: Sequence[str], every_seconds: float) -> None:
        self._sweep = sweep
        self._kinds = kinds
        self._every = every_seconds
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="schedule", daemon=True)

    def start(self) -> None:
        """Begin with a first round, which finds what a killed process left."""
        self._thread.start()

    def stop(self) -> None:
        """End after the sweep at hand."""
        self._ending.set()
        if self._thread.ident:
            self._thread.join()

    def _run(self) -> None:
        wait = min(SOON_SECONDS, self._every)
        while True:
            for kind in self._kinds:
                try:
                    self._sweep({"sweep": kind})
                except Exception:
                    logger.exception("the %s sweep failed; it comes again in %s s", kind, self._every)
                if self._ending.is_set():
                    return
            if self._ending.wait(wait):
                return
            wait = self._every

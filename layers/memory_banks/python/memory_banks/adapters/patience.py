"""Calls a busy service again, with growing jittered pauses, while the caller's time lasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..ports import Chance, Clock, ModelUnavailable

ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.25

Answer = TypeVar("Answer")


class Busy(Exception):
    """What an attempt raises when another one may help. `cause` is what the caller gets when none is left."""

    def __init__(self, cause: ModelUnavailable, after_seconds: float | None = None) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.after_seconds = after_seconds
        """How long the service asked us to wait."""


def within(seconds: float, attempt: Callable[[float], Answer], clock: Clock, chance: Chance) -> Answer:
    """The answer of `attempt(seconds left)`, tried at most four times and never begun after `seconds`.

    A pause that would not fit in the time left is not begun either. Raises the last attempt's `ModelUnavailable`.
    """
    deadline = clock.now() + round(seconds * 1000)
    for number in range(ATTEMPTS):
        left = (deadline - clock.now()) / 1000
        if left <= 0:
            break
        try:
            return attempt(left)
        except Busy as busy:
            pause = FIRST_PAUSE_SECONDS * 2**number * (0.5 + chance.random() / 2)
            pause = max(pause, busy.after_seconds or 0)
            if number == ATTEMPTS - 1 or clock.now() + pause * 1000 >= deadline:
                raise busy.cause from busy
            clock.sleep(pause)
    raise ModelUnavailable("No time was left to ask the model.")

"""Retrying what another transaction got in the way of: with jitter, until a deadline."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .errors import DatabaseUnavailable
from .ports import Chance, Clock, ConditionFailed, Contended, TableUnavailable

Result = TypeVar("Result")

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 1.0
"""Seconds. The n-th pause is random between 0 and `FIRST_PAUSE` × 2ⁿ (full jitter), at most the longest."""


class Superseded(Exception):
    """A condition of what was to be done along with a write does not hold: nothing was written, and trying again won't help."""


def until_committed(attempt: Callable[[], Result], clock: Clock, chance: Chance, deadline: int) -> Result:
    """Run `attempt` until it is not contended. It must read afresh each time, and be safe to repeat.

    A failed condition means that what was read has changed: the attempt runs again. Raises `DatabaseUnavailable` at the
    deadline (ms), or when the table can't be reached.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return attempt()
        except (Contended, ConditionFailed) as error:
            wait = chance.random() * pause
            pause = min(pause * 2, LONGEST_PAUSE)
            if clock.now() + wait * 1000 >= deadline:
                raise DatabaseUnavailable("the table stayed contended; nothing of this was written, try again") from error
            clock.sleep(wait)
        except TableUnavailable as error:
            raise DatabaseUnavailable("the table can't be reached") from error


def contended(action: Callable[[], Result], clock: Clock, chance: Chance, tries: int = 30) -> Result:
    """Run `action`, again with jitter as long as it is contended; the last `Contended` is raised. Failed conditions are too.

    For what is safe to repeat because its conditions tell whether it still applies.
    """
    pause = FIRST_PAUSE
    for _ in range(tries - 1):
        try:
            return action()
        except Contended:
            clock.sleep(chance.random() * pause)
            pause = min(pause * 2, LONGEST_PAUSE)
    return action()

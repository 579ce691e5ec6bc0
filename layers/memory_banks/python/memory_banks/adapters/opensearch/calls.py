"""One request to OpenSearch, retried while that can help, and its failures by what they mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any

from ...ports import Chance, Clock, IndexUnavailable

OVERLOADED = frozenset({429, 502, 503, 504})
"""Statuses, of a request or of one item of a bulk, that a pause may cure."""

REFUSED_US = frozenset({401, 403})
"""The domain does not let us in: an operator's matter, so a pause and never the document's fault."""

CONNECTION_TRIES = 3
"""A connection may have died while the process was frozen; a domain that refuses three times is down."""

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
"""Seconds. The n-th pause is random between 0 and `FIRST_PAUSE` × 2ⁿ (full jitter), at most the longest."""


class Refused(Exception):
    """OpenSearch understood the request and will never do it: a fault of ours, or an index that is not as we made it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"OpenSearch answered {status}: {reason}")
        self.status = status
        self.reason = reason


class Patience:
    """The pauses of one operation, inside its time budget."""

    def __init__(self, clock: Clock, chance: Chance, seconds: float) -> None:
        self._clock = clock
        self._chance = chance
        self._until = clock.now() + seconds * 1000
        self._pause = FIRST_PAUSE

    @property
    def left(self) -> float:
        """Seconds of the budget that are left, at least a tenth of one."""
        return max(0.1, (self._until - self._clock.now()) / 1000)

    def rest(self, why: str) -> None:
        """Pause before the next try. Raises `IndexUnavailable` with the reason when the budget does not allow one."""
        seconds = self._chance.random() * self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        if self._clock.now() + seconds * 1000 >= self._until:
            raise IndexUnavailable(why)
        self._clock.sleep(seconds)


class Calls:
    """Requests through an opensearch-py client that is made with the first one."""

    def __init__(self, connect: Callable[[], Any], clock: Clock, chance: Chance) -> None:
        self._connect = connect
        self._clock = clock
        self._chance = chance

    @cached_property
    def _client(self) -> Any:
        return self._connect()

    def patience(self, seconds: float) -> Patience:
        """A budget for one operation."""
        return Patience(self._clock, self._chance, seconds)

    def ask(
        self,
        method: str,
        path: str,
        *,
        patience: Patience,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        accept: Collection[int] = (),
    ) -> Any:
        """The answer's body. `accept`: error statuses whose body is an answer too.

        Safe to repeat is what every caller's request must be. Raises `IndexUnavailable` (unreachable, overloaded for
        longer than the budget, or not letting us in) or `Refused`.
        """
        from opensearchpy.exceptions import ConnectionError as Unreachable
        from opensearchpy.exceptions import TransportError

        tries = 0
        while True:
            tries += 1
            options = {"request_timeout": patience.left, "ignore": tuple(accept)}
            try:
                return self._client.transport.perform_request(method, path, params={**(params or {}), **options}, body=body)
            except Unreachable as error:
                why = f"OpenSearch can't be reached: {error.error}"
                if tries >= CONNECTION_TRIES:
                    raise IndexUnavailable(why) from error
            except TransportError as error:
                why = f"OpenSearch answered {error.status_code}: {_reason(error.info)}"
                if error.status_code in REFUSED_US:
                    raise IndexUnavailable(why) from error
                if error.status_code not in OVERLOADED:
                    raise Refused(int(error.status_code), _reason(error.info)) from error
            patience.rest(why)


def _reason(info: Any) -> str:
    """The first cause in an error's body, in one line."""
    problem = info.get("error") if isinstance(info, Mapping) else info
    if isinstance(problem, Mapping):
        return reason(problem)
    return str(problem)[:500]


def reason(problem: Mapping[str, Any]) -> str:
    """What an `error` object says, with its inner causes: `mapper_parsing_exception: failed to parse; …`."""
    said = []
    roots = problem.get("root_cause")
    cause: Any = roots[0] if roots else problem
    while isinstance(cause, Mapping):
        said.append(f"{cause.get('type')}: {cause.get('reason')}")
        cause = cause.get("caused_by")
    return "; ".join(said[:3])[:500]

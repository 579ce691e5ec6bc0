"""The gate: every call of a port passes it, and a test decides what becomes of the call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from memory_banks.ports import Contended, IndexUnavailable, ModelError, ModelUnavailable, QueueUnavailable, TableUnavailable


class Death(BaseException):
    """The process dies here. Nothing of the service may catch it."""


class Call(NamedTuple):
    """One call of a port: the n-th of a run."""

    number: int
    port: str
    method: str


Fault = str
"""What becomes of a call; see `FAULTS`."""

UNAVAILABLE: dict[str, type[Exception]] = {
    "table": TableUnavailable,
    "queue": QueueUnavailable,
    "index": IndexUnavailable,
    "embedder": ModelUnavailable,
    "chat": ModelUnavailable,
}

WRITES = {"write", "transact", "send", "delete", "delete_entries", "delete_partition"}
"""Methods that take effect (an index's and a table's `write` alike)."""


def faults_of(call: Call) -> list[Fault]:
    """What can happen to a call.

    lost: the port is unavailable, nothing took effect. unanswered: it took effect, and looks unavailable.
    contended: throttled, or in conflict with another transaction. repeated: a lone write took effect, its answer was lost, and the
    client library sent it again. refused: the model does not want the text. blank: the model says nothing. vanished: the queue
    loses the messages. doubled: it delivers them twice. dead before, dead after: the process dies around the call.
    """
    kinds = ["lost", "dead before"]
    if call.method in WRITES:
        kinds += ["unanswered", "dead after"]
    if call.port == "table":
        kinds.append("contended")
        if call.method == "write":
            kinds.append("repeated")
    if call.port == "queue":
        kinds += ["vanished", "doubled"]
    if call.port in {"embedder", "chat"}:
        kinds.append("refused")
    if call.port == "chat":
        kinds += ["blank", "dead after"]
    return kinds


class Gate:
    """Counts the calls of all ports; `decide` names the fault of a call (or None), `pause` runs before each."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.decide: Callable[[Call], Fault | None] | None = None
        self.pause: Callable[[Call], None] | None = None

    @contextmanager
    def open(self) -> Iterator[None]:
        """Nothing fails, and nobody waits."""
        before = self.decide, self.pause
        self.decide = self.pause = None
        try:
            yield
        finally:
            self.decide, self.pause = before

    def pass_through(self, port: str, method: str, effect: Callable[[], Any]) -> Any:
        """Do one call, or what the test wants instead."""
        call = Call(len(self.calls) + 1, port, method)
        self.calls.append(call)
        if self.pause:
            self.pause(call)
        fault = self.decide(call) if self.decide else None
        match fault:
            case None:
                return effect()
            case "lost":
                raise UNAVAILABLE[port]("injected")
            case "unanswered":
                effect()
                raise UNAVAILABLE[port]("injected")
            case "contended":
                raise Contended("injected")
            case "repeated" | "doubled":
                effect()
                return effect()
            case "refused":
                raise ModelError("injected")
            case "blank":
                return "  \n"
            case "vanished":
                return None
            case "dead before":
                raise Death
            case "dead after":
                effect()
                raise Death
        raise AssertionError(fault)


class Through:
    """A port whose calls pass the gate; what is no call of the port (counters, checks of tests) is reached directly."""

    def __init__(self, gate: Gate, port: str, target: Any, methods: set[str]) -> None:
        self._gate, self._port, self._target, self._methods = gate, port, target, methods

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if name not in self._methods:
            return found
        return lambda *args, **rest: self._gate.pass_through(self._port, name, lambda: found(*args, **rest))


class EmbeddersThrough:
    """`ports.Embedders` whose embedders pass the gate."""

    def __init__(self, gate: Gate, target: Any) -> None:
        self._gate, self._target = gate, target
        self.default = target.default
        self.sizes = target.sizes

    def __call__(self, model: str, dimensions: int) -> Any:
        return Through(self._gate, "embedder", self._target(model, dimensions), {"embed", "embed_query"})


TABLE = {"read", "query", "count", "write", "transact", "due", "aged"}
INDEX = {"write", "search", "delete", "delete_entries", "delete_partition", "scan", "refresh"}

"""The ledger of a key's captured runs: how many there are, how far they are distilled, and who is at work on them.

The items of captured runs:

    L#{bank}#{generation}#{0..15} / {partition}          the ledger
    M#{bank}#{generation}#{partition} / N#{place}        a run, and each of its messages
    M#{bank}#{generation}#{partition} / I#{run id}       that this run was counted
    M#{bank}#{generation}#{partition} / O#{place}        what a batch of messages was made into (see `made`), Q#{ulid} again
    M#{bank}#{generation}#{partition} / A#{place}        a message whose results are still owed (see `owing`)
    Z#{bank}#{generation}#{0..15} / {message id}         where the message with a caller's id is

Runs are numbered by the ledger in the order of their arrival, so what was distilled is a number and no message: deleting
messages, late ones, and clocks that differ change nothing about it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..bank import Bank
from ..partitions import group_of
from ..ports import Either, Is, Item, Key

LEASE_MS = 360_000
"""How long a distillation's lease holds: longer than its function may run."""

START = "0" * 12 + "~"
"""The place before the first run."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger as it is read. Times are ms."""

    partition: str
    key: str
    runs: int = 0
    """Captured in all; also the number of the last."""
    at: str = START
    """The place through which everything is distilled."""
    held: int = 0
    """How many of the last runs came while auto_capture was off: stored, not counted."""
    first_at: int = 0
    """When the oldest waiting run came."""
    last_at: int = 0
    """When the last run came."""
    processed: int = 0
    """Messages distilled in all."""
    synced_at: int = 0
    """When a distillation last ended well."""
    edits: int = 0
    """Grows with every edit and deletion of a message, and when the key is forgotten."""
    forgotten: int = 0
    """The number of the last run that was forgotten."""
    job: str | None = None
    """The job of the distillation that waits."""
    asked: bool = False
    """Whether it is to start at once."""
    whole: bool = False
    """Whether the one at work was asked for: it takes what was only stored, too."""
    owes: bool = False
    """Whether messages wait that were edited, deleted, or are to be tried again."""
    lease: str | None = None
    lease_until: int = 0
    running: str | None = None
    """The job of the one at work."""
    plan: str | None = None
    """The place of a batch whose documents are planned and not all written."""
    reset: str | None = None
    """The job that makes everything again, while what was made is being removed."""
    reset_at: str | None = None
    """The place through which everything stays when all is made again: it was compacted. Set when the removing begins."""
    failures: int = 0
    retry_at: int = 0
    error: str | None = None

    @property
    def through(self) -> int:
        """The number of the last run that is distilled as a whole."""
        number = int(self.at[:12])
        return number if self.at.endswith("~") else number - 1

    @property
    def pending(self) -> int:
        """Runs that are counted and wait."""
        return max(self.runs - self.through - self.held, 0)


def place_of(number: int, index: int | None = None) -> str:
    """Where a run, or a message of it, sorts: what was distilled through a place can be compared with it as text."""
    return f"{number:012d}" if index is None else f"{number:012d}#{index:04d}"


def end_of(number: int) -> str:
    """The place after all of a run."""
    return f"{number:012d}~"


def ledgers_pk(bank: Bank, group: int) -> str:
    """The table partition of a group of ledgers."""
    return f"L#{bank.id}#{bank.generation}#{group}"


def ledger_key(bank: Bank, partition: str) -> Key:
    """Where the ledger of a partition is."""
    return Key(ledgers_pk(bank, group_of(partition)), partition)


def runs_pk(bank: Bank, partition: str) -> str:
    """The table partition of a key's runs and messages."""
    return f"M#{bank.id}#{bank.generation}#{partition}"


def names_pk(bank: Bank, group: int) -> str:
    """The table partition of a group of message ids."""
    return f"Z#{bank.id}#{bank.generation}#{group}"


def name_key(bank: Bank, message_id: str) -> Key:
    """Where it is noted which message has a caller's id."""
    return Key(names_pk(bank, group_of(message_id)), message_id)


def from_item(item: Item) -> Ledger:
    """A ledger from its item."""
    known = {name: item[name] for name in _ATTRIBUTES if name in item}
    return Ledger(partition=item["sk"], asked="asked" in item, owes="owes" in item, whole="whole" in item, **known)


_ATTRIBUTES = (
    *("key", "runs", "at", "held", "first_at", "last_at", "processed", "synced_at", "edits", "forgotten", "job"),
    *("lease", "lease_until", "running", "plan", "reset", "reset_at", "failures", "retry_at", "error"),
)


def unchanged(ledger: Ledger, *names: str) -> tuple[Is | Either, ...]:
    """The condition that these attributes are as they were read; one that is not there counts as its default."""
    tests: list[Is | Either] = [Is("pk", "exists")]
    blank = Ledger("", "")
    for name in names:
        value = getattr(ledger, name)
        if value != getattr(blank, name):
            tests.append(Is(name, "=", value))
        elif value is None or isinstance(value, bool):
            tests.append(Is(name, "missing"))
        else:
            tests.append(Either((Is(name, "missing"), Is(name, "=", value))))
    return tuple(tests)

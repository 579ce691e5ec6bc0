"""A captured message: what someone said in a run, as it is distilled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a run. Times are ms."""

    id: str
    """The caller's, or one of ours; unique under its key."""
    run: str
    """The run it came with."""
    sender: str
    """`user`, `assistant`, `system`, or another role that the caller has."""
    text: str
    occurred_at: int
    name: str | None = None
    """The sender's name."""
    user_id: str | None = None
    """Whose memory it is, for schemas."""
    error: bool = False
    """An error message: kept, never distilled."""
    version: int = 1
    """Grows with every edit."""

    @property
    def blank(self) -> bool:
        """Whether there is nothing in it to remember."""
        return self.error or not self.text.strip()

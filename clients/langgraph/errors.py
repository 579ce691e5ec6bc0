"""What can go wrong between a graph and its memory."""

from __future__ import annotations


class StoreError(Exception):
    """Base of all of them."""


class Refused(StoreError, ValueError):
    """The request can't be met as it is; the message names the field and what is allowed."""


class Forbidden(StoreError, PermissionError):
    """The API key is unknown, or lacks the scope."""


class Conflict(StoreError):
    """The item has another version than the one that was to be replaced, or is there although it should not be."""


class Unavailable(StoreError, ConnectionError):
    """The service, or something behind it, is away. What was to be written may or may not be; writing it again is safe."""


class AnswerTooLarge(StoreError):
    """The answer would be longer than the service may give; less has to be asked for."""

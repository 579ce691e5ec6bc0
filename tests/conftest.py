"""Fixtures that every folder of tests shares."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.doubles.clock import ManualClock

if TYPE_CHECKING:
    from local.emulator import Emulator


@pytest.fixture
def clock() -> ManualClock:
    """A clock that only the test moves."""
    return ManualClock()


@pytest.fixture
def chance() -> random.Random:
    """Chance that repeats itself."""
    return random.Random(0)


@pytest.fixture(scope="session")
def emulator() -> Iterator[Emulator]:
    """The AWS emulator process with our table, queues and bucket, shared by the whole run: use names of your own."""
    from local.emulator import Emulator

    with Emulator.started() as emulator:
        yield emulator

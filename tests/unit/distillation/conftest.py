"""What distillation's tests share."""

from __future__ import annotations

import pytest

from tests.doubles.clock import ManualClock
from tests.doubles.world import World


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def world() -> World:
    return World()

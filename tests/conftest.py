"""Fixtures that every folder of tests shares."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.doubles.clock import ManualClock

if TYPE_CHECKING:
    from memory_banks.adapters.opensearch import OpenSearchIndex
    from memory_banks.settings import Settings

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


@pytest.fixture(scope="session")
def opensearch(request: pytest.FixtureRequest) -> Iterator[Settings]:
    """Settings of a real OpenSearch node, shared by the whole run. Call indexes `memory-banks-test-…`."""
    from tests.opensearch_node import opensearch_settings

    with opensearch_settings(asked_for="opensearch" in request.config.getoption("-m")) as settings:
        yield settings


@pytest.fixture
def opensearch_index(opensearch: Settings) -> Iterator[OpenSearchIndex]:
    """The adapter on the real node; test indexes are removed afterwards."""
    from memory_banks.adapters.opensearch import OpenSearchIndex
    from memory_banks.adapters.opensearch.client import connect
    from memory_banks.clock import SystemClock

    yield OpenSearchIndex.from_settings(opensearch, SystemClock(), random.SystemRandom())
    client = connect(opensearch)
    client.indices.delete(index="memory-banks-test-*", ignore_unavailable=True)
    client.indices.delete_index_template(name="memory-banks-test-*", ignore=404)
    client.close()

"""Searching a whole service over a real OpenSearch node, where its limits matter."""

from __future__ import annotations

import pytest
from memory_banks.adapters.opensearch import OpenSearchIndex

from tests.doubles.world import World
from tests.integration.test_rebuild_opensearch import TestIndexes
from tests.unit.test_search import test_just_after_compactions_of_many_keys_what_lives_is_found  # noqa: F401

pytestmark = pytest.mark.opensearch


@pytest.fixture
def world(opensearch_index: OpenSearchIndex) -> World:
    return World(index=TestIndexes(opensearch_index))

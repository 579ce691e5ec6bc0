"""`memory-banks reconcile` on a real OpenSearch node: the same tests as on the embedded index."""

from __future__ import annotations

from typing import Any

import pytest
from memory_banks.adapters.opensearch import OpenSearchIndex
from memory_banks.adapters.opensearch.client import connect
from memory_banks.settings import Settings

from tests.doubles.world import World
from tests.integration.test_rebuild_opensearch import TestIndexes
from tests.integration.test_reconcile_command import (  # noqa: F401
    reconcile,
    test_an_index_that_lacks_entries_and_has_orphans_is_mended_both_ways,
    test_an_index_that_was_dropped_is_filled_again,
    test_another_bank_in_the_index_is_untouched,
)
from tests.integration.test_reconcile_command import test_documents_of_lost_keys_and_of_newer_versions_go as lost_and_newer
from tests.unit.test_rebuild import filled

pytestmark = pytest.mark.opensearch


@pytest.fixture
def world(opensearch_index: OpenSearchIndex) -> World:
    return World(index=TestIndexes(opensearch_index))


def test_documents_of_lost_keys_and_of_newer_versions_go(
    world: World,
    reconcile: Any,  # noqa: F811
    opensearch: Settings,
) -> None:
    """The clock of the test is not the node's, which would remember versions of what was deleted for a minute.

    Less than zero, not one millisecond: the node's own idea of the time moves in steps of 200.
    """
    filled(world)
    client = connect(opensearch)
    client.indices.put_settings(index="memory-banks-test-*", body={"index": {"gc_deletes": "-1"}})
    client.close()
    lost_and_newer(world, reconcile)

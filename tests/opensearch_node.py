"""The OpenSearch that tests use: one node a run, or the one at `OPENSEARCH_URL`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from memory_banks.settings import Settings

from local.opensearch import LocalNode, NodeFailed


@contextmanager
def opensearch_settings(*, asked_for: bool) -> Iterator[Settings]:
    """Settings that reach an OpenSearch, for as long as the context lasts.

    A node that can't be started is a failure in continuous integration and when it was `asked_for` (`-m opensearch`);
    only a developer's run of everything on a machine without Java skips what needs it.
    """
    ours = {"index": "opensearch", "opensearch_replicas": 0, "opensearch_refresh_seconds": -1}
    given = os.environ.get("OPENSEARCH_URL") or os.environ.get("MEMORY_BANKS_OPENSEARCH_URL")
    if given:
        chosen = Settings.from_environment().model_dump(exclude_unset=True)
        yield Settings.model_validate({"opensearch_auth": "none"} | chosen | ours | {"opensearch_url": given})
        return
    with ExitStack() as stack:
        try:
            node = stack.enter_context(LocalNode.started())
        except NodeFailed as problem:
            if asked_for or os.environ.get("CI"):
                pytest.fail(f"the OpenSearch node did not start: {problem}", pytrace=False)
            pytest.skip(f"no OpenSearch node on this machine: {problem}")
        yield Settings.model_validate(ours | {"opensearch_url": node.url, "opensearch_auth": "none"})

"""A real OpenSearch node with k-NN on this machine, from Maven Central, for tests and for local use.

`python -m local.opensearch run` starts one on 127.0.0.1; `LocalNode.started()` does it for tests. Needs a JDK (17 or
later) and Maven. Whoever has an OpenSearch of their own sets `OPENSEARCH_URL` and needs none of this.
"""

from .node import LocalNode, NodeFailed

__all__ = ["LocalNode", "NodeFailed"]

"""The index in OpenSearch: k-NN and BM25, filtered inside the search, one round trip."""

from .index import OpenSearchIndex

__all__ = ["OpenSearchIndex"]

"""Stand-ins for cloud services that need no account and no network: index, embedder, summariser."""

"""Writing prepared vectors: our bulk writes against opensearch-py's own `parallel_bulk` on the same documents.

    uv run python -m benchmarks.bulk --data locomo.json [--documents 10000]

Each writes everything into a new index, by turns, several rounds. `parallel_bulk` is given ready-made actions (4 threads, 500
a request, its defaults); ours starts from the port's documents. Goal: at least 80 % of its documents a second.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory_banks.adapters.opensearch.documents import body, stored_id
from memory_banks.ports import IndexDocument

from benchmarks import node
from benchmarks.sentences import sentences, vectors

BATCH = 500
"""Documents of one write: what an ingestion of some requests' entries brings."""


def actions(name: str, documents: list[IndexDocument], dimensions: int) -> list[dict[str, Any]]:
    """What `parallel_bulk` is given: the same ids, versions, routing and fields."""
    return [
        {
            "_op_type": "index",
            "_index": name,
            "_id": stored_id(document.bank, document.id),
            "routing": document.bank,
            "version": document.version,
            "version_type": "external_gte",
            "_source": body(document, dimensions),
        }
        for document in documents
    ]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("MEMORY_BANKS_LOCOMO"), required="MEMORY_BANKS_LOCOMO" not in os.environ
    )
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--heap", default="2g", help="of the local node")
    arguments = parser.parse_args()
    texts = sentences(Path(arguments.data), arguments.documents)
    made = vectors(texts)
    dimensions = made.shape[1]
    documents = node.documents(texts, made)

    from opensearchpy import OpenSearch
    from opensearchpy.helpers import parallel_bulk

    with node.opened(arguments.heap) as found:
        print(node.told(found), flush=True)
        plain = OpenSearch(hosts=[found.settings.opensearch_url], timeout=60)

        def theirs(name: str) -> Callable[[], None]:
            prepared = actions(name, documents, dimensions)

            def run() -> None:
                assert all(done for done, _ in parallel_bulk(plain, prepared))

            return run

        def ours(name: str) -> Callable[[], None]:
            def run() -> None:
                for first in range(0, len(documents), BATCH):
                    node.write(found.index, name, documents[first : first + BATCH])

            return run

        rates: dict[str, list[float]] = {"ours": [], "theirs": []}
        contenders = {"ours": ours, "theirs": theirs}
        for number in range(arguments.rounds + 1):
            for who in random.sample(sorted(contenders), 2):
                name = f"memory-banks-bench-{random.SystemRandom().getrandbits(40):x}"
                found.index.write(name, [], dimensions)  # both find the index made
                run = contenders[who](name)
                began = time.perf_counter()
                run()
                seconds = time.perf_counter() - began
                node.settled(plain, name)
                assert plain.count(index=name)["count"] == len(documents)
                plain.indices.delete(index=name)
                plain.indices.delete_index_template(name=name)
                if number:  # the first round warms the node's compiler
                    rates[who].append(len(documents) / seconds)
        ratio = statistics.median(rates["ours"]) / statistics.median(rates["theirs"])
        for who, title in (("ours", "memory-banks"), ("theirs", "parallel_bulk")):
            shown = ", ".join(f"{rate:,.0f}" for rate in rates[who])
            print(f"{title:>14}: {statistics.median(rates[who]):,.0f} documents/s ({shown})")
        print(f"ratio {ratio:.2f} (goal at least 0.80: {'met' if ratio >= 0.8 else 'MISSED'})")


if __name__ == "__main__":
    main()

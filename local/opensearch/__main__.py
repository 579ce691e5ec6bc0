"""`python -m local.opensearch start|stop|run`: a single OpenSearch node on 127.0.0.1."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from .build import TOOLS
from .node import INIT, LocalNode, NodeFailed


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m local.opensearch", description=__doc__)
    parser.add_argument(
        "action", nargs="?", default="run", choices=["run", "start", "stop"], help="run in the foreground (default)"
    )
    parser.add_argument("--port", type=int, default=9200, help="0 takes a free one (default: 9200)")
    parser.add_argument("--data-dir", type=Path, default=TOOLS / "data", help="where data and log are kept")
    parser.add_argument("--heap", default="512m", help="Java heap (default: 512m)")
    chosen = parser.parse_args(arguments)

    if chosen.action == "stop":
        node = LocalNode.running(chosen.data_dir)
        if not node:
            print(f"no node runs in {chosen.data_dir}")
            return 1
        node.stop()
        print("stopped")
        return 0

    background = chosen.action == "start"
    try:
        node = LocalNode.start(chosen.data_dir, port=chosen.port, heap=chosen.heap, parent=INIT if background else None)
    except NodeFailed as problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"OpenSearch answers at {node.url}; use it with OPENSEARCH_URL={node.url}", flush=True)
    if not background:
        ended = {signal.SIGINT, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, ended)
        signal.sigwait(ended)
        node.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

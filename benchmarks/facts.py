"""Single facts in a general bank: is the right one found first, whatever words, look-alikes and languages a question has?

The facts and questions of `benchmarks/data/facts.json` are of our own writing: paraphrases that share no word with the fact,
exact words (codes, names), near-duplicates of which one is right, the same language (sixteen of them), a question in another
language than the fact's, and long notes. What helps conversations must not hurt these.

    uv run python -m benchmarks.facts                # the HTTP API of a `serve` of its own
    uv run python -m benchmarks.facts --in-process   # the domain over a table in memory
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from benchmarks.recall import BATCH, Memory, add_service, chosen

DATA = Path(__file__).parent / "data" / "facts.json"
DEPTH = 10


def measure(memory: Memory) -> None:
    """Print how often the right fact is first, and among the first five, and the mean reciprocal rank, by kind of question."""
    data = json.loads(DATA.read_text(encoding="utf-8"))
    ids: dict[str, str] = {}
    for first in range(0, len(data["facts"]), BATCH):
        facts = data["facts"][first : first + BATCH]
        written = memory.write("", [{"content": fact["text"]} for fact in facts])
        ids |= {fact["id"]: entry for fact, entry in zip(facts, written, strict=True)}
    memory.settle()
    ranks: dict[str, list[float]] = defaultdict(list)
    for question in data["questions"]:
        found = memory.find("", question["text"], DEPTH)
        right = {ids[answer] for answer in question["answers"]}
        rank = next((place for place, entry in enumerate(found, 1) if entry in right), float("inf"))
        ranks[question["kind"]].append(rank)
        ranks["all"].append(rank)
    print(f"{'':20}{'questions':>10}{'first':>8}{'in 5':>8}{'MRR':>8}")
    for kind, all_ranks in sorted(ranks.items(), key=lambda one: (one[0] == "all", one[0])):
        first_share = statistics.fmean(rank == 1 for rank in all_ranks)
        in_five = statistics.fmean(rank <= 5 for rank in all_ranks)
        reciprocal = statistics.fmean(1 / rank for rank in all_ranks)
        print(f"{kind:20}{len(all_ranks):10}{first_share:8.3f}{in_five:8.3f}{reciprocal:8.3f}")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_service(parser)
    with chosen(parser.parse_args(), "general") as memory:
        measure(memory)
    return 0


if __name__ == "__main__":
    sys.exit(main())

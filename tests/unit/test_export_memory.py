"""An export of 100,000 entries stays far below the function's memory, in every format."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = 100_000
MEGABYTES = 256

WORKER = """
import json, sys
sys.path[:0] = {paths!r}
from memory_banks import banks, entries, exporting, exports, ids, writing
from memory_banks.entries import Entry, NewEntry
from memory_banks.ports import Page
from memory_banks.requests import CreateBank
from tests.doubles.memory_blobs import MemoryBlobs
from tests.doubles.world import World
from tests.doubles.clock import ManualClock
import random

def peak():
    "Kilobytes. Not ru_maxrss, which a process takes over from the one that started it."
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

class Away(MemoryBlobs):
    "Takes what it is given and keeps nothing."
    size = 0
    def upload(self, name, content_type):
        return self
    def write(self, piece):
        self.size += len(piece)
    def finish(self): pass
    def abort(self): pass

world = World(ManualClock(), random.Random(1))
world.blobs = Away()
bank = banks.create(world, "acme", CreateBank.model_validate({{"name": "n", "retention_days": None}}), "2026-10-21")
writing.write(world, "acme", bank.id, [NewEntry("x", "k", "user")], deadline=world.clock.now() + 10_000)
partition = ids.partition_of(bank.id, "k")
start = world.clock.now()
query = world.table.query

def many(pk, **asked):
    "A page of a key that has {count} entries of a kilobyte, made as it is read."
    if not pk.startswith("P#"):
        return query(pk, **asked)
    after = asked["after"]
    first = int(after[-8:]) + 1 if after.startswith("E#" + ids.at(start)[:10]) else 0
    items = []
    for n in range(first, min(first + asked["limit"], {count})):
        sort = ids.at(start)[:10] + f"{{n:016d}}"
        text = f"{{n}} " + "memory " * 140
        items.append(entries.to_item(Entry(sort=sort, partition=partition, key="k", content=text, occurred_at=start), pk))
    more = first + asked["limit"] < {count}
    return Page(items, items[-1]["sk"] if more else None)

world.table.query = many
item = exports.create(world, bank, exports.Wanted({format!r}), None)
exporting.handle(world, world.exports.sent.pop(), deadline=world.clock.now() + 900_000)
done = exports.shown(exports.get(world, bank, item["sk"]))
print(json.dumps([done["status"], done["item_count"], world.blobs.size, peak()]))
"""


@pytest.mark.parametrize("format", ["jsonl", "json", "csv", "zip", "parquet"])
def test_memory_is_bounded(format: str) -> None:
    code = WORKER.format(paths=[path for path in sys.path if path], count=COUNT, format=format)
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    status, count, _, kilobytes = json.loads(ran.stdout)
    assert (status, count) == ("completed", COUNT)
    assert kilobytes / 1000 < MEGABYTES, f"{kilobytes / 1000:.0f} MB"

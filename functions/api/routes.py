"""All routes of the API, a file each for what belongs together."""

from __future__ import annotations

from . import (
    agents,
    assistant,
    banks,
    compaction,
    contents,
    entries,
    exports,
    jobs,
    meta,
    rebuild,
    runs,
    search,
    stats,
    store,
    templates,
    trials,
    version,
)
from .resolver import Resolver

app = Resolver()
ROOMS = (
    *(banks, stats, templates, agents, trials, assistant, entries, runs, compaction, search, store),
    *(exports, contents, rebuild, jobs, version, meta),
)
for room in ROOMS:
    app.include_router(room.router)

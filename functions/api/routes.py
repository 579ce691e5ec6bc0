"""All routes of the API, a file each for what belongs together."""

from __future__ import annotations

from . import agents, assistant, banks, compaction, entries, jobs, meta, rebuild, search, stats, store, templates, trials, version
from .resolver import Resolver

app = Resolver()
for room in (banks, stats, templates, agents, trials, assistant, entries, compaction, search, store, rebuild, jobs, version, meta):
    app.include_router(room.router)

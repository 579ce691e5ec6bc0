"""The Python of `docs/store.md` runs, from top to bottom, as it is written."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from memory_banks import access

from tests.doubles.world import World

from .conftest import Gateway

DOCUMENT = Path(__file__).parents[3] / "docs" / "store.md"


def test_every_example_runs(world: World, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BANKS_URL", "http://api.test")
    monkeypatch.setenv("MEMORY_BANKS_API_KEY", access.create_key(world, "acme", scopes=("admin",))[1])
    monkeypatch.setattr(httpx, "Client", partial(httpx.Client, transport=httpx.MockTransport(gateway)))
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert len(blocks) >= 8
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(DOCUMENT), "exec"), names)
    names["store"].close()
    assert len(world.table.everything()) > 20

"""`python -m examples.chatbot` as its README tells: a process of its own, a service of its own or one that runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clients.langgraph import MemoryBankStore
from tests.serving import served

pytestmark = [pytest.mark.clients, pytest.mark.emulator]

ROOT = Path(__file__).parents[2]
TALK = """My name is Bob and I like jazz.
/thread
What is my name?
Call me Robert.
/memory
/user eve
What is my name?
/memory
"""
TOLD = """you> Nice to know, Bob.
you> (another conversation)
you> Your name is Bob.
you> Nice to know, Robert.
you> - Name: Robert
- Likes jazz
you> eve> You have not told me yet.
eve> No existing memory found.
eve>"""


def talk(*arguments: str, said: str = TALK, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORY_BANKS_", "EXAMPLES_"))}
    command = [sys.executable, "-m", "examples.chatbot", *arguments]
    return subprocess.run(
        command, input=said, capture_output=True, text=True, cwd=ROOT, env=own | environment, timeout=120, check=False
    )


def test_with_a_service_of_its_own_that_keeps_its_memory(tmp_path: Path) -> None:
    first = talk("--offline", "--data-dir", str(tmp_path / "data"))
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.rstrip().split("\n", 1)[1] == TOLD
    again = talk("--offline", "--data-dir", str(tmp_path / "data"), said="What do you know about me?\n/quit\n")
    assert "- Name: Robert\n- Likes jazz\n" in again.stdout


def test_with_a_service_that_runs(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        named = {"MEMORY_BANKS_URL": service.url, "MEMORY_BANKS_API_KEY": service.api_key}
        assert talk("--offline", **named).stdout.rstrip().split("\n", 1)[1] == TOLD
        with MemoryBankStore(service.url, service.api_key) as store:
            [item] = store.search(("memory",))
    assert (item.namespace, item.key, item.value) == (("memory", "you"), "user_memory", {"memory": "- Name: Robert\n- Likes jazz"})


def test_says_what_to_do_without_a_model() -> None:
    said = talk()
    assert said.returncode == 1
    assert "--offline" in said.stderr
    assert "Traceback" not in said.stderr

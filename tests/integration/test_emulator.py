"""The emulator process: what it holds, who may reach it, and that it never outlives its starter."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from local.emulator import Emulator, EmulatorFailed
from local.ministack import install

pytestmark = pytest.mark.emulator

STARTER = """
import sys, time
from local.emulator import Emulator
emulator = Emulator()
emulator.ready()
print(emulator.process.pid, emulator.port, flush=True)
time.sleep(600)
"""


def test_holds_the_table_with_its_indexes_the_queues_and_the_bucket(emulator: Emulator) -> None:
    made = emulator.create("test-resources")

    table = emulator.client("dynamodb").describe_table(TableName=made.table)["Table"]
    assert {index["IndexName"]: index["Projection"]["ProjectionType"] for index in table["GlobalSecondaryIndexes"]} == {
        "due": "KEYS_ONLY",
        "age": "KEYS_ONLY",
    }
    sqs = emulator.client("sqs")
    for url, visibility in ((made.ingestion_queue_url, "120"), (made.compaction_queue_url, "300"), (made.export_queue_url, "900")):
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        assert attributes["VisibilityTimeout"] == visibility
        assert "-dead" in attributes["RedrivePolicy"]
    assert made.bucket in [bucket["Name"] for bucket in emulator.client("s3").list_buckets()["Buckets"]]


def test_listens_on_the_loopback_address_alone(emulator: Emulator) -> None:
    listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"]
    of_port = [address for address in listening if int(address.split(":")[1], 16) == emulator.port]

    assert of_port == [f"0100007F:{emulator.port:04X}"]


def test_dies_with_its_starter_even_when_that_is_killed_and_leaves_nothing(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True, env=environment) as starter:
        assert starter.stdout
        pid, port = map(int, starter.stdout.readline().split())
        assert urllib.request.urlopen(f"http://127.0.0.1:{port}/_ministack/health").status == 200
        starter.kill()

    deadline = time.monotonic() + 10
    while (_alive(pid) or _reachable(port)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _alive(pid)
    assert not _reachable(port)
    assert list(tmp_path.iterdir()) == []


def test_says_what_it_printed_when_it_does_not_come_up(tmp_path: Path) -> None:
    emulator = Emulator(log=tmp_path / "log", environment={"GATEWAY_PORT": "not-a-port"})

    with pytest.raises(EmulatorFailed, match="not-a-port"):
        emulator.ready()


def test_takes_no_package_from_whoever_starts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "h11.py").write_text("raise ImportError('of another environment')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    with Emulator.started() as emulator:
        assert emulator.client("sqs").list_queues()


@pytest.mark.slow
def test_is_installed_whole_whatever_its_starter_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip counted what it found on a PYTHONPATH as installed, so that the environment had holes for everybody else."""
    monkeypatch.setattr(install, "folder", lambda: tmp_path / "ministack")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    interpreter = install.python()

    alone = [str(interpreter), "-I", "-c", "import ministack.app, boto3"]
    assert subprocess.run(alone, capture_output=True, check=False).returncode == 0
    made = (tmp_path / "ministack" / "installed").stat().st_mtime_ns
    assert install.python() == interpreter
    assert (tmp_path / "ministack" / "installed").stat().st_mtime_ns == made


def test_a_failed_installation_says_what_pip_said_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "folder", lambda: tmp_path / "ministack")
    monkeypatch.setattr(install, "REQUIREMENTS", tmp_path / "requirements.txt")
    (tmp_path / "requirements.txt").write_text("no-hash==1.0\n")

    for _ in range(2):
        with pytest.raises(install.InstallFailed, match="hash"):
            install.python()


def _reachable(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A killed process that nobody has waited for still has its number.
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]


def test_stop_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Emulator.started() as emulator:
        pid = emulator.process.pid
        assert list(tmp_path.iterdir())

    assert not _alive(pid)
    assert list(tmp_path.iterdir()) == []
    assert emulator.process.returncode == -signal.SIGKILL

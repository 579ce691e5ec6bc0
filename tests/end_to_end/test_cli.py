"""The command line against a running service."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from clients.cli.main import main
from tests.serving import Served, served

pytestmark = [pytest.mark.clients, pytest.mark.emulator]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "nora-and-theo.jsonl"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Served]:
    with served(folder, "--data-dir", str(folder / "data")) as service:
        yield service


class CommandLine:
    """Runs commands in this process, with a service in the environment as a user would have it."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.errors = ""

    def __call__(self, *arguments: str, code: int = 0) -> str:
        try:
            given = main(arguments)
        except SystemExit as exit:
            given = int(exit.code or 0)
        out, self.errors = self._capsys.readouterr()
        assert given == code, out + self.errors
        return out


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, service: Served) -> CommandLine:
    monkeypatch.setenv("MEMORY_BANKS_URL", service.url)
    monkeypatch.setenv("MEMORY_BANKS_API_KEY", service.api_key)
    return CommandLine(capsys)


def lines(path: Path, records: Sequence[object]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def counted(printed: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"(\d+) (?:went in|were already there|were refused)", printed)))


def test_a_history_is_imported_once_however_often_it_comes(cli: CommandLine, service: Served) -> None:
    assert counted(cli("import", str(EXAMPLE), "--bank", "friends", "--wait")) == (41, 0, 0)
    assert counted(cli("import", str(EXAMPLE), "--bank", "friends")) == (0, 41, 0)

    (bank,) = [bank for bank in service.call("GET", "/memory_banks")["data"] if bank["name"] == "friends"]
    assert bank["type"] == "conversation"
    loaded = service.call("GET", f"/memory_banks/{bank['id']}/entries", key="nora-and-theo", limit=1000)["entries"]
    written = [json.loads(line) for line in EXAMPLE.read_text().splitlines()]
    assert [(entry["speaker"], entry["content"]) for entry in loaded] == [(one["speaker"], one["content"]) for one in written]

    answer = cli("ask", "friends", "What is Theo's dog called?", "--key", "nora-and-theo", "--top-k", "3").splitlines()
    assert re.fullmatch(r"[01]\.\d\d  2026-\d\d-\d\d \d\d:\d\d  (Nora|Theo)  \[nora-and-theo\]", answer[0])
    assert len([line for line in answer if re.match(r"[01]\.\d\d  ", line)]) == 3
    assert "Biscuit" in "\n".join(answer)


def test_says_what_was_refused_and_why(cli: CommandLine, tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    records = [{"content": f"text {number}", "speaker": "user"} for number in range(120)]
    records[3]["content"] = "   "
    records[7].pop("speaker")
    records[50]["content"] = "x" * (257 * 1024)
    records[110]["content"] = "lone \ud800 surrogate"
    lines(history, records)
    with history.open("a") as file:
        file.write("{broken\n")

    printed = cli("import", str(history), "--bank", "refusals", code=1)
    assert counted(printed) == (116, 0, 5)
    for where, field in (
        ("line 4", "content"),
        ("line 8", "speaker"),
        ("line 51", "content"),
        ("line 111", "content"),
        ("line 121", "no JSON"),
    ):
        assert re.search(rf"^  {where}: {field}", printed, re.MULTILINE), printed


def test_imports_messages_and_chatgpt_exports(cli: CommandLine, tmp_path: Path) -> None:
    messages = tmp_path / "chat.json"
    messages.write_text(json.dumps([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]))
    assert counted(cli("import", str(messages), "--bank", "forms")) == (2, 0, 0)

    export = tmp_path / "conversations.json"
    nodes = {
        "0": {"message": None, "parent": None, "children": ["1"]},
        "1": {
            "message": {
                "id": "m1",
                "author": {"role": "user"},
                "create_time": 1778248560.1,
                "content": {"content_type": "text", "parts": ["When is high tide?"]},
            },
            "parent": "0",
            "children": [],
        },
    }
    export.write_text(json.dumps([{"title": "Tides", "conversation_id": "c-1", "mapping": nodes, "current_node": "1"}]))
    assert counted(cli("import", str(export), "--bank", "forms", "--wait")) == (1, 0, 0)
    assert "[c-1]" in cli("ask", "forms", "high tide", "--top-k", "1")


def test_a_general_bank_takes_a_history_without_speakers_of_its_own(cli: CommandLine, tmp_path: Path) -> None:
    history = lines(
        tmp_path / "notes.jsonl", [{"content": "The gate code is 4711", "metadata": {"floor": 2}}, {"content": "b", "role": "x"}]
    )

    assert counted(cli("import", history, "--bank", "notes", "--type", "general", "--wait")) == (2, 0, 0)
    assert "4711" in cli("ask", "notes", "gate code")


def test_a_bank_is_brought_from_its_export(cli: CommandLine, service: Served, tmp_path: Path) -> None:
    """With its settings, keys and order; again it adds nothing. An age limit of older data becomes the retention."""
    made = {"name": "origin", "type": "general", "description": "d", "max_turns": 100, "retention_days": None, "mode": "balanced"}
    origin = service.call("POST", "/memory_banks", made)
    for content, key in (("the gate code is 4711", ""), ("the cat is called Momo", "pets"), ("Momo eats fish", "pets")):
        service.call("POST", f"/memory_banks/{origin['id']}/entries", {"content": content, "key": key, "tags": ["x"]})
    source = f"/sources/{origin['source_connection_id']}/exports"
    export = service.call("POST", source, {"format": "json"})["id"]
    end = time.monotonic() + 60
    while service.call("GET", f"{source}/{export}")["status"] != "completed":
        assert time.monotonic() < end
        time.sleep(0.1)
    document = service.call("GET", f"{source}/{export}/download")
    document["memory_bank"]["configuration"] |= {"name": "copy", "max_age_days": 45}
    file = tmp_path / "export.json"
    file.write_text(json.dumps(document))

    assert counted(cli("import", str(file), "--wait")) == (3, 0, 0)
    copy = next(bank for bank in service.call("GET", "/memory_banks", limit=100)["data"] if bank["name"] == "copy")
    assert {name: copy[name] for name in made} == made | {"name": "copy", "retention_days": 45}
    for key in ("", "pets"):
        there, here = (
            [
                (entry["content"], entry["tags"], entry["occurred_at"])
                for entry in service.call("GET", f"/memory_banks/{bank['id']}/entries", key=key)["entries"]
            ]
            for bank in (origin, copy)
        )
        assert there == here and here
    assert counted(cli("import", str(file))) == (0, 3, 0)
    cli("import", str(EXAMPLE), code=1)
    assert "--bank is needed" in cli.errors


def test_what_is_not_there_or_not_allowed_is_said_in_a_sentence(cli: CommandLine, tmp_path: Path) -> None:
    history = lines(tmp_path / "history.jsonl", [{"content": "a", "speaker": "user"}])

    for arguments, expected in (
        (["ask", "nothing of that name", "why?"], "there is no bank 'nothing of that name'"),
        (["ask", "x", "why?", "--api-key", "wrong"], "unknown"),
        (["import", history, "--bank", "x", "--url", "http://127.0.0.1:9"], "can't be reached"),
        (["import", str(tmp_path / "absent"), "--bank", "x"], "can't be read"),
        (["compact", "nothing of that name"], "there is no bank"),
    ):
        cli(*arguments, code=1)
        assert cli.errors.startswith("memory-banks: ")
        assert expected in cli.errors
        assert cli.errors.count("\n") == 1


def test_an_ambiguous_name_is_not_guessed(cli: CommandLine, service: Served) -> None:
    ids = [service.call("POST", "/memory_banks", {"name": "twice"})["id"] for _ in range(2)]

    cli("ask", "twice", "why?", code=1)
    assert all(one in cli.errors for one in ids)
    assert cli("ask", ids[0], "why?") == "nothing found\n"


def test_keys_made_next_to_a_running_service_work_at_once(cli: CommandLine, service: Served, folder: Path) -> None:
    data = ["--data-dir", str(folder / "data")]
    secret, told = cli("keys", "create", "--scopes", "read", "--name", "reader", "--expires", "30d", *data).splitlines()
    assert "read for the account local, until " in told

    reader = {"X-API-Key": secret}
    assert service.request("GET", "/memory_banks", headers=reader).status_code == 200
    assert service.request("POST", "/memory_banks", json={"name": "x"}, headers=reader).status_code == 403
    assert "reader" in cli("keys", "list", *data)
    assert secret not in cli("keys", "list", *data)

    cli("keys", "revoke", told.partition(":")[0], *data)
    assert "reader" not in cli("keys", "list", *data)
    cli("keys", "revoke", told.partition(":")[0], *data, code=1)
    assert "There is no API key" in cli.errors


def test_keys_are_kept_whether_the_service_runs_is_killed_or_is_not_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cli = CommandLine(capsys)
    data = ["--data-dir", str(tmp_path / "data")]
    before = cli("keys", "create", *data).splitlines()[0]
    with served(tmp_path, *data) as service:
        assert service.request("GET", "/memory_banks", headers={"X-API-Key": before}).status_code == 200
        beside = cli("keys", "create", *data).splitlines()[0]
        service.kill()

    assert cli("keys", "list", *data).count("read,write") >= 2
    with served(tmp_path, *data) as service:
        for secret in (before, beside):
            assert service.request("GET", "/memory_banks", headers={"X-API-Key": secret}).status_code == 200


@pytest.mark.parametrize(
    "arguments",
    [["--scopes", "everything"], ["--scopes", ""], ["--account", "a b"]],
)
def test_wrong_keys_are_refused(cli: CommandLine, folder: Path, arguments: list[str]) -> None:
    cli("keys", "create", "--data-dir", str(folder / "data"), *arguments, code=1)
    assert cli.errors.startswith("memory-banks: ")


@pytest.mark.parametrize("moment", ["yesterday", "2020-01-01", "-1d", "1e99d"])
def test_an_expiry_that_is_none_is_refused(cli: CommandLine, moment: str) -> None:
    cli("keys", "create", f"--expires={moment}", code=2)
    assert "--expires" in cli.errors


def test_compacts_by_hand(cli: CommandLine, service: Served, tmp_path: Path) -> None:
    history = lines(
        tmp_path / "long.jsonl", [{"content": f"turn {number} about the harbour", "speaker": "user"} for number in range(30)]
    )
    settings = {"name": "compacted", "max_turns": 10, "compaction_prompt": "Keep what matters."}
    bank = service.call("POST", "/memory_banks", settings)["id"]
    cli("import", history, "--bank", "compacted", "--wait")

    assert cli("compact", "compacted", "--key", "long").startswith(f"compacted ({bank}): compaction ")
    cli("compact", "friends", code=1)


def test_sweeps_by_hand(cli: CommandLine, folder: Path) -> None:
    printed = cli("sweep", "--data-dir", str(folder / "data"))

    assert [line.partition(":")[0] for line in printed.splitlines()] == ["compaction", "retention"]
    assert cli("sweep", "retention", "--data-dir", str(folder / "data")).startswith("retention: ")


def test_the_demo_runs_to_its_end(tmp_path: Path) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_BANKS_")}
    done = subprocess.run(
        [sys.executable, "-m", "clients.cli.main", "demo"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
        env=variables | {"TMPDIR": str(tmp_path)},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "41 went in, 0 were already there, 0 were refused" in done.stdout
    assert "0 new, 41 already there" in done.stdout
    assert "Biscuit. She had the name already" in " ".join(done.stdout.split())
    assert list(tmp_path.iterdir()) == []

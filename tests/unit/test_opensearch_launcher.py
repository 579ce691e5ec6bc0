"""The launcher of the local node: what it says when there is no Java, and that nothing half made is ever used."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from local.opensearch import LocalNode, NodeFailed
from local.opensearch import build as building
from local.opensearch.java import Java, NoJava, java, maven


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a JDK 17 and a Maven that make what they should; the folder of its commands."""
    commands = tmp_path / "jdk" / "bin"
    script(commands / "java", 'if [ "$1" = -version ]; then echo \'openjdk version "17.0.9"\' >&2; exit; fi\necho no luck; exit 3')
    made = """
for argument in "$@"; do
    case $argument in -Dfolder=*) mkdir -p ${argument#-Dfolder=}/classes; touch ${argument#-Dfolder=}/classes/LocalNode.class;; esac
done"""
    script(commands / "mvn", f"echo run >> {tmp_path}/runs\n{made}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{commands}:/usr/bin:/bin")
    return commands


def runs(tmp_path: Path) -> int:
    """How often Maven ran."""
    return len((tmp_path / "runs").read_text().splitlines())


def test_java_is_the_one_on_the_path_or_of_java_home(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert java() == Java(machine / "java", 17)
    newer = script(tmp_path / "newer" / "bin" / "java", "echo 'openjdk version \"25\" 2025-09-16' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "newer"))
    assert java() == Java(newer, 25)


def test_no_java_says_what_to_install(tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(NoJava, match="install a JDK"):
        java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoJava, match="install a JDK"):
        java()
    with pytest.raises(NoJava, match="install Maven"):
        maven()
    with pytest.raises(NodeFailed, match="install a JDK"):
        LocalNode.start(tmp_path / "home")


def test_an_old_java_is_refused(machine: Path) -> None:
    script(machine / "java", "echo 'java version \"11.0.2\"' >&2")
    with pytest.raises(NoJava, match="too old"):
        java()


def test_it_is_built_once_and_again_when_its_sources_change(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tools"
    for _ in range(3):
        assert (building.build(java(), folder) / "classes" / "LocalNode.class").is_file()
    assert runs(tmp_path) == 1
    monkeypatch.setattr(building, "PATTERNS", ("pom.xml",))
    building.build(java(), folder)
    assert runs(tmp_path) == 2


def test_a_build_that_fails_is_not_taken_for_one_that_worked(machine: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    whole = (machine / "mvn").read_text()
    script(machine / "mvn", "echo could not resolve; exit 1")
    with pytest.raises(building.BuildFailed, match="could not resolve"):
        building.build(java(), folder)
    (machine / "mvn").write_text(whole)
    building.build(java(), folder)
    assert runs(tmp_path) == 1


def test_a_jre_is_told_from_a_jdk(machine: Path, tmp_path: Path) -> None:
    script(machine / "mvn", "exit 0")
    with pytest.raises(NoJava, match="not a JRE"):
        building.build(java(), tmp_path / "tools")


def test_a_node_that_ends_at_once_shows_its_log(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.opensearch.node.build", lambda java: tmp_path)
    with pytest.raises(NodeFailed, match="no luck"):
        LocalNode.start(tmp_path / "home")
    assert not (tmp_path / "home" / "pid").exists()


def test_a_file_left_by_a_killed_node_is_not_a_running_node(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text(str(os.getpid()))
    (tmp_path / "address").write_text("127.0.0.1:1")
    assert LocalNode.running(tmp_path) is None


@pytest.mark.opensearch
def test_the_node_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    import subprocess
    import sys
    import time

    code = (
        f"from local.opensearch import LocalNode; from pathlib import Path; LocalNode.start(Path({str(tmp_path)!r}), heap='256m')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2], timeout=300)
    pid = int((tmp_path / "pid").read_text())
    until = time.monotonic() + 60
    while time.monotonic() < until and Path(f"/proc/{pid}").exists():
        time.sleep(0.1)
    assert LocalNode.running(tmp_path) is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.opensearch
def test_a_node_in_the_background_is_stopped_by_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from local.opensearch.__main__ import main

    where = ["--data-dir", str(tmp_path), "--port", "0", "--heap", "256m"]
    assert main(["stop", *where]) == 1
    try:
        assert main(["start", *where]) == 0
        node = LocalNode.running(tmp_path)
        assert node
        assert node.url in capsys.readouterr().out
        assert main(["start", *where]) == 1  # one folder, one node
        assert "running" in capsys.readouterr().err
    finally:
        assert main(["stop", *where]) == 0
    assert LocalNode.running(tmp_path) is None
    assert not node.answers()

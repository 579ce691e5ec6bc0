"""The node's jars: resolved once by Maven into `.tools/opensearch`, again only when what they are made from changes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from .java import Java, NoJava, maven

SOURCES = Path(__file__).parent
TOOLS = SOURCES.parents[1] / ".tools" / "opensearch"
PATTERNS = ("pom.xml", "java/*.java", "resources/*")


class BuildFailed(Exception):
    """Maven could not resolve or compile; the message ends with what it said."""


def _state() -> str:
    digest = hashlib.sha256()
    for pattern in PATTERNS:
        for path in sorted(SOURCES.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def build(java: Java, folder: Path = TOOLS) -> Path:
    """The folder with `classes/` and `lib/`, made if need be. Safe for several processes at once.

    Raises `NoJava` or `BuildFailed`. A build that dies half way leaves no mark, so the next one starts afresh.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made, mark, state = folder / "node", folder / "node.sha256", _state()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if mark.is_file() and mark.read_text() == state:
            return made
        mark.unlink(missing_ok=True)
        shutil.rmtree(made, ignore_errors=True)
        command = [str(maven()), "--batch-mode", "--quiet", f"--file={SOURCES / 'pom.xml'}", f"-Dfolder={made}", "process-classes"]
        environment = os.environ | {"JAVA_HOME": str(java.command.resolve().parents[1])}
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if run.returncode:
            raise BuildFailed(f"Maven ended with {run.returncode}:\n{(run.stdout + run.stderr)[-4000:]}")
        if not (made / "classes" / "LocalNode.class").is_file():
            raise NoJava(f"{java.command} brings no compiler: install a JDK, not a JRE")
        mark.write_text(state)
    return made


__all__ = ["TOOLS", "BuildFailed", "build"]

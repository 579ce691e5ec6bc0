"""Where Java and Maven are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

OLDEST = 17
"""The oldest Java that runs the node."""


class NoJava(Exception):
    """There is no JDK or no Maven that can be used; the message says what to install."""


class Java(NamedTuple):
    """A `java` command and its feature version, e.g. 17."""

    command: Path
    version: int


def java() -> Java:
    """The `java` of `JAVA_HOME`, or the one on the path. Raises `NoJava`."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not found or not Path(found).is_file():
        where = f"{found} is not there" if home else "no `java` on the path"
        raise NoJava(f"{where}: install a JDK ({OLDEST} or later, e.g. openjdk-17-jdk-headless) or set JAVA_HOME")
    told = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', told)
    if not version or int(version[1]) < OLDEST:
        raise NoJava(f"{found} is too old: OpenSearch needs Java {OLDEST} or later")
    return Java(Path(found), int(version[1]))


def maven() -> Path:
    """Maven's command. Raises `NoJava`."""
    found = shutil.which("mvn")
    if not found:
        raise NoJava("no `mvn` on the path: install Maven (Debian and Ubuntu: apt-get install maven)")
    return Path(found)

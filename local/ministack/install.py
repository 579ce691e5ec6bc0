"""Brings ministack: an environment of its own, made once, in the checkout's `.tools` or the user's cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"


class InstallFailed(Exception):
    """The emulator's packages could not be installed; the message says what pip said."""


def folder() -> Path:
    """Where the environment belongs: `.tools/ministack` of a checkout, else under the user's cache."""
    root = HERE.parent.parent
    if (root / "pyproject.toml").exists():
        return root / ".tools" / "ministack"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memory-banks" / "ministack"


def python() -> Path:
    """The interpreter of the emulator's environment, which is installed first when it is absent or out of date.

    Two processes that come at once wait for each other. Killed half way, the next call starts over: the mark that says what
    is installed is written last. Raises `InstallFailed`.
    """
    home = folder()
    home.mkdir(parents=True, exist_ok=True)
    interpreter, mark = home / "bin" / "python", home / "installed"
    made_by = hashlib.sha256(REQUIREMENTS.read_bytes() + Path(__file__).read_bytes()).hexdigest()
    wanted = f"{made_by} {sys.version}"
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if interpreter.exists() and mark.exists() and mark.read_text() == wanted:
            return interpreter
        mark.unlink(missing_ok=True)
        venv.create(home, with_pip=True, symlinks=True)
        _pip(home, interpreter, "install", "--quiet", "--require-hashes", "-r", str(REQUIREMENTS))
        _pip(home, interpreter, "check")
        mark.write_text(wanted)
        return interpreter


def _pip(home: Path, interpreter: Path, *arguments: str) -> None:
    """Isolated (`-I`): with a PYTHONPATH pip would count what lies there as installed already."""
    command: list[str | Path] = [interpreter, "-I", "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallFailed(f"the AWS emulator could not be installed in {home}:\n{done.stderr.strip() or done.stdout.strip()}")

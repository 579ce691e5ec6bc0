"""Environments of their own for what we are measured against, made by uv under `.build/peers/` and kept there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
SYSTEM = "/usr/bin/python3"


def made(name: str, *requirements: str) -> Path:
    """The Python of an environment with these packages; it is made on first use, and anew when they change."""
    folder = PROJECT / ".build" / "peers" / name
    python, wanted = folder / "bin" / "python", folder / "requirements.json"
    if not wanted.exists() or json.loads(wanted.read_text()) != list(requirements):
        uv = shutil.which("uv") or str(PROJECT / ".tools" / "uv" / "bin" / "uv")
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([uv, "venv", "--quiet", "--python", _python(), folder], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *requirements], check=True)
        wanted.write_text(json.dumps(requirements))
    return python


def run(python: Path, script: str, *arguments: str) -> Iterator[dict[str, Any]]:
    """The figures that a script of this folder prints, a JSON object a line. A failure raises."""
    command = [str(python), str(HERE / script), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def _python() -> str:
    """One whose SQLite loads extensions, as LangGraph's SqliteStore needs for vectors; that of this process if none does."""
    return next((one for one in (sys.executable, SYSTEM) if _loads_extensions(one)), sys.executable)


def _loads_extensions(python: str) -> bool:
    test = "sys.version_info < (3, 11) or not hasattr(sqlite3.Connection, 'enable_load_extension')"
    script = f"import sqlite3, sys; sys.exit({test})"
    command: Sequence[str] = [python, "-c", script]
    try:
        return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False

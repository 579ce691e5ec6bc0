"""What goes into a Lambda asset: built on this machine by uv, without Docker, with bytecode for the runtime's own Python.

Plain functions from sources to a folder. The constructs call them during synth; tests and benchmarks call them without it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXCLUDED = ROOT / "layers" / "dependencies" / "excluded.txt"
NEEDLESS = ROOT / "layers" / "dependencies" / "needless.txt"
PACKAGE = ROOT / "layers" / "memory_banks"
FUNCTIONS = ROOT / "functions"

WHEELS = {"arm64": "aarch64-manylinux_2_28", "x86_64": "x86_64-manylinux_2_28"}
"""uv's names of what runs on the Lambda architectures (Amazon Linux 2023 has glibc 2.34)."""

PACKAGE_MARK = "[[packages]]"


@dataclass(frozen=True, slots=True)
class Target:
    """The Python and the processor that an asset is built for."""

    python: str
    """Minor version of the runtime: `3.13`."""
    architecture: str
    """`arm64` or `x86_64`, as Lambda calls them."""

    @classmethod
    def this_machine(cls) -> Target:
        """What runs this very process: tests and the emulator import the assets they build."""
        machine = platform.machine().lower()
        architecture = "arm64" if machine in {"arm64", "aarch64"} else "x86_64"
        return cls(f"{sys.version_info.major}.{sys.version_info.minor}", architecture)


def function(name: str, target: Target, output: Path) -> None:
    """The asset of one function: `functions/<name>` under that very path, so its handler is `functions.<name>.handler.handler`."""
    into = output / "functions"
    into.mkdir(parents=True, exist_ok=True)
    marker = FUNCTIONS / "__init__.py"
    if marker.exists():
        shutil.copy2(marker, into)
    _copy(FUNCTIONS / name, into / name)
    _compile(output, target, "/var/task")


def package(target: Target, output: Path) -> None:
    """The layer with the package that all functions share."""
    _copy(PACKAGE / "python", output / "python")
    _compile(output, target, "/opt")


def dependencies(target: Target, output: Path) -> None:
    """The layer with the pinned third-party packages, without the parts that `needless.txt` names."""
    _install(dependency_lock(), target, output, _lines(NEEDLESS))


def embedded_models(target: Target, output: Path) -> None:
    """The layer with the embedded model and numpy: nothing that `dependencies` already holds."""
    _install(embedded_lock(), target, output)


@functools.cache
def dependency_lock() -> str:
    """The part of uv.lock that the functions import, as a pylock.toml: exact files with their hashes."""
    return _export()


@functools.cache
def embedded_lock() -> str:
    """What the extra `embedded` adds to it."""
    head, *packages = _export("--extra", "embedded").split(PACKAGE_MARK)
    held = set(dependency_lock().split(PACKAGE_MARK))
    return PACKAGE_MARK.join([head, *(package for package in packages if package not in held)])


def fingerprint(target: Target, *sources: Path | str) -> str:
    """A hash of what an asset is made from: files, folders (without caches) and texts, the target, and this file."""
    digest = hashlib.sha256(f"{target} {interpreter(target.python) is not None}".encode())
    for source in (Path(__file__), *sources):
        if isinstance(source, str):
            digest.update(source.encode())
            continue
        for file in sorted(_files(source)):
            digest.update(f"\0{file.relative_to(ROOT)}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


@functools.cache
def uv() -> str:
    """The uv that runs this process, the one on the PATH, or the one that `make setup` brings."""
    return os.environ.get("UV") or shutil.which("uv") or str(ROOT / ".tools" / "uv" / "bin" / "uv")


@functools.cache
def interpreter(python: str) -> str | None:
    """A Python of this minor version on this machine, or None: only it can write bytecode that the runtime accepts."""
    if python == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = subprocess.run([uv(), "python", "find", "--no-python-downloads", python], capture_output=True, text=True, check=False)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [
        found.stdout.strip(),
        shutil.which(f"python{python}"),
        *sorted(map(str, pyenv.glob(f"{python}.*/bin/python{python}"))),
    ]
    return next((candidate for candidate in candidates if candidate and _is_python(candidate, python)), None)


def _is_python(candidate: str, python: str) -> bool:
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([candidate, "-I", "-c", asked], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return answer.stdout.strip() == python


def _lines(file: Path) -> list[str]:
    """What a list names, without its comments."""
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]


def _export(*options: str) -> str:
    pruned = [argument for name in _lines(EXCLUDED) for argument in ("--prune", name)]
    command = [
        uv(),
        "export",
        "--quiet",
        "--frozen",
        "--format",
        "pylock.toml",
        "--no-header",
        "--no-default-groups",
        "--no-emit-project",
    ]
    return subprocess.run([*command, *options, *pruned], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _install(lock: str, target: Target, output: Path, needless: Iterable[str] = ()) -> None:
    """Wheels only and the exact pins: one that has no wheel for the target is an error, never an older release.

    What the patterns `needless` find is left out; one that finds nothing is a `RuntimeError`.
    """
    python = output / "python"
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "pylock.toml"
        listed.write_text(lock)
        command = [uv(), "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--link-mode", "copy"]
        built_for = ["--python-version", target.python, "--python-platform", WHEELS[target.architecture]]
        subprocess.run(
            [*command, *built_for, "--python", sys.executable, "--target", str(python), "--requirement", str(listed)],
            cwd=ROOT,
            check=True,
        )
    shutil.rmtree(python / "bin", ignore_errors=True)
    (python / ".lock").unlink(missing_ok=True)
    for pattern in needless:
        found = list(python.glob(pattern))
        if not found:
            raise RuntimeError(f"{pattern}: no such part in the layer; {NEEDLESS.name} names it")
        for part in found:
            if part.is_dir():
                shutil.rmtree(part)
            else:
                part.unlink()
    _compile(output, target, "/opt")


def _compile(folder: Path, target: Target, mounted: str) -> None:
    """Bytecode beside the sources. Unchecked: the runtime's files are read-only and their times are not ours."""
    python = interpreter(target.python)
    if python is None:
        return
    options = ["-q", "-f", "--invalidation-mode", "unchecked-hash", "-s", str(folder), "-p", mounted]
    subprocess.run([python, "-I", "-m", "compileall", *options, str(folder)], check=True, stdout=subprocess.DEVNULL)


def _copy(source: Path, into: Path) -> None:
    shutil.copytree(source, into, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"), dirs_exist_ok=True)


def _files(source: Path) -> Iterable[Path]:
    if source.is_file():
        return [source]
    return [file for file in source.rglob("*") if file.is_file() and "__pycache__" not in file.parts]

"""LangGraph's own test suites, unmodified, on our store: `make test-langgraph`.

Downloads the released source packages into a folder outside the project, runs their test files of the store with our plugin
and prints what passed and failed, a suite a line. What fails must be in `EXPECTED`, each with the reason; anything else, or
an expected failure that passes, is an error. `--suite memory` runs one; `--keep FOLDER` keeps the packages there.
"""

# ruff: noqa: T201
from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


class Suite(NamedTuple):
    """A released source package, pinned, and its test files of the store."""

    package: str
    version: str
    files: tuple[str, ...]
    extra: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """What the source package unpacks to."""
        return f"{self.package.replace('-', '_')}-{self.version}"


SUITES = {
    "memory": Suite("langgraph-checkpoint", "4.3.2", ("tests/test_store.py",)),
    "sqlite": Suite("langgraph-checkpoint-sqlite", "3.1.2", ("tests/test_store.py", "tests/test_async_store.py")),
    "postgres": Suite(
        "langgraph-checkpoint-postgres", "3.2.0", ("tests/test_store.py", "tests/test_async_store.py"), ("psycopg[binary,pool]",)
    ),
}

BLOCKING = "their asynchronous class refuses blocking calls in its event loop; ours is one class with both kinds"
EXPECTED: dict[str, dict[str, str]] = {
    "memory": {},
    "sqlite": {
        r"test_vector_store_initialization": "looks for a table of SQLite",
        r"test_sql_injection_vulnerability": "wants SQL in a filter's name refused; here it is a name that no item has",
        r"test_no_running_loop": BLOCKING,
    },
    "postgres": {
        r"test_scores\[\w+-halfvec-l2\]": "pgvector's Euclidean distance; here a score is a cosine",
        r"test_omit_expired_disabled_preserves_expired_rows": "wants expired items shown until they are swept; here they never are",
        r"test_no_running_loop": BLOCKING,
        r"test_abatch_uses_single_pool_checkout": "counts connections of psycopg's pool",
    },
}
"""By suite: tests (a pattern of their names) that are about the insides of that backend, and which."""

TOOLS = ("pytest", "pytest-asyncio", "pytest-mock", "dataclasses-json", "redis")


def main() -> int:
    """Run the suites; 0 when everything is as expected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", choices=SUITES, action="append", help="only this one (may be repeated)")
    parser.add_argument("--keep", type=Path, help="folder for the source packages; else a temporary one")
    chosen, arguments = parser.parse_known_args()
    wanted = chosen.suite or list(SUITES)
    folder = chosen.keep or Path(tempfile.mkdtemp(prefix="langgraph-suites-"))
    try:
        return max(run(name, folder, arguments) for name in wanted)
    finally:
        if chosen.keep is None:
            shutil.rmtree(folder)


def run(name: str, folder: Path, arguments: list[str]) -> int:
    """Run one suite and print its line."""
    suite = SUITES[name]
    sources = download(suite, folder.resolve())
    report = sources / "report.xml"
    report.unlink(missing_ok=True)
    command = [
        *environment(suite),
        *("python", "-m", "pytest", "-q", "-p", "plugin", "-p", "no:cacheprovider", "--no-header", "--tb=short"),
        *("--override-ini=addopts=", f"--junitxml={report}", *suite.files, *arguments),
    ]
    paths = os.pathsep.join((str(HERE), str(sources)))
    done = subprocess.run(command, cwd=sources, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    if not report.exists():
        print(done.stdout[-5_000:], done.stderr[-5_000:], sep="\n", file=sys.stderr)
        return 1
    return told(name, report, done.stdout)


def environment(suite: Suite) -> list[str]:
    """How to run Python with our package, LangGraph's and the tools that its tests need, apart from the project's own."""
    uv = os.environ.get("UV") or shutil.which("uv") or str(PROJECT / ".tools/uv/bin/uv")
    extras = [f"--extra={extra}" for extra in ("embedded", "langgraph")]
    wanted = [f"--with={tool}" for tool in (*TOOLS, f"{suite.package}=={suite.version}", *suite.extra)]
    return [uv, "run", "--quiet", "--isolated", "--frozen", "--no-default-groups", f"--project={PROJECT}", *extras, *wanted]


def download(suite: Suite, folder: Path) -> Path:
    """The unpacked source package."""
    sources = folder / suite.folder
    if not sources.exists():
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip"]
        if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode:
            uv = os.environ.get("UV") or shutil.which("uv") or str(PROJECT / ".tools/uv/bin/uv")
            pip = [uv, "run", "--quiet", "--isolated", "--no-project", "--with=pip", "python", "-m", "pip"]
        wanted = f"{suite.package}=={suite.version}"
        subprocess.run([*pip, "download", "--quiet", "--no-deps", "--no-binary=:all:", f"--dest={folder}", wanted], check=True)
        with tarfile.open(folder / f"{suite.folder}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return sources


def told(name: str, report: Path, output: str) -> int:
    """Print what passed and failed, and whether that is as expected."""
    passed: list[str] = []
    failed: list[str] = []
    for case in ET.parse(report).iter("testcase"):
        test = f"{case.get('classname', '').removeprefix('tests.')}::{case.get('name')}"
        bad = case.find("failure") is not None or case.find("error") is not None
        (failed if bad else passed).append(test)
    expected = EXPECTED[name]
    surprising = [test for test in failed if not any(re.search(pattern, test) for pattern in expected)]
    mended = [pattern for pattern in expected if not any(re.search(pattern, test) for test in failed)]
    known = len(failed) - len(surprising)
    print(f"{name:10}{len(passed):5} passed {len(failed):5} failed, {known} of them about the backend's insides")
    for pattern, reason in expected.items():
        count = sum(bool(re.search(pattern, test)) for test in failed)
        print(f"{'':10}{count:5} {pattern}: {reason}")
    for test in surprising:
        print(f"{'':10}UNEXPECTED FAILURE {test}")
    for pattern in mended:
        print(f"{'':10}EXPECTED TO FAIL, BUT PASSED {pattern}")
    if surprising:
        print(output[-20_000:], file=sys.stderr)
    return 1 if surprising or mended or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

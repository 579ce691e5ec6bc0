"""The CDK application. `cdk synth` needs neither a network, once the packages are in uv's cache, nor credentials."""

from __future__ import annotations

import os

# The CDK says on every synth that it would like another Node; it works with this one.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
os.environ.setdefault("JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION", "1")

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from infra.configuration import Configuration
from infra.stack import MemoryBanksStack


def build(app: App) -> MemoryBanksStack:
    """The application's only stack, as its context configures it."""
    return MemoryBanksStack(app, Configuration.from_context(app.node.get_all_context()))


if __name__ == "__main__":
    app = App()
    build(app)
    Validations.of(app).add_plugins(AwsSolutionsChecks())
    app.synth()

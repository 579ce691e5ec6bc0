"""Templates of the stack, and its assets built for the Python and the processor of this machine."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from infra.bundling import Target
from tests.infrastructure.assembly import CONTEXT, Assembly, Synthesised, cdk_synth

# Before the CDK is loaded. Validation takes seconds a template: `test_synth.py` has it on, in processes of its own.
os.environ["CDK_VALIDATION"] = "false"
os.environ["JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"] = "20"
os.environ["JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION"] = "1"


@pytest.fixture(scope="session")
def synthesise(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Synthesised]:
    """A template for some context values, without building assets."""
    from aws_cdk import App
    from aws_cdk.assertions import Template

    from app import build

    @functools.cache
    def made(**chosen: Any) -> Synthesised:
        context = {**CONTEXT, "aws:cdk:bundling-stacks": [], **chosen}
        app = App(context=context, outdir=str(tmp_path_factory.mktemp("cdk")), analytics_reporting=False)
        return Synthesised(json.loads(json.dumps(Template.from_stack(build(app)).to_json())))

    return made


@pytest.fixture(scope="session")
def stack(synthesise: Callable[..., Synthesised]) -> Synthesised:
    """The template without any choice made."""
    return synthesise()


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """A strict synth with all assets, for this machine's Python and processor."""
    target = Target.this_machine()
    return cdk_synth(tmp_path_factory.mktemp("assembly"), runtime=target.python, architecture=target.architecture)

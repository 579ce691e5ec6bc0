# Every habit of this project. `make demo` shows what it does, `make test` proves it; both bring what they need,
# given python3 (3.11 or later), node, make and git.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

UV_VERSION := 0.13.9
UV ?= .tools/uv/bin/uv
RUN := $(UV) run --frozen
PYTEST := $(RUN) pytest
ARGS ?=

# The CDK's banner about Node versions is no news on every synth.
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20
export JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION := 1
export CDK_DISABLE_CLI_TELEMETRY := true

.PHONY: help setup format lint types test test-unit test-contract test-integration test-infrastructure test-opensearch \
	test-clients test-langgraph test-langgraph-dev test-langflow test-faults deploy-test synth serve opensearch demo bench bench-recall clean

help: ## This list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 22

# --- Set-up -----------------------------------------------------------------------------------------------------------

setup: .venv/.ready node_modules/.ready .tools/ministack/installed ## uv, the environment, the CDK command line and the AWS emulator, pinned

.tools/uv/bin/uv:
	python3 -m venv .tools/uv
	.tools/uv/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

.venv/.ready: pyproject.toml uv.lock | $(UV)
	$(UV) sync --frozen
	touch $@

node_modules/.ready: package.json package-lock.json
	npm ci --no-audit --no-fund
	touch $@

# `serve` installs it as well, but then the first one would need the network.
.tools/ministack/installed: local/ministack/requirements.txt local/ministack/install.py | .venv/.ready
	$(RUN) python -c "from local.ministack import install; install.python()"
	touch $@

# A uv given by hand (UV=uv) is found on the PATH.
ifneq ($(UV),.tools/uv/bin/uv)
.PHONY: $(UV)
endif

# --- Habits -----------------------------------------------------------------------------------------------------------

format: .venv/.ready ## Format and mend what can be mended
	$(RUN) ruff format
	$(RUN) ruff check --fix

lint: .venv/.ready ## Style, unused code, common mistakes
	$(RUN) ruff format --check
	$(RUN) ruff check

types: .venv/.ready ## mypy, strict
	$(RUN) mypy

# --- Tests ------------------------------------------------------------------------------------------------------------

test: setup ## All tests (ARGS goes to pytest)
	$(PYTEST) $(ARGS)

test-unit: .venv/.ready ## Fast, no network
	$(PYTEST) tests/unit $(ARGS)

test-contract: .venv/.ready ## One suite a port, on every adapter
	$(PYTEST) tests/contract -m "not opensearch" $(ARGS)

test-integration: .venv/.ready ## The real handlers with real event shapes
	$(PYTEST) tests/integration -m "not opensearch" $(ARGS)

test-infrastructure: setup ## The synthesised template
	$(PYTEST) tests/infrastructure $(ARGS)

test-opensearch: .venv/.ready ## On a real OpenSearch node (needs a JDK and Maven, or OPENSEARCH_URL)
	$(PYTEST) -m opensearch $(ARGS)

test-clients: .venv/.ready ## The published clients and the command line against serve
	$(PYTEST) -m clients $(ARGS)

test-langgraph: .venv/.ready ## LangGraph's own suites of its stores on ours (ARGS="--suite memory"); downloads them from PyPI
	UV=$(abspath $(shell command -v $(UV) || echo $(UV))) $(RUN) python tests/langgraph/run.py $(ARGS)

test-langgraph-dev: .venv/.ready ## The example's graphs in LangGraph's development server, which is downloaded from PyPI for it
	$(RUN) --with "langgraph-cli[inmem]" python -m pytest -p no:schemathesis tests/langgraph/dev_server_checks.py $(ARGS)

test-langflow: .venv/.ready ## The component in Langflow's own engine, which is downloaded from PyPI for it
	$(RUN) --with "lfx>=1.13,<1.14" python -m pytest tests/langflow/component_checks.py $(ARGS)

test-faults: .venv/.ready ## Kill, fail and race everything that writes
	$(PYTEST) -m faults $(ARGS)

deploy-test: setup ## A real `cdk deploy` into the emulator, requests through its API Gateway
	$(PYTEST) -m deploy $(ARGS)

# --- Run --------------------------------------------------------------------------------------------------------------

synth: setup ## The CloudFormation template, offline
	$(RUN) npx cdk synth --quiet $(ARGS)

serve: .venv/.ready ## The service on this machine (ARGS="--port 8000 --data-dir .data")
	$(RUN) memory-banks serve $(ARGS)

opensearch: .venv/.ready ## A single OpenSearch node on 127.0.0.1
	$(RUN) python -m local.opensearch $(ARGS)

demo: .venv/.ready ## A short guided run: write, search, ask and load memory
	$(RUN) memory-banks demo $(ARGS)

# --- Measure ----------------------------------------------------------------------------------------------------------

bench: setup ## Speed and size, as figures and ratios
	$(RUN) python -m benchmarks $(ARGS)

bench-recall: .venv/.ready ## Evidence recall; MEMORY_BANKS_LOCOMO names the conversations' file
	$(RUN) python -m benchmarks.recall $(ARGS)

clean: ## Remove what was built; the data folders of serve stay
	rm -rf .venv .tools .build node_modules cdk.out .mypy_cache .ruff_cache .pytest_cache .hypothesis

"""schemathesis over the OpenAPI document: no 5xx, no undeclared status, no answer that breaks its schema.

The cases go through the handler as API Gateway events, each to a bank of its own, so that what the routes do is reached.
By default a few an operation; `MEMORY_BANKS_SCHEMA_EXAMPLES` asks for so many, and for the edges of each field besides.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from memory_banks import banks, bootstrap, contents, exporting, jobs
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from functions.api import openapi
from functions.api.routes import app
from tests.doubles.clock import ManualClock

from .conftest import Client, World

WANTED = os.environ.get("MEMORY_BANKS_SCHEMA_EXAMPLES")
EXAMPLES = int(WANTED or "8")
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

config = schemathesis.Config.from_dict({"phases": {"coverage": {"enabled": bool(WANTED)}}})
schema = schemathesis.openapi.from_dict(openapi.document(app), config=config)


@pytest.fixture
def client() -> Iterator[Client]:
    made = World(ManualClock(), random.Random(0))
    bootstrap.use(made)
    yield Client(made, made.key())
    bootstrap.use(None)


@pytest.mark.slow
@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_whatever_is_sent_is_answered_as_described(case: Any, client: Client) -> None:
    existing = real_ids(client)
    case.path_parameters = {name: existing[name] for name in case.path_parameters or {}}
    case.validate_response(answered(case, client), checks=CHECKS)


def real_ids(client: Client) -> dict[str, str]:
    """A bank with its source, an entry, a job, an export, an agent and a conversation with the assistant that are there."""
    bank = client.bank(max_turns=5, name=f"Support {client.world.chance.random()}", capture={"flow_id": "support"})
    run = {"key": "k", "messages": [{"sender": "user", "text": "My printer is on fire."}]}
    message = client("POST", f"/memory_banks/{bank}/runs", body=run).json["message_ids"][0]
    entry = client.write(bank, agent_id="planner")["id"]
    job = jobs.create(client.world, banks.get(client.world, "acme", bank), "compaction")["sk"]
    proposal = client("POST", "/memory_banks/ai-assistant", body={"user_input": "Keep support history"}).json
    source = client("GET", f"/memory_banks/{bank}").json["source_connection_id"]
    export = client("POST", f"/sources/{source}/exports", body={"format": "json"}).json["id"]
    exporting.handle(client.world, client.world.exports.sent.pop(), deadline=client.world.clock.now() + 900_000)
    return {
        "source_connection_id": source,
        "export_id": export,
        "bank_id": bank,
        "entry_id": entry,
        "content_id": contents.id_of(bank, entry),
        "job_id": job,
        "message_id": message,
        "agent_id": "planner",
        "conversation_id": proposal["conversation_id"],
    }


def answered(case: Any, client: Client) -> httpx.Response:
    """The function's answer to a generated case, sent with a key that is valid."""
    sent = requests.Request(**case.as_transport_kwargs(base_url="http://api.example")).prepare()
    url = urlsplit(sent.url or "")
    body = sent.body.encode() if isinstance(sent.body, str) else sent.body
    own = {"x-api-key", "authorization"}
    headers = {name: value for name, value in sent.headers.items() if isinstance(value, str) and name.lower() not in own}
    reply = client(sent.method or "GET", unquote(url.path), query=url.query, headers=headers, raw=body)
    request = httpx.Request(sent.method or "GET", sent.url or "")
    content = reply.text.encode() if reply.text is not None else None
    response = httpx.Response(reply.status, headers=reply.headers, content=content, request=request)
    response.elapsed = timedelta(milliseconds=1)
    return response

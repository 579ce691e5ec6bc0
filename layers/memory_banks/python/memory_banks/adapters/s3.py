"""Blobs in an Amazon S3 bucket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from ..ports import BlobsUnavailable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BATCH = 1000


class S3Blobs:
    """`ports.Blobs` in one bucket."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, name: str, body: bytes, content_type: str = "application/octet-stream") -> None:
        """See `ports.Blobs.put`."""
        try:
            self._client.put_object(Bucket=self._bucket, Key=name, Body=body, ContentType=content_type)
        except (ClientError, BotoCoreError) as error:
            raise BlobsUnavailable(str(error)) from error

    def get(self, name: str) -> bytes | None:
        """See `ports.Blobs.get`."""
        try:
            return self._client.get_object(Bucket=self._bucket, Key=name)["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] in {"NoSuchKey", "404"}:
                return None
            raise BlobsUnavailable(str(error)) from error
        except BotoCoreError as error:
            raise BlobsUnavailable(str(error)) from error

    def delete(self, names: Sequence[str]) -> None:
        """See `ports.Blobs.delete`."""
        for start in range(0, len(names), BATCH):
            try:
                answer = self._client.delete_objects(
                    Bucket=self._bucket,
                    Delete={"Objects": [{"Key": name} for name in names[start : start + BATCH]], "Quiet": True},
                )
            except (ClientError, BotoCoreError) as error:
                raise BlobsUnavailable(str(error)) from error
            if answer.get("Errors"):
                raise BlobsUnavailable(str(answer["Errors"][0].get("Message")))

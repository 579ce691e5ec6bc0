"""Blobs in an Amazon S3 bucket."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from ..ports import BlobsUnavailable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

BATCH = 1000

PART = 8 << 20
"""Bytes of a part; S3 takes 10,000 of them, of 5 MiB at least."""


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

    def upload(self, name: str, content_type: str) -> S3Upload:
        """See `ports.Blobs.upload`."""
        return S3Upload(self._client, self._bucket, name, content_type)

    def link(self, name: str, seconds: int, file_name: str) -> str:
        """See `ports.Blobs.link`. The signature is made here; nothing is asked of S3."""
        shown = {"ResponseContentDisposition": f'attachment; filename="{file_name}"'}
        try:
            return self._client.generate_presigned_url(
                "get_object", Params={"Bucket": self._bucket, "Key": name, **shown}, ExpiresIn=seconds
            )
        except (ClientError, BotoCoreError) as error:
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


class S3Upload:
    """`ports.Upload` in parts; what fits into one is put at once. Parts of one that died go by the bucket's lifecycle rule."""

    def __init__(self, client: S3Client, bucket: str, name: str, content_type: str) -> None:
        self._client = client
        self._bucket = bucket
        self._name = name
        self._content_type = content_type
        self._waiting = bytearray()
        self._id: str | None = None
        self._parts: list[CompletedPartTypeDef] = []

    def write(self, piece: bytes) -> None:
        """See `ports.Upload.write`."""
        self._waiting += piece
        while len(self._waiting) >= PART:
            self._send(bytes(self._waiting[:PART]))
            del self._waiting[:PART]

    def finish(self) -> None:
        """See `ports.Upload.finish`."""
        try:
            if self._id is None:
                self._client.put_object(
                    Bucket=self._bucket, Key=self._name, Body=bytes(self._waiting), ContentType=self._content_type
                )
                return
            if self._waiting:
                self._send(bytes(self._waiting))
            self._client.complete_multipart_upload(
                Bucket=self._bucket, Key=self._name, UploadId=self._id, MultipartUpload={"Parts": self._parts}
            )
            self._id = None
        except (ClientError, BotoCoreError) as error:
            raise BlobsUnavailable(str(error)) from error

    def abort(self) -> None:
        """See `ports.Upload.abort`."""
        self._waiting.clear()
        if self._id is not None:
            with suppress(ClientError, BotoCoreError):
                self._client.abort_multipart_upload(Bucket=self._bucket, Key=self._name, UploadId=self._id)
            self._id = None

    def _send(self, body: bytes) -> None:
        try:
            if self._id is None:
                self._id = self._client.create_multipart_upload(
                    Bucket=self._bucket, Key=self._name, ContentType=self._content_type
                )["UploadId"]
            number = len(self._parts) + 1
            sent = self._client.upload_part(Bucket=self._bucket, Key=self._name, UploadId=self._id, PartNumber=number, Body=body)
            self._parts.append({"ETag": sent["ETag"], "PartNumber": number})
        except (ClientError, BotoCoreError) as error:
            raise BlobsUnavailable(str(error)) from error

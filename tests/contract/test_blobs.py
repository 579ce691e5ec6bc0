"""The contract of `ports.Blobs`: on S3 as moto has it, and on the double that other tests use."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import boto3
import pytest
from memory_banks.adapters.s3 import PART, S3Blobs
from memory_banks.ports import Blobs, BlobsUnavailable
from moto import mock_aws

from tests.doubles.memory_blobs import MemoryBlobs


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Blobs]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="bucket")
        yield S3Blobs(client, "bucket")


@pytest.fixture(params=["s3", "memory"])
def blobs(request: pytest.FixtureRequest) -> Blobs:
    return request.getfixturevalue("s3") if request.param == "s3" else MemoryBlobs()


def test_what_is_put_can_be_read_replaced_and_removed(blobs: Blobs) -> None:
    assert blobs.get("a/b") is None
    blobs.put("a/b", b"one")
    blobs.put("a/b", b"two")
    assert blobs.get("a/b") == b"two"
    blobs.delete(["a/b", "never"])
    assert blobs.get("a/b") is None
    blobs.delete([])


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 5])
def test_an_upload_is_there_once_it_is_finished(blobs: Blobs, size: int) -> None:
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    upload = blobs.upload("file", "text/plain")
    for start in range(0, size, 3_000_000):
        upload.write(body[start : start + 3_000_000])
        assert blobs.get("file") is None
    upload.finish()
    assert blobs.get("file") == body
    upload.abort()
    assert blobs.get("file") == body


@pytest.mark.parametrize("size", [1, 2 * PART])
def test_an_upload_that_is_given_up_leaves_nothing(blobs: Blobs, size: int) -> None:
    upload = blobs.upload("file", "text/plain")
    upload.write(bytes(size))
    upload.abort()
    upload.abort()
    assert blobs.get("file") is None


def test_no_parts_are_left_on_s3(s3: S3Blobs) -> None:
    upload = s3.upload("file", "text/plain")
    upload.write(bytes(2 * PART))
    assert s3._client.list_multipart_uploads(Bucket="bucket")["Uploads"]
    upload.abort()
    assert "Uploads" not in s3._client.list_multipart_uploads(Bucket="bucket")


def test_an_upload_keeps_its_type_and_a_link_leads_to_it(s3: S3Blobs) -> None:
    for size in (3, PART + 1):
        upload = s3.upload("file", "text/csv")
        upload.write(bytes(size))
        upload.finish()
        url = s3.link("file", 60, "mine.csv")
        assert "mine.csv" in urllib.request.unquote(url)
        assert s3._client.head_object(Bucket="bucket", Key="file")["ContentType"] == "text/csv"


def test_a_bucket_that_is_away_is_said_to_be(s3: S3Blobs) -> None:
    gone = S3Blobs(s3._client, "no-such-bucket")
    for size in (1, PART):
        upload = gone.upload("file", "text/plain")
        with pytest.raises(BlobsUnavailable):
            upload.write(bytes(size))
            upload.finish()
        upload.abort()

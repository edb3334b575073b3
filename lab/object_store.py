"""An S3 server of the tests: empty, with one bucket, on a free loopback port."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from incsnap.errors import ServerUnreachable

_READY_SECONDS = 60


@dataclass(frozen=True)
class ObjectStore:
    """A running S3 server, and the keys that it accepts."""

    endpoint: str  #: URL of the server
    access_key: str  #: id of the key, as S3 calls it
    secret_key: str = field(repr=False)  #: secret of that key
    bucket: str = "lake"  #: name of an existing, empty bucket

    def properties(self, path: str) -> dict[str, str]:
        """Return a job's settings for a checkpoint below `path` in the bucket."""
        return {
            "checkpoint.location": f"s3a://{self.bucket}/{path}",
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "eu-central-1",
            "spark.hadoop.fs.s3a.access.key": self.access_key,
            "spark.hadoop.fs.s3a.secret.key": self.secret_key,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }

    def request_counts(self) -> Counter[str]:
        """Return the number of requests by kind (PUT, GET, HEAD, LIST, COPY, ...) since the last call.

        A call of `requests` counts as well.
        """
        return Counter(method for method, _ in self.requests())

    def requests(self) -> list[tuple[str, str]]:
        """Return kind and key of each request since the last call of this or `request_counts`."""
        return [(method, key) for method, key in self._control("requests")]

    def fail(self, *faults: dict[str, Any]) -> None:
        """Make the server fail as `faults` say. They replace all earlier ones: see `ObjectStoreApplication`."""
        self._control("faults", list(faults))

    def copy(self, source: str, target: str, without: Sequence[str] = ()) -> None:
        """Copy all objects below the URI `source` to the URI `target`, except names in `without`."""
        client, start = _client(self), f"s3a://{self.bucket}/"
        old, new = (f"{each.removeprefix(start)}/" for each in (source, target))
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=old):
            for key in [each["Key"] for each in page.get("Contents", ())]:
                name = key.removeprefix(old)
                if name not in without:
                    place = {"Bucket": self.bucket, "Key": key}
                    client.copy_object(Bucket=self.bucket, Key=new + name, CopySource=place)

    def _control(self, command: str, content: object = None) -> Any:
        request = urllib.request.Request(f"{self.endpoint}/_lab/{command}", json.dumps(content).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


@contextlib.contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Run an S3 server until the block ends.

    Raise ServerUnreachable if it does not start, for example because moto (extra `[test]`) is not installed.
    """
    access_key, secret_key = f"AKIA{secrets.token_hex(8).upper()}", secrets.token_urlsafe(30)
    command = [sys.executable, "-m", "lab.object_store_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(f"{access_key} {secret_key}\n")
            server.stdin.flush()
            port = server.stdout.readline().strip()
            if not port:
                raise ServerUnreachable("The object store did not start", "Is moto installed? pip install -e '.[test]'")
            store = ObjectStore(f"http://127.0.0.1:{port}", access_key, secret_key)
            _make_bucket(store)
            yield store
        finally:
            server.kill()


def _make_bucket(store: ObjectStore) -> None:
    place = {"LocationConstraint": "eu-central-1"}
    _client(store).create_bucket(Bucket=store.bucket, CreateBucketConfiguration=place)


def _client(store: ObjectStore) -> Any:
    import boto3

    return boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        aws_access_key_id=store.access_key,
        aws_secret_access_key=store.secret_key,
        region_name="eu-central-1",
    )

"""An S3 server of our own on a free loopback port, empty, with one bucket."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from incsnap.errors import ServerUnreachable

_READY_SECONDS = 60


@dataclass(frozen=True)
class ObjectStore:
    """``endpoint``: its URL; ``bucket``: is there, and empty."""

    endpoint: str
    access_key: str
    secret_key: str = field(repr=False)
    bucket: str = "lake"

    def properties(self, path: str) -> dict[str, str]:
        """A job's settings for a checkpoint there."""
        return {
            "checkpoint.location": f"s3a://{self.bucket}/{path}",
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "eu-central-1",
            "spark.hadoop.fs.s3a.access.key": self.access_key,
            "spark.hadoop.fs.s3a.secret.key": self.secret_key,
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }

    def request_counts(self) -> Counter[str]:
        """How many requests of each kind it was sent since this was asked before: PUT, GET, HEAD, LIST, ..."""
        return Counter(method for method, _ in self.requests())

    def requests(self) -> list[tuple[str, str]]:
        """The kind and the key of each, as ``request_counts`` counts them."""
        return [(method, key) for method, key in self._control("requests")]

    def fail(self, *faults: dict[str, Any]) -> None:
        """Has the store make these faults, and no others, from now on: see ``ObjectStoreApplication``."""
        self._control("faults", list(faults))

    def _control(self, command: str, content: object = None) -> Any:
        request = urllib.request.Request(f"{self.endpoint}/_lab/{command}", json.dumps(content).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


@contextlib.contextmanager
def object_store() -> Iterator[ObjectStore]:
    """:raises ServerUnreachable: it cannot be started; or moto, of the extra ``[test]``, is not installed."""
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
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        aws_access_key_id=store.access_key,
        aws_secret_access_key=store.secret_key,
        region_name="eu-central-1",
    )
    client.create_bucket(Bucket=store.bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})

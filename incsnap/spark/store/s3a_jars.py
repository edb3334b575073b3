"""The jars of Hadoop's `s3a`, which PySpark lacks. They are fetched when the first job needs them.

`hadoop-aws` requires AWS's whole library (600 MB). It uses the jars of 11 MB that are listed here; jars that Spark has
are left out. The jars stay in the user's cache directory, so later starts ask no repository: with `spark.jars.packages`
each start would resolve them again, in ten seconds. Only the driver needs them: its tasks read the store themselves.
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit, urlunsplit

from filelock import FileLock

from incsnap.config.user_folders import cache_folder
from incsnap.errors import ConfigError

#: Versions of the Hadoop in PySpark 4.3, and of the AWS library that it was built with.
_HADOOP, _AWS = "3.5.0", "2.35.4"
_NAME = f"s3a-{_HADOOP}-{_AWS}"
#: Jars of the AWS library, which all have its version.
_AWS_JARS = """
    annotations apache-client arns auth aws-core aws-query-protocol aws-xml-protocol checksums checksums-spi crt-core
    endpoints-spi http-auth http-auth-aws http-auth-aws-eventstream http-auth-spi http-client-spi identity-spi
    json-utils metrics-spi netty-nio-client profiles protocol-core regions retries retries-spi s3 s3-transfer-manager
    sdk-core sts third-party-jackson-core utils utils-lite
"""
#: (folder of the group, name, version) of each jar.
_JARS = (
    ("org/apache/hadoop", "hadoop-aws", _HADOOP),
    ("org/reactivestreams", "reactive-streams", "1.0.4"),
    ("software/amazon/eventstream", "eventstream", "1.0.1"),
    ("software/amazon/s3/analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1"),
    *(("software/amazon/awssdk", name, _AWS) for name in _AWS_JARS.split()),
)
_CENTRAL = "https://repo1.maven.org/maven2/"
#: Seconds for one answer of the repository.
_SECONDS = 60
_HINT = (
    "Set DEFAULT_ARTIFACT_REPOSITORY to a mirror of Maven Central. Or name the jars yourself:"
    " spark.driver.extraClassPath=FOLDER/* with hadoop-aws of Spark's Hadoop and AWS's library, or spark.jars.packages."
)


def s3a_jars() -> Path:
    """Return the folder with the jars, and fetch them if it is missing. Raise ConfigError if they cannot be fetched."""
    place = cache_folder() / _NAME
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{place}.lock"):
        if not place.is_dir():
            with tempfile.TemporaryDirectory(prefix=f"{_NAME}-", dir=place.parent) as folder:
                jars = Path(folder, "jars")
                jars.mkdir()
                with ThreadPoolExecutor(8) as threads:
                    list(threads.map(lambda jar: _fetch(jars, *jar), _JARS))
                os.rename(jars, place)
    return place


def _fetch(folder: Path, group: str, name: str, version: str) -> None:
    """Fetch one jar into `folder`. Raise ConfigError."""
    repository = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY") or _CENTRAL
    file = f"{name}-{version}.jar"
    url = f"{repository.rstrip('/')}/{group}/{name}/{version}/{file}"
    try:
        jar, sha1 = _read(url), _read(f"{url}.sha1").decode().split()[0]
    except (OSError, HTTPException, ValueError, IndexError) as error:
        raise ConfigError(f"The jars of s3a cannot be fetched: {file}: {error}", _HINT) from None
    if hashlib.sha1(jar, usedforsecurity=False).hexdigest() != sha1:
        raise ConfigError(
            f"The jars of s3a cannot be fetched: {file} has another SHA-1 than the repository says", _HINT
        )
    Path(folder, file).write_bytes(jar)


def _read(url: str) -> bytes:
    """Return the file at `url`, whose address may have a user and a password. Raise OSError or HTTPException."""
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    request = urllib.request.Request(urlunsplit(parts._replace(netloc=host)))
    if user:
        request.add_header("Authorization", f"Basic {base64.b64encode(unquote(user).encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except HTTPError as error:
        error.close()
        raise

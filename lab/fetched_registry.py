"""A schema registry from the Maven repository: Apicurio, whose `/apis/ccompat/v7` speaks Confluent's protocol.

Only Avro needs a registry, so it is fetched when a test or user first asks for it. It keeps its schemas in memory.
"""

from __future__ import annotations

import contextlib
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from incsnap.errors import ServerUnreachable
from lab import cache
from lab.child_programs import Child, child
from lab.free_port import PortTaken, free_ports
from lab.java import java
from lab.maven import archive, retrieve
from lab.progress import tell
from lab.run_folder import on_free_ports
from lab.unpacking import unpack

VERSION = "3.3.3"
_CONFLUENT = "/apis/ccompat/v7"
_OLDEST_JAVA = 21
_READY_SECONDS = 120
_GIVEN = "INCSNAP_REGISTRY"
_NAME = "apicurio-registry-app"


@contextlib.contextmanager
def registry() -> Iterator[str]:
    """Yield the URL of a registry: the one that `INCSNAP_REGISTRY` names, or a new one on a free loopback port.

    The new registry is empty and ends with the block. Raise ServerUnreachable if it can neither be fetched nor started.
    """
    if url := os.environ.get(_GIVEN, "").strip():
        yield url
        return
    installed = cache.entry(f"apicurio-{VERSION}", _build)
    with on_free_ports(lambda folder: _server(installed, folder)) as url:
        yield url


@contextlib.contextmanager
def _server(installed: Path, folder: Path) -> Iterator[str]:
    port, management = free_ports(2)
    # 320 MB: the default is a quarter of the machine's memory.
    command = [java(_OLDEST_JAVA), "-Xmx320m", "-XX:TieredStopAtLevel=1", "-Dquarkus.http.host=127.0.0.1"]
    command += [f"-Dquarkus.http.port={port}", f"-Dquarkus.management.port={management}"]
    command += ["-Dquarkus.management.host=127.0.0.1", "-Dquarkus.log.level=WARN"]
    command += [f"-Djava.io.tmpdir={folder}", "-jar", f"{installed}/quarkus-run.jar"]
    with child("Apicurio Registry", command, folder / "registry.log") as server:
        url = f"http://127.0.0.1:{port}{_CONFLUENT}"
        _wait_until_ready(server, url)
        yield url


def _wait_until_ready(server: Child, url: str) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while not _answers(url):
        if server.exit_code() is not None:
            log = server.log.read_text(errors="replace")
            error = PortTaken if "already in use" in log or "in use by" in log else ServerUnreachable
            raise error(f"The schema registry stopped while starting:\n{server.last_words()}")
        if time.monotonic() > deadline:
            raise ServerUnreachable(
                f"The schema registry did not answer within {_READY_SECONDS} s:\n{server.last_words()}"
            )
        time.sleep(0.1)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/subjects", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _build(folder: Path, downloads: Path) -> None:
    """Fill `folder` with Apicurio's files."""
    tell(f"fetching Apicurio Registry {VERSION} into {cache.root()} (once; about 160 MB)")
    dependencies = archive("io.apicurio", _NAME, VERSION, "all")
    retrieve("Apicurio Registry", dependencies, f"{downloads}/[artifact].[ext]", downloads, downloads / "log")
    unpack(downloads / f"{_NAME}.tar.gz", folder)

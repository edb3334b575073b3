"""MySQL and Kafka in Docker containers, by testcontainers, if a Docker engine answers."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

import pymysql

from incsnap.errors import ServerUnreachable
from lab.addresses import MySqlAddress
from lab.flags import MYSQL_OPTIONS
from lab.mysql_client import connect
from lab.progress import tell

#: The image, unless `INCSNAP_MYSQL_IMAGE` names another one. 8.0 and 8.4 are untried.
MYSQL_IMAGE = "mysql:8.4"
_MYSQL_PORT = 3306
_READY_SECONDS = 120
# A ping without an engine fails at once. If the engine is remote and gone, it may never return.
_PING_SECONDS = 10


# The ping runs in its own process: a process that hangs can be killed. Docker's client also leaves a socket open when
# it fails.
_PING = "from testcontainers.core.docker_client import DockerClient; DockerClient().client.ping()"


@functools.cache
def engine_answers() -> bool:
    """Return True if containers can be started here. A process pings the engine only once.

    testcontainers belongs to the extra `[test]`. Without it the result is False.
    """
    try:
        ping = subprocess.run([sys.executable, "-c", _PING], capture_output=True, timeout=_PING_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return ping.returncode == 0


def mysql_image(environment: Mapping[str, str]) -> str:
    """Return the name of the image. It must be an official MySQL image: those take mysqld options as their command."""
    return environment.get("INCSNAP_MYSQL_IMAGE", "").strip() or MYSQL_IMAGE


@contextlib.contextmanager
def contained_mysql(options: Sequence[str] = ()) -> Iterator[MySqlAddress]:
    """Run a MySQL container with empty data until the block ends. The user root has no password.

    Raise ServerUnreachable if the server does not answer within 120 s.
    """
    from testcontainers.core.container import DockerContainer

    image = mysql_image(os.environ)
    tell(f"starting {image} in Docker (the image is pulled the first time)")
    container = DockerContainer(image).with_exposed_ports(_MYSQL_PORT)
    container.with_env("MYSQL_ALLOW_EMPTY_PASSWORD", "yes").with_env("MYSQL_ROOT_HOST", "%")
    container.with_command([*MYSQL_OPTIONS, "--mysqlx=OFF", *options])
    with container:
        address = MySqlAddress(_numeric(container.get_container_host_ip()), container.get_exposed_port(_MYSQL_PORT))
        deadline = time.monotonic() + _READY_SECONDS
        # The image first runs a server without TCP to fill the data folder, so the first answer over TCP is the final
        # server's.
        while not _mysql_answers(address):
            if time.monotonic() > deadline:
                output = b"\n".join(container.get_logs()).decode(errors="replace")
                raise ServerUnreachable(f"{image} did not answer within {_READY_SECONDS} s:\n{output[-2000:]}")
            time.sleep(0.2)
        yield address


def _mysql_answers(address: MySqlAddress) -> bool:
    try:
        connect(address, connect_timeout=5, read_timeout=5).close()
    except pymysql.err.MySQLError:
        return False
    return True


@contextlib.contextmanager
def contained_kafka() -> Iterator[str]:
    """Run a KRaft broker in a container until the block ends. Yield its `host:port`."""
    from testcontainers.kafka import KafkaContainer

    container = KafkaContainer().with_kraft()
    tell(f"starting {container.image} in Docker (the image is pulled the first time)")
    container.with_env("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
    container.with_env("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
    container.with_env("KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS", "4")
    try:
        container.start(timeout=_READY_SECONDS)
        yield container.get_bootstrap_server()
    finally:
        container.stop()


def _numeric(host: str) -> str:
    # "localhost" may be ::1. Docker's proxy does not always listen there.
    return "127.0.0.1" if host == "localhost" else host

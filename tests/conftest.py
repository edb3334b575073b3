"""Fixtures that every test may use: real servers, started when the first test asks and stopped after the last."""

from __future__ import annotations

import logging
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.checkpoint.object_store import reach
from incsnap.config.object_store import store_access
from incsnap.errors import ConfigError
from lab.addresses import MySqlAddress, kafka_of, mysql_of
from lab.fetched_registry import registry as start_registry
from lab.mysql_client import connect
from lab.object_store import ObjectStore
from lab.object_store import object_store as start_object_store
from lab.servers import Servers
from lab.servers import servers as start_servers

_VERSIONS = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def mysql_address(request: pytest.FixtureRequest) -> Iterator[MySqlAddress]:
    """The session's MySQL: ``.host .port .user .password``; the user may do everything."""
    with ExitStack() as stack:
        address = _start(request.config, stack, mysql=True).mysql
        request.config.stash[_VERSIONS].append(_describe_mysql(address))
        yield address


@pytest.fixture(scope="session")
def kafka_address(request: pytest.FixtureRequest) -> Iterator[str]:
    """``host:port`` of the session's Kafka."""
    with ExitStack() as stack:
        address = _start(request.config, stack, mysql=False).kafka
        request.config.stash[_VERSIONS].append(_describe_kafka(address))
        yield address


@pytest.fixture(scope="session")
def servers(mysql_address: MySqlAddress, kafka_address: str) -> Servers:
    """Both of them."""
    return Servers(mysql_address, kafka_address)


@pytest.fixture(scope="session")
def registry_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The session's schema registry, as Confluent's protocol knows it; started only when a test asks."""
    with ExitStack() as stack:
        with _shown(request.config):
            url = stack.enter_context(start_registry())
        yield url


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """The session's S3 server, with an empty bucket: each test takes a folder of its own."""
    for needed in ("moto", "obstore"):
        pytest.importorskip(needed, reason=f"{needed}, of the extra [test], is not installed")
    with start_object_store() as store:
        yield store


@pytest.fixture
def bucket_folder(object_store: ObjectStore) -> Iterator[str]:
    """A URI in it, where nothing is, and which this process can reach."""
    location = f"s3a://{object_store.bucket}/{secrets.token_hex(5)}"
    reach(location, store_access(location, object_store.properties(""), {}))
    yield location
    object_store.fail()


@pytest.fixture
def database(mysql_address: MySqlAddress) -> Iterator[str]:
    """The name of an empty database of this test alone; dropped afterwards."""
    name = f"test_{secrets.token_hex(5)}"
    _execute(mysql_address, f"CREATE DATABASE `{name}`")
    yield name
    _execute(mysql_address, f"DROP DATABASE IF EXISTS `{name}`")


@pytest.fixture
def connection(mysql_address: MySqlAddress, database: str) -> Iterator[Connection[Any]]:
    """A session in that database that may do everything and commits each statement."""
    with closing(connect(mysql_address, database=database)) as opened:
        yield opened


@pytest.fixture
def cursor(connection: Connection[Any]) -> Iterator[Cursor]:
    """A cursor of it."""
    with connection.cursor() as opened:
        yield opened


@pytest.fixture
def topic_prefix() -> str:
    """A ``topic.prefix`` nobody else uses."""
    return f"test-{secrets.token_hex(5)}"


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """Where a socket may be: its path has 107 bytes at most, and those of ``tmp_path`` are too long beside xdist's."""
    with tempfile.TemporaryDirectory(prefix="s-") as folder:
        yield Path(folder)


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """A measured value, shown whether the test passes or not."""

    def write(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n  {text}\n")

    return write


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_VERSIONS] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not os.environ.get("INCSNAP_LONG"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="takes minutes: INCSNAP_LONG=1 runs it"))


def pytest_report_header() -> str:
    """The versions of servers that run already; the others' stand at the end, when they are known."""
    try:
        mysql, kafka = mysql_of(os.environ), kafka_of(os.environ)
        known = [
            _describe_mysql(mysql) if mysql else "MySQL of its own",
            _describe_kafka(kafka) if kafka else "Kafka of its own",
        ]
    except Exception as error:  # noqa: BLE001 - a header must not stop a run that may need no server at all
        known = [f"{error.message} {error.hint}" if isinstance(error, ConfigError) else f"not reachable: {error}"]
    return "servers: " + "; ".join(known)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    versions = config.stash[_VERSIONS]
    if versions:
        terminalreporter.write_line("servers: " + "; ".join(versions))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    """xdist's: a worker has ended, and says which servers it had."""
    output, config = getattr(node, "workeroutput", {}), getattr(node, "config", None)
    if isinstance(config, pytest.Config):
        config.stash[_VERSIONS] += [each for each in output.get("servers", ()) if each not in config.stash[_VERSIONS]]


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["servers"] = session.config.stash[_VERSIONS]


def _start(config: pytest.Config, stack: ExitStack, *, mysql: bool) -> Servers:
    with _shown(config):
        return stack.enter_context(start_servers(mysql=mysql, kafka=not mysql))


def _shown(config: pytest.Config) -> AbstractContextManager[object]:
    """The first fetch takes a minute: its progress lines go to the terminal instead of a failing test's report."""
    capture = config.pluginmanager.getplugin("capturemanager")
    return nullcontext() if capture is None else capture.global_and_fixture_disabled()


def _describe_mysql(address: MySqlAddress) -> str:
    ((version, gtid_mode),) = _execute(address, "SELECT VERSION(), @@gtid_mode")
    return f"MySQL {version} at {address}, gtid_mode {gtid_mode}"


def _describe_kafka(address: str) -> str:
    # Kafka's protocol names no release; the cluster's id says at least which one it is.
    metadata = AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=10)
    return f"Kafka at {address}, {len(metadata.brokers)} broker(s), cluster {metadata.cluster_id}"


def _execute(address: MySqlAddress, sql: str) -> tuple[tuple[object, ...], ...]:
    with closing(connect(address)) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return tuple(cursor.fetchall())


@pytest.fixture(autouse=True)
def _log_levels_of_their_own() -> Iterator[None]:
    """A command that was run sets the level of our loggers; the next test must not inherit it."""
    yield
    for name in ("incsnap", "signals"):
        logging.getLogger(name).setLevel(logging.NOTSET)

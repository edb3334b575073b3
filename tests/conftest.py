"""Fixtures for all tests: real servers, which start when the first test asks for them and stop after the last test."""

from __future__ import annotations

import logging
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.checkpoint.object_store import set_access
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
#: Folders whose tests need no servers.
_WITHOUT_SERVERS = ("unit", "property")


@pytest.fixture(scope="module")
def minimal_mysql() -> Iterator[MySqlAddress]:
    """Yield a server with `binlog_row_metadata=MINIMAL` for one test file, because the setting is global."""
    with start_servers(kafka=False, mysql_options=["--binlog-row-metadata=MINIMAL"]) as started:
        yield started.mysql


@pytest.fixture(scope="session")
def mysql_address(request: pytest.FixtureRequest) -> Iterator[MySqlAddress]:
    """The session's MySQL server: `.host .port .user .password`. The user has all rights."""
    with ExitStack() as stack:
        address = _start(request.config, stack, mysql=True).mysql
        request.config.stash[_VERSIONS].append(_describe_mysql(address))
        yield address


@pytest.fixture(scope="session")
def kafka_address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield `host:port` of the session's Kafka."""
    with ExitStack() as stack:
        address = _start(request.config, stack, mysql=False).kafka
        request.config.stash[_VERSIONS].append(_describe_kafka(address))
        yield address


@pytest.fixture(scope="session")
def servers(mysql_address: MySqlAddress, kafka_address: str) -> Servers:
    """The session's MySQL and Kafka."""
    return Servers(mysql_address, kafka_address)


@pytest.fixture(scope="session")
def registry_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of the session's schema registry, for Confluent's protocol.

    The registry starts when a test first asks for it.
    """
    with ExitStack() as stack:
        with _shown(request.config):
            url = stack.enter_context(start_registry())
        yield url


@pytest.fixture(scope="module")
def own_mysql() -> Iterator[MySqlAddress]:
    """A server for the tests of one file, which may throw its binlog away."""
    with start_servers(kafka=False) as own:
        yield own.mysql


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    """The session's S3 server with one bucket. Each test uses its own folder."""
    for needed in ("moto", "obstore"):
        pytest.importorskip(needed, reason=f"{needed}, of the extra [test], is not installed")
    with start_object_store() as store:
        yield store


@pytest.fixture
def bucket_folder(object_store: ObjectStore) -> Iterator[str]:
    """The URI of a new folder in the bucket. This process can reach it."""
    location = f"s3a://{object_store.bucket}/{secrets.token_hex(5)}"
    set_access(location, store_access(location, object_store.properties(""), {}))
    yield location
    object_store.fail()


@pytest.fixture
def database(mysql_address: MySqlAddress) -> Iterator[str]:
    """The name of an empty database for one test. It is dropped after the test."""
    name = f"test_{secrets.token_hex(5)}"
    _execute(mysql_address, f"CREATE DATABASE `{name}`")
    yield name
    _execute(mysql_address, f"DROP DATABASE IF EXISTS `{name}`")


@pytest.fixture
def connection(mysql_address: MySqlAddress, database: str) -> Iterator[Connection[Any]]:
    """A session in the test's database, with all rights and autocommit."""
    with closing(connect(mysql_address, database=database)) as opened:
        yield opened


@pytest.fixture
def cursor(connection: Connection[Any]) -> Iterator[Cursor]:
    """A cursor of the test's session."""
    with connection.cursor() as opened:
        yield opened


@pytest.fixture
def topic_prefix() -> str:
    """A unique `topic.prefix`."""
    return f"test-{secrets.token_hex(5)}"


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """A folder for sockets with a short path.

    A socket's path has at most 107 bytes, and under xdist `tmp_path` is too long.
    """
    with tempfile.TemporaryDirectory(prefix="s-") as folder:
        yield Path(folder)


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """A function that prints a measured value, whether the test passes or fails."""

    def write(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n  {text}\n")

    return write


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Restore the process's umask: a command that a test calls in this process sets it for a process of its own."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_VERSIONS] = []


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs servers if the time `INCSNAP_SERVERS_UNTIL` (seconds since 1970) has passed."""
    if item.get_closest_marker("servers") and time.time() > float(os.environ.get("INCSNAP_SERVERS_UNTIL", "inf")):
        pytest.skip("needs servers, and the time for such tests is over on this machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The golden file takes five minutes. If it came last in the random order, one of the two workers would wait for it.
    # Tests that need no servers come next, because a slow machine leaves out some of those that need servers.
    first = {"golden": 0} | dict.fromkeys(_WITHOUT_SERVERS, 1)
    items.sort(key=lambda item: first.get(item.path.relative_to(item.config.rootpath / "tests").parts[0], 2))
    if not os.environ.get("INCSNAP_LONG"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="takes minutes: INCSNAP_LONG=1 runs it"))
    if os.environ.get("INCSNAP_ROW_METADATA") == "MINIMAL":
        for item in items:
            if (named := item.get_closest_marker("named_rows")) is not None:
                item.add_marker(pytest.mark.skip(reason=f"needs binlog_row_metadata=FULL: {named.args[0]}"))


def pytest_report_header() -> str:
    """Return the versions of servers that already run. Versions of other servers are printed at the end."""
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
    """Note which servers a worker of xdist had, when the worker has ended."""
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
    """Return a context in which output goes to the terminal.

    A first fetch takes a minute, and its progress must be visible.
    """
    capture = config.pluginmanager.getplugin("capturemanager")
    return nullcontext() if capture is None else capture.global_and_fixture_disabled()


def _describe_mysql(address: MySqlAddress) -> str:
    ((version, gtid_mode),) = _execute(address, "SELECT VERSION(), @@gtid_mode")
    return f"MySQL {version} at {address}, gtid_mode {gtid_mode}"


def _describe_kafka(address: str) -> str:
    # Kafka's protocol does not tell the release. The cluster's id identifies the cluster at least.
    metadata = AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=10)
    return f"Kafka at {address}, {len(metadata.brokers)} broker(s), cluster {metadata.cluster_id}"


def _execute(address: MySqlAddress, sql: str) -> tuple[tuple[object, ...], ...]:
    with closing(connect(address)) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return tuple(cursor.fetchall())


@pytest.fixture(autouse=True)
def _log_levels_of_their_own() -> Iterator[None]:
    """Reset the level of our loggers after each test, because a command sets it."""
    yield
    for name in ("incsnap", "signals"):
        logging.getLogger(name).setLevel(logging.NOTSET)

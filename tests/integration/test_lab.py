"""The lab starts real servers and leaves nothing behind.

These tests start servers of their own, whatever the environment names.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from incsnap.errors import ServerUnreachable
from lab import maven
from lab.addresses import MySqlAddress
from lab.free_port import listens
from lab.mysql_client import connect
from lab.servers import servers
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers

# A container is removed by testcontainers' reaper, some seconds after its owner died; the kernel needs none.


@pytest.fixture(autouse=True)
def run_folders(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Name no server in the environment, and give this test its own temporary folder, with a short path for sockets."""
    tmp_path_factory.getbasetemp()  # made where the session first asks for it: in the folder below, it would go with it
    for name in ("INCSNAP_MYSQL", "INCSNAP_KAFKA"):
        monkeypatch.delenv(name, raising=False)
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.mark.named_rows("it asks the server for its own default")
def test_servers_answer_inside_the_block_and_are_gone_after_it(run_folders: Path) -> None:
    with servers() as started:
        assert ask(started.mysql, "SELECT @@gtid_mode, @@binlog_row_metadata, @@log_bin") == ("ON", "FULL", 1)
        assert len(brokers(started.kafka)) == 1
        ports = [started.mysql.port, port_of(started.kafka)]

    assert not [port for port in ports if listens(port)]
    assert not list(run_folders.glob("incsnap-run-*"))


def test_servers_are_gone_after_an_error_in_the_block() -> None:
    def fail() -> int:
        with servers(kafka=False) as started:
            ports.append(started.mysql.port)
            raise KeyboardInterrupt

    ports: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        fail()

    assert not listens(ports[0])


def test_when_their_owner_is_killed_servers_go_and_the_next_start_removes_their_data(run_folders: Path) -> None:
    program = (
        "import time\nfrom lab.servers import servers\nwith servers() as started:\n"
        "    print(started.mysql.port, started.kafka.rpartition(':')[2], flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        ports = [int(port) for port in owner.stdout.readline().split()]
        assert [listens(port) for port in ports] == [True, True]
        owner.send_signal(signal.SIGKILL)

    wait_until(lambda: not any(listens(port) for port in ports))
    orphans = set(run_folders.glob("incsnap-run-*"))
    with servers(kafka=False):
        assert not orphans & set(run_folders.glob("incsnap-run-*"))


def test_two_at_once_are_two_different_servers() -> None:
    with ExitStack() as stack:
        first, second = (stack.enter_context(servers(kafka=False)).mysql for _ in range(2))

        assert ask(first, "SELECT @@server_uuid") != ask(second, "SELECT @@server_uuid")


def test_a_server_with_options_of_its_own_has_them_and_the_semi_synchronous_plugin() -> None:
    options = ["--plugin-load-add=semisync_source.so", "--rpl-semi-sync-source-timeout=1234"]
    with servers(kafka=False, mysql_options=options) as started:
        assert ask(started.mysql, "SELECT @@rpl_semi_sync_source_timeout") == (1234,)


def test_an_address_in_the_environment_is_used_and_its_server_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    with servers(kafka=False) as ours:
        monkeypatch.setenv("INCSNAP_MYSQL", str(ours.mysql))
        with servers(kafka=False) as given:
            assert given.mysql == ours.mysql

        assert listens(ours.mysql.port)


def test_a_repository_that_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", f"http://127.0.0.1:{silent.getsockname()[1]}/")
        monkeypatch.setattr(maven, "_ATTEMPTS", 1)
        monkeypatch.setattr(maven, "_READ_SECONDS", 1)
        # Without that limit of time Ivy would wait for good, and this test with it.
        with pytest.raises(ServerUnreachable, match="Ivy ended"):
            maven.retrieve("Nothing", maven.dependency("a", "b", "1"), "[artifact]", tmp_path, tmp_path / "log")


def ask(address: MySqlAddress, sql: str) -> tuple[object, ...]:
    with closing(connect(address)) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        row = cursor.fetchone()
        assert row is not None
        return tuple(row)


def brokers(address: str) -> list[int]:
    return list(AdminClient({"bootstrap.servers": address}).list_topics(timeout=60).brokers)


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])

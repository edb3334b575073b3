"""A new job that begins at a given place of the binlog, and places that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from incsnap.binlog.time_search import gtids_before
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.mysql.preflight import findings
from incsnap.mysql.session import connect as connect_by
from incsnap.mysql.session import dial
from incsnap.mysql.start_place import start_gtids
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.mysql_versions import end_of_binlog
from tests.support.planned_job import MakeJob, PlannedJob, planned_jobs, settings_of
from tests.support.purging import purge_binlog

pytestmark = pytest.mark.servers
_FOREIGN = "aaaaaaaa-0000-4000-8000-00000000000a"


class Server:
    """A session on a server with an empty table `shop.t` and a new binlog file."""

    def __init__(self, address: MySqlAddress) -> None:
        self._connection = connect(address)
        self.run("DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
        self.run("FLUSH BINARY LOGS")

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def insert(self, *ids: int) -> None:
        for number in ids:
            self.run(f"INSERT INTO shop.t VALUES ({number})")

    def executed(self) -> str:
        return str(self.run("SELECT @@global.gtid_executed")[0][0]).replace("\n", "")

    def end(self) -> tuple[str, int]:
        return end_of_binlog(self._connection)

    def purge(self) -> None:
        """Purge all files but the last one."""
        purge_binlog(self._connection)

    def events(self, file: str) -> list[tuple[int, str]]:
        """Position and type of each."""
        return [(int(row[1]), str(row[2])) for row in self.run(f"SHOW BINLOG EVENTS IN '{file}'")]

    def now_us(self) -> int:
        """The server's time, in a pause between two transactions."""
        return int(float(self.run("DO SLEEP(0.02)", "SELECT UNIX_TIMESTAMP(NOW(6))")[0][0]) * 1_000_000)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def server(own_mysql: MySqlAddress) -> Iterator[Server]:
    with closing(Server(own_mysql)) as made:
        yield made


@pytest.fixture
def settings(own_mysql: MySqlAddress, kafka_address: str, topic_prefix: str) -> Callable[..., Settings]:
    def make(others: Mapping[str, str] | None = None, **more: str) -> Settings:
        places = {f"incsnap.start.{name.replace('__', '.')}": value for name, value in more.items()}
        places |= {"include.schema.changes": "false", **(others or {})}
        return settings_of(own_mysql, kafka_address, topic_prefix, "shop", **places)

    return make


@pytest.fixture
def begun(settings: Callable[..., Settings], tmp_path: Path) -> Iterator[MakeJob]:
    with planned_jobs(settings, tmp_path, one_checkpoint=True) as begin:
        yield begin


def ids(job: PlannedJob, count: int) -> list[int]:
    """The ids in that many changes of the table."""
    topic = f"{job.settings.topic_prefix}.shop.t"
    job.until(topic, count)
    return [each.key["id"] for each in job.of(topic)]


def refusal(settings: Settings) -> ConfigError:
    """Return the error that the start raises, after checking that `incsnap check` reports the same problem."""
    with closing(connect_by(settings.mysql)) as connection, pytest.raises(ConfigError) as raised:
        start_gtids(connection, settings.start)
    problems = [f"{each.name}: {each.problem}" for each in findings(settings)]
    assert raised.value.message in problems
    return raised.value


def test_a_job_sends_all_that_follows_a_gtid_set(server: Server, begun: Any) -> None:
    server.insert(1)
    place = server.executed()
    server.insert(2, 3)
    job = begun(gtid__set=place)
    server.insert(4)

    assert ids(job, 3) == [2, 3, 4]


@pytest.mark.parametrize("setting", [{"incsnap.start.at": "earliest"}, {"snapshot.mode": "never"}], ids=str)
def test_a_job_sends_all_that_the_binlog_has_from_its_beginning(
    server: Server, settings: Any, tmp_path: Path, setting: dict[str, str]
) -> None:
    server.insert(1)
    server.run("FLUSH BINARY LOGS")
    server.purge()
    server.insert(2, 3)

    with planned_jobs(partial(settings, setting), tmp_path, one_checkpoint=True) as begin:
        assert ids(begin(), 2) == [2, 3]


def test_a_job_sends_all_that_was_committed_at_a_time_or_later(server: Server, begun: Any) -> None:
    server.insert(1)
    server.run("FLUSH BINARY LOGS")
    server.insert(2)
    time = datetime.fromtimestamp(server.now_us() / 1_000_000, UTC).isoformat()
    server.insert(3)
    server.run("FLUSH BINARY LOGS")
    server.insert(4)

    assert ids(begun(at=time), 2) == [3, 4]


def test_each_time_of_several_files_has_its_place(server: Server, settings: Any) -> None:
    expected = []
    for number in range(8):
        expected.append((server.now_us(), server.executed()))
        server.insert(2 * number, 2 * number + 1)
        if number % 3:
            server.run("FLUSH BINARY LOGS")
    expected.append((server.now_us(), server.executed()))
    connect_ = partial(dial, settings().mysql)

    for time_us, before in expected:
        assert str(gtids_before(connect_, 4711, time_us)) == before


def test_a_transaction_without_a_commit_time_has_the_second_of_its_header(server: Server, settings: Any) -> None:
    expected = []
    for number in range(3):
        expected.append((server.now_us() // 1_000_000 * 1_000_000, server.executed()))
        # A replica writes 0 for a transaction of MySQL 5.7. The variable does the same for one transaction.
        server.run("SET SESSION original_commit_timestamp = 0")
        server.insert(number)
        server.run("DO SLEEP(1.1)")  # so the next second begins
    connect_ = partial(dial, settings().mysql)

    for time_us, before in expected[1:]:
        assert str(gtids_before(connect_, 4711, time_us)) == before


def test_times_whose_transactions_the_server_cannot_surely_send_are_refused(server: Server, settings: Any) -> None:
    server.insert(1)
    time_us = server.now_us()
    server.insert(2)
    server.run("FLUSH BINARY LOGS")
    server.purge()
    connect_ = partial(dial, settings().mysql)

    with pytest.raises(ConfigError, match=r"may be purged$"):
        gtids_before(connect_, 4711, time_us)
    server.insert(3)
    with pytest.raises(ConfigError, match="may be purged; its oldest transaction is of 20"):
        gtids_before(connect_, 4711, time_us)
    with pytest.raises(ConfigError, match="in the future of the server"):
        gtids_before(connect_, 4711, server.now_us() + 60_000_000)


def test_a_job_sends_all_that_follows_a_byte_of_a_file(server: Server, begun: Any) -> None:
    server.insert(1)
    file, position = server.end()
    server.insert(2)
    server.run("FLUSH BINARY LOGS")
    server.insert(3)

    assert ids(begun(binlog__file=file, binlog__position=str(position)), 2) == [2, 3]


def test_the_beginning_and_the_end_of_a_file_are_places_too(server: Server, settings: Any) -> None:
    before = server.executed()
    file, _ = server.end()
    server.insert(1, 2)
    behind = server.executed()
    end = server.end()[1]
    server.run("FLUSH BINARY LOGS")
    closed = int(next(size for name, size, *_ in server.run("SHOW BINARY LOGS") if name == file))

    for position, expected in ((4, before), (end, behind), (closed, behind)):
        made = settings(binlog__file=file, binlog__position=str(position))
        with closing(connect_by(made.mysql)) as connection:
            assert str(start_gtids(connection, made.start)) == expected, position


def test_a_start_inside_a_transaction_moves_before_it_with_a_warning(
    server: Server, settings: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incsnap.mysql.start_place._PAGE", 2)
    server.insert(1)
    before = server.executed()
    server.insert(2)
    file, _ = server.end()
    inside = [position for position, kind in server.events(file) if kind == "Query"][-1]
    made = settings(binlog__file=file, binlog__position=str(inside))

    with closing(connect_by(made.mysql)) as connection:
        assert str(start_gtids(connection, made.start)) == before
    assert f"{file}:{inside} is inside transaction" in caplog.text


def test_places_that_are_not_surely_of_this_server_are_refused(server: Server, settings: Any) -> None:
    server.insert(1)
    file, position = server.end()

    assert f"the server does not know {_FOREIGN}:1" in refusal(settings(gtid__set=f"{_FOREIGN}:1")).message
    beyond = refusal(settings(binlog__file=file, binlog__position=str(position + 1)))
    assert f"{file} has {position} bytes, not {position + 1}" in beyond.message
    between = refusal(settings(binlog__file=file, binlog__position=str(position - 1)))
    assert f"no event of {file} begins at {position - 1}" in between.message
    assert "its files are called" in refusal(settings(binlog__file="mysql-bin.000001")).message


def test_places_behind_which_the_server_has_purged_something_are_refused(server: Server, settings: Any) -> None:
    place = server.executed()
    file, _ = server.end()
    server.insert(1)
    lost = server.executed()
    server.run("FLUSH BINARY LOGS")
    newest, _ = server.end()
    server.purge()

    assert "the binlog no longer holds" in refusal(settings(gtid__set=place)).message
    assert f"the oldest is {newest}" in refusal(settings(binlog__file=file)).message
    with closing(connect_by(settings().mysql)) as connection:
        assert str(start_gtids(connection, settings(gtid__set=lost).start)) == lost


def test_a_transaction_that_was_prepared_before_the_place_is_sent_with_its_commit(server: Server, begun: Any) -> None:
    server.run("XA START 'x'", "INSERT INTO shop.t VALUES (1)", "XA END 'x'", "XA PREPARE 'x'")
    place = server.executed()
    server.insert(2)
    server.run("XA START 'y'", "INSERT INTO shop.t VALUES (3)", "XA END 'y'", "XA PREPARE 'y'")
    job = begun(gtid__set=place)
    server.run("XA COMMIT 'x'", "XA COMMIT 'y'")

    assert ids(job, 3) == [2, 1, 3]


def test_recovery_needs_an_offset(
    own_mysql: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path
) -> None:
    settings = settings_of(own_mysql, kafka_address, topic_prefix, "shop", snapshot__mode="recovery")

    with pytest.raises(ConfigError, match="recovery needs an offset, and the checkpoint has none"):
        PlannedJob(settings, str(tmp_path))
    assert [each.name for each in findings(settings) if each.severity == "error"] == ["snapshot.mode"]

from __future__ import annotations

import itertools
import logging
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pymysql
import pytest

from incsnap.binlog.tail import Tail
from incsnap.errors import ConfigError, GtidsPurged, ServerUnreachable
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.mysql.driver_internals import socket_of
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.servers import servers
from tests.support.mysql_versions import has_tags
from tests.support.purging import purge_binlog
from tests.support.server_session import ServerSession
from tests.support.stream_in_memory import contents_of, rows_of, transactions_of
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.servers

MB = 1 << 20
_SERVER_IDS = itertools.count(secrets.randbelow(1 << 30) + 100_000)


class Source(ServerSession):
    """A database on a server, and tails of it that are closed with the test."""

    def __init__(self, address: MySqlAddress, database: str) -> None:
        super().__init__(address)
        self.database = database
        self.server_id = next(_SERVER_IDS)

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        return super().run(f"USE `{self.database}`", *statements)

    def here(self) -> StreamPosition:
        file, pos = self.end()
        [(executed, server_uuid)] = self.run("SELECT @@GLOBAL.gtid_executed, @@server_uuid")
        return StreamPosition(GtidSet.parse(executed), file, pos, server_uuid=server_uuid)

    def clock(self) -> int:
        """The server's, in microseconds since 1970."""
        [(now,)] = self.run("SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))")
        return int(now)

    def dumps(self) -> list[int]:
        """Numbers of the dump connections of this source's server id."""
        numbers = self.run(
            "SELECT PROCESSLIST_ID FROM performance_schema.threads"
            " JOIN performance_schema.user_variables_by_thread USING (THREAD_ID)"
            " WHERE VARIABLE_NAME = 'incsnap_server_id' AND PROCESSLIST_COMMAND LIKE 'Binlog Dump%'"
            f" AND VARIABLE_VALUE = '{self.server_id}'"
        )
        return [number for (number,) in numbers]

    def kill_dumps(self) -> int:
        """Answers how many there were."""
        numbers = self.dumps()
        for number in numbers:
            try:
                self.run(f"KILL {number}")
            except pymysql.err.OperationalError as gone:
                assert gone.args[0] == 1094  # noqa: PT017
        return len(numbers)

    def included(self, table: TableId) -> bool:
        return table.database == self.database and not table.table.startswith("x")

    @contextmanager
    def tail(
        self, start: StreamPosition, *, queue_bytes: int = 64 * MB, signal: str | None = None, **more: Any
    ) -> Iterator[Tail]:
        signal_table = TableId(self.database, signal) if signal else None
        connect: Callable[[], Any] = more.pop("connect", self.connect)
        with closing(
            Tail(
                connect, more.pop("server_id", self.server_id), start, self.included, signal_table, queue_bytes, **more
            )
        ) as tail:
            yield tail


@pytest.fixture
def source(mysql_address: MySqlAddress, database: str) -> Iterator[Source]:
    with closing(Source(mysql_address, database)) as source:
        source.run("CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT, v varchar(200))", "CREATE TABLE x1 LIKE t")
        yield source


def drained(tail: Tail, start: StreamPosition, to: StreamPosition, **limits: int) -> list[StreamPosition]:
    """Return the start, and the ends of all batches up to `to`."""
    ends = [start]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (ends[-1].reached(to.file, to.pos) and to.delivered <= ends[-1].delivered):
        assert time.monotonic() < deadline
        batch = tail.advance(
            ends[-1], limits.get("max_bytes", MB), limits.get("max_rows", 1 << 30), (to.file, to.pos), 1.0
        )
        ends.append(batch.end)
        if limits.get("forget"):
            tail.forget(ends[-1])
    return ends


def test_a_change_ends_the_wait_for_it(source: Source) -> None:
    start = source.here()
    with source.tail(start) as tail:
        tail.advance(start, MB, 1000, None, 0.2)
        position = start
        for nth in range(10):
            before = source.clock()
            source.run(f"INSERT INTO t (v) VALUES ('{nth}')")
            # An advance that waits out its time waits for longer than a test may take.
            batch = tail.advance(position, MB, 1000, None, 86_400.0)
            assert batch.tables == {TableId(source.database, "t")}
            assert batch.events == 1
            [one] = tail.slices(position, batch.end, 2)
            [transaction] = transactions_of(one)
            assert before <= transaction.ts_us <= source.clock()
            assert transaction.thread == source.run("SELECT CONNECTION_ID()")[0][0]
            position = batch.end


def test_every_kind_of_transaction_is_followed(source: Source) -> None:
    start, tag = source.here(), ":mytag" if has_tags(source.connection) else ""
    source.run(
        "INSERT INTO t (v) VALUES ('plain')",
        f"SET gtid_next = 'AUTOMATIC{tag}'", "INSERT INTO t (v) VALUES ('tagged')", "SET gtid_next = 'AUTOMATIC'",
        "SET binlog_transaction_compression = ON", "BEGIN", "INSERT INTO t (v) VALUES (REPEAT('c', 200))",
        "UPDATE t SET v = REPEAT('d', 200)", "COMMIT", "SET binlog_transaction_compression = OFF",
        "INSERT INTO x1 (v) VALUES ('excluded')",
        "ALTER TABLE t ADD COLUMN w int", "TRUNCATE TABLE x1", "CREATE TABLE u AS SELECT * FROM t",
        "XA START 'a'", "INSERT INTO t (v) VALUES ('xa')", "XA END 'a'", "XA PREPARE 'a'", "XA COMMIT 'a'",
        "BEGIN", "INSERT INTO t (v) VALUES ('1')", "SAVEPOINT s", "INSERT INTO t (v) VALUES ('2')",
        "ROLLBACK TO SAVEPOINT s", "COMMIT", "BEGIN", "INSERT INTO t (v) VALUES ('gone')", "ROLLBACK",
    )  # fmt: skip
    end = source.here()
    with source.tail(start) as tail:
        last = drained(tail, start, end, max_bytes=64 * MB)[-1]
        assert last.reached(end.file, end.pos)
        assert end.delivered <= last.delivered
        batch = tail.contents(start, last)
        own = {TableId(source.database, name) for name in ("t", "u")}
        assert batch.tables == own
        ours = [change for change in batch.changes if change.database == source.database]
        tables = [sorted(table.table for table in change.tables or ()) for change in ours]
        assert tables == [["t"], ["x1"], ["u"]]
        assert [change.truncates for change in ours] == [False, True, False]
        rows = rows_of(tail.slices(start, last, 1))
        assert len(rows) == batch.events == 7
        tagged = [name for name, *_ in rows if ":mytag:" in name]
        assert len(tagged) == bool(tag)
        assert b"tagged" in rows[1][3]
        assert b"gone" not in b"".join(body for *_, body in rows)
        # The rows inside the compressed transaction have the position of the event around them.
        assert rows[2][1] == rows[3][1]


def test_an_idle_server_moves_the_position_by_heartbeats(source: Source) -> None:
    start = source.here()
    with source.tail(start) as tail:
        tail.advance(start, MB, 1000, None, 0.3)
        source.run("INSERT INTO x1 (v) VALUES ('excluded')", "FLUSH BINARY LOGS")
        end = source.here()
        assert end.file != start.file
        batch = tail.advance(start, MB, 1000, (end.file, end.pos), PATIENCE_SECONDS)
        assert batch.end.reached(end.file, end.pos)
        assert end.delivered <= batch.end.delivered
        assert not tail.slices(start, batch.end, 2)
        later = tail.advance(batch.end, MB, 1000, (end.file, end.pos + (1 << 40)), 0.2)
        assert not later.end.at < batch.end.at


def test_a_huge_transaction_passes_a_small_queue_unchanged_across_a_restart(source: Source) -> None:
    source.run("INSERT INTO t (v) VALUES (REPEAT('a', 200))")
    for _ in range(12):
        source.run("INSERT INTO t (v) SELECT v FROM t")
    start = source.here()
    source.run(
        "BEGIN", "INSERT INTO x1 (v) SELECT v FROM t", "UPDATE t SET v = REPEAT('b', 200)", "DELETE FROM t", "COMMIT"
    )
    source.run("INSERT INTO t (v) VALUES ('after')")
    end = source.here()
    with source.tail(start, queue_bytes=200_000) as tail:
        ends = drained(tail, start, end, max_bytes=150_000, forget=1)
        most = tail._buffer.cost
    assert most < 200_000 + 2 * MB
    inside = [at for at in ends if at.open_gtid]
    assert len(inside) > 10
    assert [at.events_done for at in inside] == sorted(at.events_done for at in inside)
    assert all(at.delivered == inside[0].delivered for at in inside)
    with source.tail(start) as whole:
        whole.advance(start, 1 << 40, 1 << 40, (end.file, end.pos), PATIENCE_SECONDS)
        reference = [whole.slices(a, b, 2) for a, b in itertools.pairwise(ends)]
        assert rows_of(itertools.chain(*reference)) == rows_of(whole.slices(start, ends[-1], 1))
    for nth in (0, 3, len(ends) // 2, len(ends) - 3):
        begin = StreamPosition.from_json(ends[nth].to_json())
        with source.tail(begin, queue_bytes=100_000) as again:
            repeated = again.slices(begin, StreamPosition.from_json(ends[nth + 1].to_json()), 2)
            assert contents_of(repeated) == contents_of(reference[nth])
            assert drained(again, ends[nth + 1], end)[-1].delivered >= end.delivered


def test_a_killed_connection_loses_and_repeats_nothing(source: Source, caplog: pytest.LogCaptureFixture) -> None:
    source.run("INSERT INTO t (v) VALUES (REPEAT('a', 200))")
    for _ in range(11):
        source.run("INSERT INTO t (v) SELECT v FROM t")
    start = source.here()
    caplog.set_level(logging.WARNING, logger="incsnap")

    def narrow() -> Any:
        connection = source.connect()
        socket_of(connection).setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
        return connection

    # A slow consumer, a small queue and a small socket keep the stream inside transactions when it is killed.
    with source.tail(start, queue_bytes=100_000, connect=narrow) as tail:
        position, slices, inside, kills = start, [], 0, 0
        for nth in range(30):
            source.run(f"UPDATE t SET v = CONCAT('{nth}', REPEAT('b', 150))", f"INSERT INTO t (v) VALUES ('{nth}')")
        end = source.here()
        deadline = time.monotonic() + PATIENCE_SECONDS
        due = 3
        for step in itertools.count(1):
            assert time.monotonic() < deadline
            if step >= due and (killed := source.kill_dumps()):  # there is none while the tail connects again
                kills, due = kills + killed, step + 3
            batch = tail.advance(position, 100_000, 1 << 30, (end.file, end.pos), 1.0)
            slices += tail.slices(position, batch.end, 2)
            tail.forget(batch.end)
            position = batch.end
            inside += bool(position.open_gtid)
            if end.delivered <= position.delivered:
                break
    assert kills >= 3, "nothing was put to the test"
    assert len([record for record in caplog.records if "reconnecting" in record.message]) >= 2
    assert inside > 10
    with source.tail(start) as whole:
        reference = whole.advance(start, 1 << 40, 1 << 40, (end.file, end.pos), PATIENCE_SECONDS)
        assert rows_of(slices) == rows_of(whole.slices(start, reference.end, 1))


def test_signals_come_with_the_advance_and_stay_in_the_slices(source: Source) -> None:
    source.run("CREATE TABLE signals (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))")
    start = source.here()
    source.run(
        "INSERT INTO t (v) VALUES ('a')",
        "INSERT INTO signals VALUES ('s1', 'execute-snapshot', '{}')",
        "BEGIN", "INSERT INTO t (v) VALUES ('b')", "INSERT INTO signals VALUES ('s2', 'log', '{}')", "COMMIT",
    )  # fmt: skip
    end = source.here()
    with source.tail(start, signal="signals") as tail:
        batch = tail.advance(start, MB, 1000, (end.file, end.pos), PATIENCE_SECONDS)
        [signals] = batch.signals
        bodies = [body for *_, body in rows_of([signals])]
        assert [b"s1" in bodies[0], b"s2" in bodies[1], len(bodies)] == [True, True, 2]
        assert len(rows_of(tail.slices(start, batch.end, 1))) == 4
        assert not tail.advance(batch.end, MB, 1000, None, 0.0).signals


def test_limits_end_batches_at_transactions(source: Source) -> None:
    start = source.here()
    for nth in range(9):
        source.run(f"INSERT INTO t (v) VALUES ('{nth}')")
    end = source.here()
    with source.tail(start) as tail:
        tail.advance(start, MB, 1000, (end.file, end.pos), PATIENCE_SECONDS)
        batch = tail.advance(start, MB, 4, None, PATIENCE_SECONDS)
        assert (batch.events, batch.end.open_gtid) == (4, "")
        rest = tail.advance(batch.end, MB, 4, (end.file, end.pos), PATIENCE_SECONDS)
        assert rest.events == 4
        assert tail.advance(rest.end, MB, 4, (end.file, end.pos), PATIENCE_SECONDS).events == 1


def test_two_jobs_with_one_server_id_are_an_error(source: Source) -> None:
    start = source.here()
    with source.tail(start) as first:
        # The server ends the older one of two connections.
        wait_until(lambda: bool(source.dumps()))
        with source.tail(start) as second:
            with pytest.raises(ConfigError, match="replica") as caught:
                drained(first, start, StreamPosition(start.delivered, "binlog.999999", 4))
            assert "database.server.id" in caught.value.hint
            source.run("INSERT INTO t (v) VALUES ('a')")
            assert second.advance(start, MB, 1000, None, PATIENCE_SECONDS).events == 1


def test_a_server_that_stays_away_is_an_error(source: Source) -> None:
    start = source.here()

    def nowhere() -> Any:
        return connect(MySqlAddress("127.0.0.1", 1), connect_timeout=1)

    with source.tail(start, connect=nowhere, reconnect_seconds=0.3) as tail, pytest.raises(ServerUnreachable):
        tail.advance(start, MB, 1000, ("binlog.999999", 4), PATIENCE_SECONDS)


@pytest.mark.parametrize("streams", [False, True], ids=["while it connects", "while it waits for the server"])
def test_a_close_waits_for_nothing(source: Source, streams: bool) -> None:
    start = source.here()
    # Nothing comes from the server, not even a heartbeat, before a test must have ended.
    tail = Tail(source.connect, source.server_id, start, source.included, None, MB, heartbeat_seconds=86_400.0)
    if streams:
        wait_until(lambda: bool(source.dumps()))
    tail.close()
    tail.close()


def test_purged_transactions_and_missing_checksums_on_a_server_of_its_own() -> None:
    with (
        servers(kafka=False, mysql_options=["--binlog-checksum=NONE", "--max-binlog-size=4096"]) as own,
        closing(Source(own.mysql, "mysql")) as admin,
    ):
        admin.run("CREATE DATABASE tail")
        with closing(Source(own.mysql, "tail")) as source:
            source.run("CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT, v varchar(200))")
            start = source.here()
            for _ in range(40):  # many files
                source.run("INSERT INTO t (v) VALUES (REPEAT('a', 200))")
            end = source.here()
            assert end.file != start.file
            with source.tail(start) as tail:
                batch = tail.advance(start, MB, 1000, (end.file, end.pos), PATIENCE_SECONDS)
                assert (batch.events, batch.end.at) == (40, end.at)
            purge_binlog(source.connection)
            with source.tail(start) as tail, pytest.raises(GtidsPurged) as caught:
                tail.advance(start, MB, 1000, (end.file, end.pos), PATIENCE_SECONDS)
            assert "execute-snapshot" in caught.value.hint

"""XA transactions of a real server, through the planner: sent with XA COMMIT, or never."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pymysql
import pytest

from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.prepared_search import PreparedSearch
from incsnap.config.settings import Settings
from incsnap.errors import BinlogError
from incsnap.gtid import GtidSet
from incsnap.mysql.preflight import findings
from incsnap.mysql.session import connect, dial
from incsnap.mysql.watermarks import executed
from incsnap.snapshot.offset import Offset
from lab.addresses import MySqlAddress
from lab.servers import servers
from tests.support.planned_job import PlannedJob, run, settings_of
from tests.support.purging import purge_binlog
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers


class CapturedDatabase:
    """A database with the table t, jobs on it, and names of XA transactions that nobody else uses."""

    def __init__(self, mysql: MySqlAddress, kafka: str, database: str, prefix: str, root: Path) -> None:
        self.mysql, self.kafka, self.database, self.prefix, self.root = mysql, kafka, database, prefix, root
        self.jobs: list[PlannedJob] = []
        self.connection = self.connect()
        self.prepared: set[str] = set()
        self.names: list[str] = []
        self.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(2000))", "CREATE TABLE u (id INT PRIMARY KEY)")

    def connect(self, user: str = "", password: str = "") -> Any:
        mysql = self.mysql
        return pymysql.connect(
            host=mysql.host,
            port=mysql.port,
            user=user or mysql.user,
            password=password if user else mysql.password,
            database=self.database,
            autocommit=True,
            connect_timeout=10,
            read_timeout=60,
            write_timeout=60,
        )

    def run(self, *statements: str) -> None:
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def prepare(self, *statements: str) -> str:
        """Prepare a transaction in its own session, which then ends, and return the transaction's name."""
        xid = f"'{secrets.token_hex(6)}','branch',7"
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            for statement in (f"XA START {xid}", *statements, f"XA END {xid}", f"XA PREPARE {xid}"):
                cursor.execute(statement)
        self.prepared.add(xid)
        self.names.append(xid)
        return xid

    def waiting(self, offset: Offset) -> list[str]:
        """Ours among those that are prepared there; other users of the server may have some too."""
        ours = {f"X'{xid.split(chr(39))[1].encode().hex()}'" for xid in self.names}
        return [each.xid for each in offset.prepared if each.xid.split(",")[0] in ours]

    def end(self, verb: str, xid: str) -> None:
        self.run(f"XA {verb} {xid}")
        self.prepared.discard(xid)

    def job(self, **more: str) -> PlannedJob:
        self.jobs.append(PlannedJob(self.settings(**more), str(self.root / str(len(self.jobs)))))
        return self.jobs[-1]

    def settings(self, **more: str) -> Settings:
        return settings_of(self.mysql, self.kafka, self.prefix, self.database, **more)

    def topic(self, table: str = "t") -> str:
        return f"{self.prefix}.{self.database}.{table}"

    def ids(self, job: PlannedJob, table: str = "t") -> list[int]:
        return [each.value["after"]["id"] for each in job.of(self.topic(table)) if each.value]

    def caught_up(self, job: PlannedJob) -> None:
        """A change behind all others has come."""
        before = len(job.of(self.topic("u")))
        self.run(f"INSERT INTO u VALUES ({secrets.randbelow(1 << 30)})")
        job.until(self.topic("u"), before + 1)

    def close(self) -> None:
        for job in self.jobs:
            job.close()
        for xid in list(self.prepared):
            self.end("ROLLBACK", xid)
        self.connection.close()


@pytest.fixture
def captured(
    mysql_address: MySqlAddress, kafka_address: str, topic_prefix: str, database: str, tmp_path: Path
) -> Iterator[CapturedDatabase]:
    with closing(CapturedDatabase(mysql_address, kafka_address, database, topic_prefix, tmp_path)) as captured:
        yield captured


def test_rows_are_sent_with_xa_commit_under_its_name_and_not_before(captured: CapturedDatabase) -> None:
    job = captured.job()
    xid = captured.prepare("INSERT INTO t VALUES (1, 'held'), (2, 'too')")
    captured.caught_up(job)
    assert captured.ids(job) == []
    assert len(captured.waiting(job.offset)) == 1

    captured.run("INSERT INTO t VALUES (3, 'plain')")
    captured.end("COMMIT", xid)
    job.until(captured.topic(), 3)

    assert sorted(captured.ids(job)) == [1, 2, 3]
    gtids = {each.value["after"]["id"]: each.value["source"]["gtid"] for each in job.of(captured.topic())}
    assert gtids[1] == gtids[2] != gtids[3]
    assert int(gtids[1].rpartition(":")[2]) > int(gtids[3].rpartition(":")[2])
    assert captured.waiting(job.offset) == []


def test_a_rolled_back_xa_transaction_is_never_sent(captured: CapturedDatabase) -> None:
    job = captured.job()
    xid = captured.prepare("INSERT INTO t VALUES (1, 'gone')")
    captured.caught_up(job)
    captured.end("ROLLBACK", xid)

    captured.caught_up(job)

    assert captured.ids(job) == []
    assert captured.waiting(job.offset) == []


@pytest.mark.parametrize("compression", ["ON", "OFF"])
def test_a_one_phase_commit_is_a_commit(captured: CapturedDatabase, compression: str) -> None:
    job = captured.job()
    captured.run(
        f"SET binlog_transaction_compression = {compression}",
        "XA START 'one'", "INSERT INTO t VALUES (1, REPEAT('a', 500))", "XA END 'one'", "XA COMMIT 'one' ONE PHASE",
        "SET binlog_transaction_compression = OFF",
    )  # fmt: skip

    captured.caught_up(job)

    assert captured.ids(job) == [1]


def test_a_restart_in_between_loses_nothing_and_sends_nothing_twice(captured: CapturedDatabase) -> None:
    job = captured.job()
    kept, dropped = (captured.prepare(f"INSERT INTO t VALUES ({number}, 'held')") for number in (1, 2))
    captured.caught_up(job)
    job.restart()
    captured.caught_up(job)
    captured.end("COMMIT", kept)
    captured.end("ROLLBACK", dropped)
    job.restart()

    captured.caught_up(job)

    assert captured.ids(job) == [1]


def test_a_batch_that_is_repeated_by_a_new_process_sends_the_same(captured: CapturedDatabase) -> None:
    job = captured.job()
    xid = captured.prepare("INSERT INTO t VALUES (1, 'held')")
    captured.caught_up(job)
    captured.end("COMMIT", xid)
    job.until(captured.topic())
    start, end = next(pair for pair in job.batches if captured.waiting(pair[0]) and not captured.waiting(pair[1]))
    job.restart()

    again = run(job.planner.parts(start, end), job.settings, job.root)

    assert [each.value["after"]["id"] for each in again if each.topic == captured.topic()] == [1]


def test_an_xa_transaction_larger_than_memory_is_sent_in_several_batches(
    captured: CapturedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incsnap.planner.batch_budget.BatchBudget.binlog_bytes", 200_000)
    monkeypatch.setattr("incsnap.planner.prepared_xa.MEMORY_BYTES", 300_000)
    job = captured.job(provide__transaction__metadata="true")
    rows = 1_500
    xid = captured.prepare(*(f"INSERT INTO t VALUES ({number}, REPEAT('x', 1000))" for number in range(rows)))
    captured.caught_up(job)
    assert captured.ids(job) == []
    captured.end("COMMIT", xid)
    job.until(captured.topic(), 400)
    job.restart()

    captured.caught_up(job)

    assert sorted(captured.ids(job)) == list(range(rows))
    assert sum(1 for _, end in job.batches if end.stream.open_gtid) > 3
    ends = [each.value for each in job.of(f"{captured.prefix}.transaction") if each.value["status"] == "END"]
    assert [each["event_count"] for each in ends if each["event_count"] > 1] == [rows]


def test_an_xa_transaction_prepared_before_the_first_start_is_found_in_the_binlog(captured: CapturedDatabase) -> None:
    kept, dropped = (captured.prepare(f"INSERT INTO t VALUES ({number}, 'held')") for number in (1, 2))
    captured.run("FLUSH BINARY LOGS", "INSERT INTO t VALUES (3, 'before')", "FLUSH BINARY LOGS")
    job = captured.job()
    assert len(job.offset.sought) >= 2
    job.batches_until(lambda: len(captured.waiting(job.offset)) == 2, "prepared transactions that were found")
    captured.end("COMMIT", kept)
    captured.end("ROLLBACK", dropped)

    captured.caught_up(job)

    assert captured.ids(job) == [1]


def test_a_branch_that_changed_nothing_does_not_stop_a_first_start(
    captured: CapturedDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    empty, real = captured.prepare("SELECT * FROM t"), captured.prepare("INSERT INTO t VALUES (1, 'held')")
    captured.run("FLUSH BINARY LOGS", "INSERT INTO t VALUES (2, 'before')")
    job = captured.job()
    name = f"X'{empty.split(chr(39))[1].encode().hex()}'"
    assert any(name in xid for xid in job.offset.sought)

    captured.caught_up(job)  # beside the search
    job.batches_until(lambda: not job.offset.sought, "end of the search")
    assert len(captured.waiting(job.offset)) == 1
    warnings = [each.getMessage() for each in caplog.records if "no XA PREPARE of it" in each.getMessage()]
    assert len(warnings) == 1
    assert name in warnings[0]
    captured.end("COMMIT", empty)
    captured.end("COMMIT", real)
    captured.caught_up(job)

    assert captured.ids(job) == [1]


def test_found_xa_transactions_survive_a_restart_and_a_purge(
    kafka_address: str, topic_prefix: str, tmp_path: Path
) -> None:
    with servers(kafka=False, mysql_options=["--skip-replica-start"]) as own:
        _create(own.mysql, "shop")
        with closing(CapturedDatabase(own.mysql, kafka_address, "shop", topic_prefix, tmp_path)) as captured:
            captured.prepare("SELECT * FROM t")
            xid = captured.prepare("INSERT INTO t VALUES (1, 'held')")
            captured.run("FLUSH BINARY LOGS")
            job = captured.job()
            job.restart()
            job.batches_until(lambda: captured.waiting(job.offset) != [], "prepared transaction that was found")
            purge_binlog(captured.connection)
            job.restart()
            captured.end("COMMIT", xid)
            captured.caught_up(job)

            assert captured.ids(job) == [1]


def test_an_xa_commit_does_not_wait_for_the_search_beside_the_stream(
    captured: CapturedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tail finds it for itself, and takes along what else is sought."""
    monkeypatch.setattr("incsnap.planner.prepared_xa._REST_SECONDS", 3600.0)
    first, second = (captured.prepare(f"INSERT INTO t VALUES ({number}, 'held')") for number in (1, 2))
    captured.run("FLUSH BINARY LOGS")
    job = captured.job()
    captured.caught_up(job)
    captured.end("COMMIT", first)
    captured.caught_up(job)
    assert captured.ids(job) == [1]
    assert len(captured.waiting(job.offset)) == 1
    captured.end("COMMIT", second)
    captured.caught_up(job)

    assert captured.ids(job) == [1, 2]


@pytest.mark.parametrize("verb", ["COMMIT", "ROLLBACK"])
def test_an_xa_transaction_that_ended_unlogged_leaves_the_offset(
    captured: CapturedDatabase, verb: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("incsnap.planner.ended_unlogged._SECONDS_BETWEEN", 0.2)
    job = captured.job()
    stays, ends = (captured.prepare(f"INSERT INTO t VALUES ({number}, 'held')") for number in (1, 2))
    captured.caught_up(job)
    captured.run("SET sql_log_bin = 0")
    captured.end(verb, ends)
    captured.run("SET sql_log_bin = 1")
    job.batches_until(lambda: len(captured.waiting(job.offset)) == 1, "transaction that was let go")

    assert "without a word in the binlog" in caplog.text
    captured.end("COMMIT", stays)
    captured.caught_up(job)
    assert captured.ids(job) == [1]
    assert captured.waiting(job.offset) == []


@pytest.fixture
def unprivileged(captured: CapturedDatabase) -> Iterator[dict[str, str]]:
    """Yield the options of a user without XA_RECOVER_ADMIN: a job does not know what is prepared at its start."""
    user, password = f"u{secrets.token_hex(5)}", "secret"
    captured.run(
        f"CREATE USER {user} IDENTIFIED BY '{password}'",
        f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}",
    )
    yield {"database__user": user, "database__password": password}
    captured.run(f"DROP USER {user}")


def test_without_the_privilege_an_xa_transaction_is_found_at_its_commit(
    captured: CapturedDatabase, unprivileged: dict[str, str]
) -> None:
    xid = captured.prepare("INSERT INTO t VALUES (1, 'held')")
    captured.run("FLUSH BINARY LOGS")
    job = captured.job(**unprivileged)
    assert captured.waiting(job.offset) == []
    captured.run("INSERT INTO t VALUES (2, 'plain')")
    captured.end("COMMIT", xid)
    captured.run("INSERT INTO t VALUES (3, 'plain')")

    captured.caught_up(job)

    assert sorted(captured.ids(job)) == [1, 2, 3]


def test_one_search_takes_all_transactions_that_were_prepared_before_the_stream(
    captured: CapturedDatabase, unprivileged: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = captured.prepare("INSERT INTO t VALUES (1, 'before')")
    xids = [captured.prepare(f"INSERT INTO t VALUES ({number}, 'x')") for number in range(2, 6)]
    captured.run("FLUSH BINARY LOGS")
    gone, late = captured.prepare("INSERT INTO t VALUES (6, 'gone')"), captured.prepare("INSERT INTO t VALUES (7, 'x')")
    captured.end("COMMIT", ended)
    job = captured.job(**unprivileged)
    captured.end("ROLLBACK", gone)
    for xid in (late, *xids):
        captured.end("COMMIT", xid)
    find, searches = PreparedSearch.find, list[Any]()

    def counted(*given: Any, **more: Any) -> set[str]:
        searches.append(given)
        return find(*given, **more)

    monkeypatch.setattr(PreparedSearch, "find", counted)
    job.until(captured.topic(), 5)

    assert sorted(captured.ids(job)) == [2, 3, 4, 5, 7]
    # `late` is in the newest file, and the search for the others goes on to the file before.
    assert len(searches) <= 2
    captured.caught_up(job)
    assert captured.waiting(job.offset) == []


def test_a_name_that_was_used_before_is_found_in_its_last_use(
    captured: CapturedDatabase, unprivileged: dict[str, str]
) -> None:
    first = captured.prepare("INSERT INTO t VALUES (1, 'before')")
    captured.run("FLUSH BINARY LOGS")
    captured.end("COMMIT", first)
    with closing(captured.connect()) as connection, connection.cursor() as cursor:
        for statement in (
            f"XA START {first}",
            "INSERT INTO t VALUES (2, 'x')",
            f"XA END {first}",
            f"XA PREPARE {first}",
        ):
            cursor.execute(statement)
    captured.prepared.add(first)
    job = captured.job(**unprivileged)
    captured.end("COMMIT", first)
    job.until(captured.topic(), 1)

    assert captured.ids(job) == [2]


def test_check_names_what_is_prepared_and_the_privilege_to_ask(captured: CapturedDatabase) -> None:
    user = f"u{secrets.token_hex(5)}"
    captured.run(f"CREATE USER {user}", f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}")
    try:
        captured.prepare("INSERT INTO t VALUES (1, 'held')")
        listed, blind = (
            [each for each in findings(captured.settings(**more)) if "XA" in each.problem]
            for more in ({}, {"database__user": user, "database__password": ""})
        )
        assert [each.name for each in listed] == ["XA transactions"]
        assert [(each.name, each.repair) for each in blind] == [
            ("privileges", f"GRANT XA_RECOVER_ADMIN ON *.* TO '{user}'@'%';")
        ]
        assert {each.severity for each in [*listed, *blind]} == {"warning"}
    finally:
        captured.run(f"DROP USER {user}")


def test_a_table_that_was_included_in_between_comes_too(captured: CapturedDatabase) -> None:
    job = captured.job(table__exclude__list=f"{captured.database}\\.t")
    xid = captured.prepare("INSERT INTO t VALUES (1, 'held')", "INSERT INTO u VALUES (-1)")
    captured.caught_up(job)
    job.settings = captured.settings()
    job.restart()
    captured.end("COMMIT", xid)

    captured.caught_up(job)

    assert captured.ids(job) == [1]
    assert captured.ids(job, "u").count(-1) == 1


def test_rows_that_the_binlog_does_not_hold_any_more_stop_the_job_by_name(
    kafka_address: str, topic_prefix: str, tmp_path: Path
) -> None:
    with servers(kafka=False, mysql_options=["--skip-replica-start"]) as own:
        _create(own.mysql, "shop")
        with closing(CapturedDatabase(own.mysql, kafka_address, "shop", topic_prefix, tmp_path)) as captured:
            xid = captured.prepare("INSERT INTO t VALUES (1, 'held')")
            captured.run("CREATE USER poor", "GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO poor")
            job = captured.job(database__user="poor", database__password="")
            captured.run("FLUSH BINARY LOGS")
            purge_binlog(captured.connection)
            name = "X'" + xid.split("'")[1].encode().hex()

            listed = captured.job()
            assert [name in each for each in listed.offset.sought] == [True]
            listed.batches_until(lambda: not listed.offset.sought, "end of the search")
            listed.close()
            captured.end("COMMIT", xid)
            with pytest.raises(BinlogError, match=f"{name}.*XA PREPARE is purged") as stopped:
                job.until(captured.topic())
            assert "execute-snapshot" in stopped.value.hint


def test_a_search_ends_though_the_server_counts_transactions_that_are_in_no_file(captured: CapturedDatabase) -> None:
    """This happens if gtid_purged was set after the newest file began."""
    settings = captured.settings()
    with closing(connect(settings.mysql)) as connection:
        before = executed(connection) | GtidSet.parse("00000000-0000-0000-0000-000000000001:1-7")
    given_up = threading.Event()
    timer = threading.Timer(PATIENCE_SECONDS, given_up.set)
    timer.start()
    known = PreparedTransactions()
    search = PreparedSearch(
        partial(dial, settings.mysql),
        settings.mysql.server_id,
        settings.tables.included,
        known,
        closed=given_up.is_set,
    )
    try:
        assert search.find(["X'6e6f626f6479',X'',1"], before) == {"X'6e6f626f6479',X'',1"}
    finally:
        timer.cancel()


def _create(mysql: MySqlAddress, database: str) -> None:
    with (
        closing(
            pymysql.connect(
                host=mysql.host,
                port=mysql.port,
                user=mysql.user,
                password=mysql.password,
                connect_timeout=10,
                read_timeout=60,
                write_timeout=60,
            )
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"CREATE DATABASE `{database}`")

"""A source and a replica of it: what holds a snapshot back, and that it goes on behind that."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pymysql
import pytest

from incsnap.errors import IncsnapError
from incsnap.monitoring.planner_report import read
from incsnap.mysql.loads import CommitLatency, replica_lag_ms, threads_running
from incsnap.mysql.preflight import findings
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.servers import servers
from tests.support.planned_job import PlannedJob, settings_of
from tests.support.replicas import begin_binlog_anew, follow
from tests.support.replicas import execute as run
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers


class Pair(NamedTuple):
    source: MySqlAddress
    replica: MySqlAddress


@pytest.fixture(scope="module")
def pair(mysql_address: MySqlAddress) -> Iterator[Pair]:
    """The session's server, and one that replicates what it executes from now on."""
    source = mysql_address
    with servers(kafka=False, mysql_options=["--server-id=22"]) as replica:
        [(executed,)] = run(source, "SELECT @@gtid_executed")
        begin_binlog_anew(replica.mysql)
        run(replica.mysql, f"SET GLOBAL gtid_purged = '{executed}'")
        follow(replica.mysql, source)
        yield Pair(source, replica.mysql)


def lag_of(replica: MySqlAddress) -> int:
    """Return the replica's lag in milliseconds; 0 while its threads still start."""
    with closing(connect(replica)) as connection, suppress(IncsnapError):
        return replica_lag_ms(connection)
    return 0


@pytest.fixture
def begun(
    pair: Pair, kafka_address: str, topic_prefix: str, tmp_path: Path
) -> Iterator[Callable[..., tuple[PlannedJob, Callable[[str, dict[str, Any]], None]]]]:
    """Yield a function that makes a job and its signal function. The table has 20 rows, in chunks of 5."""
    database = f"test_{secrets.token_hex(5)}"
    jobs: list[PlannedJob] = []

    def begin(**more: str) -> tuple[PlannedJob, Callable[[str, dict[str, Any]], None]]:
        run(
            pair.source,
            f"CREATE DATABASE {database}",
            f"CREATE TABLE {database}.sig (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data TEXT)",
            f"CREATE TABLE {database}.t (id INT PRIMARY KEY)",
            f"INSERT INTO {database}.t VALUES {', '.join(f'({number})' for number in range(20))}",
        )
        settings = settings_of(
            pair.source,
            kafka_address,
            topic_prefix,
            database,
            signal__data__collection=f"{database}.sig",
            incremental__snapshot__chunk__size="5",
            incsnap__snapshot__throttle__replicas=f"{pair.replica.host}:{pair.replica.port}",
            **more,
        )
        job = PlannedJob(settings, str(tmp_path / "checkpoint"), report=str(tmp_path / "report.json"))
        jobs.append(job)

        def signal(kind: str, data: dict[str, Any]) -> None:
            values = f"('{secrets.token_hex(4)}', '{kind}', '{json.dumps(data)}')"
            run(pair.source, f"INSERT INTO {database}.sig VALUES {values}")

        return job, signal

    yield begin
    for job in jobs:
        job.close()
    run(pair.source, f"DROP DATABASE IF EXISTS {database}")


def why(job: PlannedJob) -> str:
    status = read(Path(job.report))
    return status.snapshot.waits_for if status is not None else ""


def snapshot_of(job: PlannedJob) -> dict[str, Any]:
    return {"type": "incremental", "data-collections": [f"{job.settings.signals.data_collection}".replace("sig", "t")]}


def rows_of(job: PlannedJob) -> list[int]:
    return sorted(each.value["after"]["id"] for each in job.sent if each.value and each.value.get("op") == "r")


def test_a_snapshot_waits_for_a_replica_and_goes_on_when_it_has_caught_up(pair: Pair, begun: Any) -> None:
    job, signal = begun(incsnap__snapshot__throttle__replica__lag__ms="1000")
    run(pair.replica, "STOP REPLICA SQL_THREAD")
    try:
        signal("execute-snapshot", snapshot_of(job))
        job.batches_until(lambda: "its replication does not run" in why(job), "word of the replica")
        assert rows_of(job) == []
        reason = f"of replica {pair.replica.host}:{pair.replica.port} is not known"
        assert reason in why(job)
        assert "Replica_SQL_Running: No" in why(job)
    finally:
        run(pair.replica, "START REPLICA")
    job.batches_until(lambda: len(rows_of(job)) == 20, "rows")


def test_a_lagging_replica_holds_a_snapshot_back_until_a_signal_lifts_the_limit(pair: Pair, begun: Any) -> None:
    job, signal = begun()
    run(pair.replica, "STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY=3600", "START REPLICA")
    try:
        signal("incsnap-throttle", {"replica-lag-ms": 1000})
        wait_until(lambda: lag_of(pair.replica) > 1_000)
        signal("execute-snapshot", snapshot_of(job))
        job.batches_until(lambda: "ms behind, more than the 1,000 ms of signal" in why(job), "word of the lag")
        assert rows_of(job) == []
        signal("incsnap-throttle", {"replica-lag-ms": None})
        job.batches_until(lambda: len(rows_of(job)) == 20, "rows")
    finally:
        run(pair.replica, "STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY=0", "START REPLICA")


def test_a_replica_that_does_not_answer_holds_a_snapshot_back(begun: Any) -> None:
    job, signal = begun(
        incsnap__snapshot__throttle__replica__lag__ms="1000", incsnap__snapshot__throttle__threads__running="1000"
    )
    gone = job.settings.snapshot.model_copy(update={"throttle_replicas": (("127.0.0.1", 1),)})
    job.restart(job.settings.model_copy(update={"snapshot": gone}))
    signal("execute-snapshot", snapshot_of(job))
    job.batches_until(lambda: "MySQL at 127.0.0.1:1 does not answer" in why(job), "word of the replica")
    signal("incsnap-throttle", {"replica-lag-ms": 0})
    job.batches_until(lambda: len(rows_of(job)) == 20, "rows")


def test_a_slow_commit_holds_a_snapshot_back(pair: Pair, begun: Any) -> None:
    """Commits wait for others to be synchronized with them, half a second here."""
    job, signal = begun(incsnap__snapshot__throttle__commit__latency__ms="300")
    table = f"{job.settings.signals.data_collection}".replace("sig", "t")
    run(pair.source, "SET GLOBAL binlog_group_commit_sync_delay = 500000")
    try:
        signal("execute-snapshot", snapshot_of(job))
        with closing(connect(pair.source)) as connection, connection.cursor() as cursor:

            def committed() -> bool:
                cursor.execute("BEGIN")
                cursor.execute(f"UPDATE {table} SET id = id WHERE id = 0")
                cursor.execute(f"DELETE FROM {table} WHERE id > 19")
                cursor.execute(f"INSERT INTO {table} VALUES (100)")
                cursor.execute("COMMIT")
                return "a COMMIT takes" in why(job)

            job.batches_until(committed, "word of the commits")
    finally:
        run(pair.source, "SET GLOBAL binlog_group_commit_sync_delay = 0")
    job.batches_until(lambda: not job.offset.snapshot.active, "end of the snapshot")


def test_a_stream_that_lags_holds_a_snapshot_back(pair: Pair, begun: Any) -> None:
    """The job takes each change more than 300 ms after its commit. The table has 24 chunks, far more than one batch."""
    job, signal = begun(incsnap__snapshot__throttle__stream__lag__ms="300")
    table = f"{job.settings.signals.data_collection}".replace("sig", "t")
    run(pair.source, f"INSERT INTO {table} VALUES {', '.join(f'({number})' for number in range(20, 120))}")
    signal("execute-snapshot", snapshot_of(job))
    job.batches_until(lambda: job.offset.snapshot.active, "begin of the snapshot")
    new = iter(range(1_000, 2_000))

    def change() -> None:
        """Commit a change and wait until its lag is above the limit."""
        run(pair.source, f"INSERT INTO {table} VALUES ({next(new)})")
        committed = time.monotonic()
        wait_until(lambda: time.monotonic() - committed > 0.4)

    def all_read() -> bool:
        return set(range(120)) <= set(rows_of(job))

    def is_held_back() -> bool:
        assert not all_read()
        change()
        return not job.offset.snapshot.in_flight and "ms behind the server, more than the 300 ms" in why(job)

    job.batches_until(is_held_back, "word of the lag")
    before = rows_of(job)
    job.batch()
    assert rows_of(job) == before
    assert "ms behind the server, more than the 300 ms" in why(job)

    job.batches_until(all_read, "rows")


def test_threads_that_run_hold_a_snapshot_back(begun: Any) -> None:
    """One running thread asks for the number of threads, another one sends the binlog."""
    job, signal = begun(incsnap__snapshot__throttle__threads__running="1")
    signal("execute-snapshot", snapshot_of(job))
    job.batches_until(lambda: "threads run on the server, more than the 1 threads" in why(job), "word of the threads")
    assert rows_of(job) == []
    signal("incsnap-throttle", {"threads-running": 0})
    job.batches_until(lambda: len(rows_of(job)) == 20, "rows")


def test_a_missing_privilege_for_a_load_is_reported_with_its_grant(pair: Pair) -> None:
    user = f"u{secrets.token_hex(4)}"
    run(pair.replica, "SET sql_log_bin = 0", f"CREATE USER {user} IDENTIFIED BY 'Pw-12345'")
    try:
        with closing(
            pymysql.connect(
                host=pair.replica.host,
                port=pair.replica.port,
                user=user,
                password="Pw-12345",
                connect_timeout=10,
                read_timeout=60,
                write_timeout=60,
            )
        ) as connection:
            assert threads_running(connection) >= 1
            with pytest.raises(IncsnapError) as lag:
                replica_lag_ms(connection)
            with pytest.raises(IncsnapError) as commit:
                CommitLatency()(connection)
    finally:
        with suppress(pymysql.MySQLError):
            run(pair.replica, "SET sql_log_bin = 0", f"DROP USER {user}")
    assert "REPLICATION CLIENT" in lag.value.hint
    assert "GRANT SELECT ON performance_schema.*" in commit.value.hint


def test_a_server_that_is_no_replica_says_so(pair: Pair) -> None:
    with closing(connect(pair.source)) as connection, pytest.raises(IncsnapError, match="is not a replica"):
        replica_lag_ms(connection)


def test_a_check_warns_of_what_would_hold_snapshots_back(pair: Pair, begun: Any) -> None:
    job, _ = begun(incsnap__snapshot__throttle__commit__latency__ms="50")
    assert [finding for finding in findings(job.settings) if "throttle" in finding.name] == []

    other = job.settings.snapshot.model_copy(update={"throttle_replicas": ((pair.source.host, pair.source.port),)})
    warnings = [
        each for each in findings(job.settings.model_copy(update={"snapshot": other})) if "throttle" in each.name
    ]
    assert [(each.name, each.severity) for each in warnings] == [
        ("incsnap.snapshot.throttle.replica.lag.ms", "warning")
    ]
    assert "it is not a replica; with this limit snapshots wait" in warnings[0].problem

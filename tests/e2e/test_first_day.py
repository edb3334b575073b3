"""A job with the settings of a first day, on three brokers: what it makes, writes and shows."""

from __future__ import annotations

import datetime
import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource

from incsnap.checkpoint.status import newest_offset
from incsnap.monitoring.status import TableStatus
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from lab.fetched_kafka import three_brokers
from lab.free_port import free_ports
from lab.table_designs import ORDER_LINES, ORDERS
from tests.e2e.test_notifications import snapshot_of
from tests.support.kafka import read_all

pytestmark = pytest.mark.servers

ROWS = 12_000
HOST = "127.0.0.2"


@pytest.fixture
def play(mysql_address: MySqlAddress, database: str, topic_prefix: str, tmp_path: Path) -> Iterator[CapturedDatabase]:
    """A captured database whose job writes to three brokers."""
    with (
        three_brokers() as (addresses, _),
        captured_database(mysql_address, addresses, database, topic_prefix, tmp_path) as made,
    ):
        yield made


@pytest.fixture
def excluded(play: CapturedDatabase) -> Iterator[TableId]:
    """A table that `table.include.list` takes, in a database that `database.exclude.list` leaves out."""
    database = f"{play.database}_other"
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE `{database}`")
        try:
            yield _odd_table(play, database)
        finally:
            cursor.execute(f"DROP DATABASE `{database}`")


def _odd_table(play: CapturedDatabase, database: str) -> TableId:
    table = TableId(database, "odd")
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table.sql} (id INT PRIMARY KEY, lasted TIME NULL, v INT NULL, `of-day` DATE)")
    return table


def test_the_settings_of_a_first_day_are_obeyed(play: CapturedDatabase, excluded: TableId) -> None:
    orders, lines = play.create(ORDERS, ROWS), play.create(ORDER_LINES, 50)
    odd = _odd_table(play, play.database)
    (port,) = free_ports(1)
    settings = {
        "database.exclude.list": ".*_other",
        "table.include.list": rf"{play.database}.*\.(orders|order_lines|odd|marks)",
        "incsnap.metrics.host": HOST,
        "incsnap.metrics.port": str(port),
        "provide.transaction.metadata": "true",
        "topic.transaction": "commits",
        "enable.time.adjuster": "false",
        "sanitize.field.names": "true",
        "heartbeat.interval.ms": "300",
        "topic.heartbeat.prefix": "beats",
        "topic.creation.default.replication.factor": "3",
        "topic.creation.default.partitions": "2",
        "topic.creation.default.min.insync.replicas": "2",
        "topic.creation.groups": "lines",
        "topic.creation.lines.include": rf"{play.prefix}\..*\.order_lines",
        "topic.creation.lines.replication.factor": "2",
        "topic.creation.lines.partitions": "5",
        "topic.creation.lines.cleanup.policy": "compact",
        "incsnap.latency.target.ms": "100",
        "time.precision.mode": "connect",
        "event.processing.failure.handling.mode": "warn",
        "event.converting.failure.handling.mode": "warn",
        "incsnap.snapshot.throttle.rows.per.second": "200",
    }
    with play.job(settings) as job, play.notices() as notices:
        job.wait_until_streaming()
        # Rows that are read by some 200 in a second take a minute, unless the limit is lifted.
        play.execute_by_row("first", [orders, lines])
        seen: list[TableStatus] = []

        def time_left_is_known() -> bool:
            seen[:] = [table for table in snapshot_of(play).tables if table.table.endswith(".orders")]
            return any(table.seconds_left is not None for table in seen)

        job.wait_until("the time left is known", time_left_is_known)
        (reading,) = seen
        _write_odd_rows(play, odd, excluded)
        assert reading.rows_expected is not None
        assert reading.rows_low is not None
        assert reading.rows_high is not None
        assert reading.rows_per_second is not None
        assert reading.rows_low <= ROWS <= reading.rows_high
        assert 20 <= reading.rows_per_second <= 10_000
        left = (reading.rows_expected - reading.rows_done) / reading.rows_per_second
        assert reading.seconds_left == pytest.approx(left, rel=0.01)
        # The status in memory is renewed at its own pace.
        metric = f'incsnap_snapshot_seconds_left{{name="{play.prefix}",table="{orders}"}}'
        job.wait_until("the metrics show it too", lambda: metric in _metrics(port))
        play.signal_by_row("smaller", "incsnap-throttle", {"chunk-rows": 100})
        job.wait_until("the limit is shown", lambda: _limits(play)[-1:] == [("chunk-rows", 100)])
        # On a busy machine the latency target makes chunks smaller still.
        job.wait_until("chunks are smaller", lambda: 0 < max(_rows_in_chunks(play, orders), default=0) <= 100)
        play.signal_by_row("faster", "incsnap-throttle", {"rows-per-second": 0, "chunk-rows": 0})
        job.wait_until("the snapshot's end", lambda: notices.completed("first"))
        play.drain(job)
        job.wait_until("a heartbeat", lambda: bool(_heartbeats(play)))
        assert urllib.request.urlopen(f"http://{HOST}:{port}/ready", timeout=60).status == 200
        # Two marks, three signals and an odd row.
        job.wait_until("inserted rows are counted", lambda: _counts_by_operation(port) == (6, 0, 0))
        _change_lines(play, lines)
        job.wait_until("changes are counted by operation", lambda: _counts_by_operation(port) == (7, 3, 3))
        assert 'debezium_metrics_MilliSecondsBehindSourceP99{context="streaming"' in _metrics(port)
        log = job.log_tail(2_000)
        assert "cannot express; null is written" in log
        assert "holds row images without all columns; it is left out" in log
        job.stop()

    assert _shape(play, play.topic(orders)) == (2, 3, "delete", "2")
    assert _shape(play, play.topic(lines))[:3] == (5, 2, "compact")
    beat = _heartbeats(play)[-1]
    assert beat.keys() >= {"ts_ms"}
    sent = [read.value for part in range(2) for read in read_all(play.kafka, play.topic(odd), [part])]
    year_12 = (datetime.date(12, 3, 4) - datetime.date(1970, 1, 1)).days
    assert [json.loads(value or b"")["after"] for value in sent] == [
        {"id": 1, "lasted": None, "v": 0, "of_day": year_12}
    ]
    commits = [json.loads(read.value or b"") for read in read_all(play.kafka, f"{play.prefix}.commits", range(2))]
    counted = {each["data_collection"] for commit in commits for each in commit.get("data_collections") or ()}
    assert str(odd) in counted
    topics = AdminClient({"bootstrap.servers": play.kafka}).list_topics(timeout=60).topics
    assert play.topic(odd) in topics
    assert [topic for topic in topics if excluded.database in topic] == []
    for verdict in play.verdicts():
        assert verdict.faults(1) == []


def _write_odd_rows(play: CapturedDatabase, table: TableId, excluded: TableId) -> None:
    """Write a time that Connect's Time cannot express, then change the row in a session that logs no whole rows.

    The row has a day of the year 12. The table that is excluded has the same row.
    """
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {excluded.sql} VALUES (1, '30:00:00', 0, '0012-03-04')")
        cursor.execute(f"INSERT INTO {table.sql} VALUES (1, '30:00:00', 0, '0012-03-04')")
        cursor.execute("SET SESSION binlog_row_image = MINIMAL")
        cursor.execute(f"UPDATE {table.sql} SET v = 1")


def _rows_in_chunks(play: CapturedDatabase, table: TableId) -> set[int]:
    """Return the sizes of the chunks that the newest batch has in flight.

    The status is written once a second, and so may always miss chunks that are planned twice a second.
    """
    newest = newest_offset(str(play.checkpoint))
    return {window.rows for window in newest.snapshot.in_flight if window.table == table} if newest else set()


def _limits(play: CapturedDatabase) -> list[tuple[str, int]]:
    return [(limit.name, limit.most) for limit in snapshot_of(play).limits]


def _change_lines(play: CapturedDatabase, lines: TableId) -> None:
    """Update three rows, delete two, and change the key of one, which counts as a deletion and a creation."""
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"UPDATE {lines.sql} SET version = 1 LIMIT 3")
        cursor.execute(f"DELETE FROM {lines.sql} WHERE version = 0 LIMIT 2")
        cursor.execute(f"UPDATE {lines.sql} SET seq = -1 LIMIT 1")


def _counts_by_operation(port: int) -> tuple[int, ...]:
    """Return the numbers of created, updated and deleted rows in the metrics of the stream."""
    counters = (
        re.search(rf'NumberOf{each}EventsSeen{{context="streaming",.*}} (\S+)', _metrics(port))
        for each in ("Create", "Update", "Delete")
    )
    return tuple(int(float(each[1])) if each is not None else -1 for each in counters)


def _metrics(port: int) -> str:
    answer = urllib.request.urlopen(f"http://{HOST}:{port}/metrics", timeout=60)
    text: str = answer.read().decode()
    return text


def _heartbeats(play: CapturedDatabase) -> list[dict[str, Any]]:
    read = read_all(play.kafka, f"beats.{play.prefix}", range(1))
    return [json.loads(each.value or b"") for each in read]


def _shape(play: CapturedDatabase, topic: str) -> tuple[int, int, str, str]:
    """Partitions, copies, cleanup.policy and min.insync.replicas of a topic."""
    admin = AdminClient({"bootstrap.servers": play.kafka})
    partitions = admin.list_topics(topic, timeout=20).topics[topic].partitions
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    configured = admin.describe_configs([resource], request_timeout=20)[resource].result()
    policy, least = (configured[name].value for name in ("cleanup.policy", "min.insync.replicas"))
    return len(partitions), len(partitions[0].replicas), policy, least

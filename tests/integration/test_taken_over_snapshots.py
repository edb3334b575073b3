"""Snapshots that a connector has not finished: the job goes on with them, reads all tables anew, or names them."""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.taken_over import write_taken_over
from incsnap.mysql.watermarks import executed, high_watermark
from incsnap.takeover.connector_offset import ConnectorOffset, RunningSnapshot, WaitingTable
from incsnap.takeover.join import join
from lab.addresses import MySqlAddress
from tests.integration.test_taken_over_truncations import sent_by_connector
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers


def filled(connection: Connection[Any], database: str, table: str) -> str:
    """Create a table with the rows 1 to 5, and return its name."""
    name = f"{database}.{table}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO {name} VALUES (1), (2), (3), (4), (5)")
    return name


def insert_of(connection: Connection[Any], table: str, number: int) -> tuple[str, int]:
    """Insert a row, and return the file and position of its event."""
    file, begin = high_watermark(connection)
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} VALUES ({number})")
        cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {begin}")
        return file, next(int(event[1]) for event in cursor.fetchall() if str(event[2]).startswith("Write_rows"))


def changes_of(job: PlannedJob, topic: str) -> list[tuple[str, int]]:
    """Return (operation, id) of each record of the topic."""
    return [(record.value["op"], record.value["after"]["id"]) for record in job.of(topic)]


def until_read(job: PlannedJob) -> None:
    """Run batches until no table is read or waits."""
    job.batches_until(lambda: job.offset.batch > 0 and not job.offset.snapshot.active, "end of the snapshots")


@pytest.mark.parametrize("has_change", [False, True], ids=["no change behind it", "a change behind it"])
def test_all_tables_are_read_anew_if_no_change_shows_the_end_of_the_first_snapshot(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
    tmp_path: Path,
    has_change: bool,
) -> None:
    table = filled(connection, database, "t")
    topic = f"{topic_prefix}.{table}"
    offset = ConnectorOffset(executed(connection), *high_watermark(connection), snapshot="initial")
    if has_change:
        sent_by_connector(kafka_address, topic, *insert_of(connection, table, 6), {"id": 6})
    settings = settings_of(mysql_address, kafka_address, topic_prefix, database, snapshot__mode="initial")

    joined = join(settings, offset)

    how = "was finished, because the topics have changes" if has_change else "was not finished: the job reads"
    assert f"The connector's first snapshot {how}" in " ".join(joined.lines)
    assert not joined.warnings
    write_taken_over(Files(str(tmp_path)), joined.place)
    with closing(PlannedJob(settings, str(tmp_path))) as job:
        if has_change:
            insert_of(connection, table, 7)
            job.until(topic, 1)
        until_read(job)
        read = [("r", number) for number in range(1, 6)]
        assert sorted(changes_of(job, topic)) == ([("c", 7)] if has_change else read)


@pytest.mark.parametrize(
    ("type_", "value", "shown"),
    [
        ("DECIMAL(20, 2)", Decimal("12345678901234567.10"), "12345678901234567.10"),
        ("BINARY(2)", b"\x01\x02", '"AQI="'),
        ("BIT(16)", b"\x01\x02", ""),  # Java's bytes of a BIT are not those of records
    ],
)
def test_a_snapshot_goes_on_behind_a_key_of_the_table(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
    type_: str,
    value: object,
    shown: str,
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {database}.t (id {type_} PRIMARY KEY)")
    running = RunningSnapshot("ad-hoc", (WaitingTable(f"{database}.t"),), (value,), (value,))
    offset = ConnectorOffset(executed(connection), *high_watermark(connection), running=running)

    joined = join(settings_of(mysql_address, kafka_address, topic_prefix, database), offset)

    (request,) = joined.place.requests
    chosen = request.collection.chosen
    assert ("" if chosen is None else chosen.first) == (f'{{"id": {shown}}}' if shown else "")


def test_a_first_snapshot_that_nothing_reads_again_is_warned_of(
    mysql_address: MySqlAddress, kafka_address: str, connection: Connection[Any], database: str, topic_prefix: str
) -> None:
    filled(connection, database, "t")
    offset = ConnectorOffset(executed(connection), *high_watermark(connection), snapshot="initial")

    joined = join(settings_of(mysql_address, kafka_address, topic_prefix, database, snapshot__mode="no_data"), offset)

    assert "reads all tables anew" not in " ".join(joined.lines)
    (warning,) = joined.warnings
    assert "snapshot.mode=no_data reads no table: signal execute-snapshot" in warning


@pytest.mark.parametrize("has_change", [False, True], ids=["no change behind it", "a change behind it"])
def test_a_blocking_snapshot_is_named_and_not_read(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
    tmp_path: Path,
    has_change: bool,
) -> None:
    table = filled(connection, database, "t")
    topic = f"{topic_prefix}.{table}"
    offset = ConnectorOffset(executed(connection), *high_watermark(connection), snapshot="blocking")
    if has_change:
        sent_by_connector(kafka_address, topic, *insert_of(connection, table, 6), {"id": 6})
    settings = settings_of(mysql_address, kafka_address, topic_prefix, database, snapshot__mode="initial")

    joined = join(settings, offset)

    (warning,) = joined.warnings
    assert "a snapshot of the kind blocking was under way" in warning
    assert "signal execute-snapshot" in warning
    write_taken_over(Files(str(tmp_path)), joined.place)
    with closing(PlannedJob(settings, str(tmp_path))) as job:
        insert_of(connection, table, 7)
        job.until(topic, 1)
        until_read(job)
        assert changes_of(job, topic) == [("c", 7)]


def test_an_incremental_snapshot_goes_on_with_its_queue_and_its_conditions(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
    tmp_path: Path,
) -> None:
    first, second = filled(connection, database, "first"), filled(connection, database, "second")
    waiting = (WaitingTable(first, "id <> 4"), WaitingTable("gone.t"), WaitingTable(second, "id < 3"))
    # Rows up to 2 are read, and 9 was the greatest key then.
    running = RunningSnapshot("ad-hoc", waiting, (2,), (9,))
    settings = settings_of(mysql_address, kafka_address, topic_prefix, database)

    joined = join(settings, ConnectorOffset(executed(connection), *high_watermark(connection), running=running))

    assert "gone.t was to be read and is not captured: it is left out." in joined.lines
    write_taken_over(Files(str(tmp_path)), joined.place)
    with closing(PlannedJob(settings, str(tmp_path))) as job:
        until_read(job)
        # The row of the last key comes again.
        assert sorted(changes_of(job, f"{topic_prefix}.{first}")) == [("r", 2), ("r", 3), ("r", 5)]
        assert sorted(changes_of(job, f"{topic_prefix}.{second}")) == [("r", 1), ("r", 2)]

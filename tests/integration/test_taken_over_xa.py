"""XA transactions around the place of another engine, which has sent their rows at XA PREPARE."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.taken_over import TakenOver, write_taken_over
from incsnap.envelope.seam import RecordPlace, Seam
from incsnap.events import file_number
from incsnap.mysql.watermarks import executed, high_watermark
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.join import join
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers


def run_in(mysql: MySqlAddress, database: str, *statements: str) -> None:
    """Run the statements in a session of their own: it may leave no transaction open."""
    with closing(connect(mysql, database=database)) as session, session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.mark.parametrize("ends_before_the_start", [True, False])
def test_rows_that_were_sent_at_xa_prepare_do_not_come_again_behind_the_seam(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
    tmp_path: Path,
    ends_before_the_start: bool,
) -> None:
    run = partial(run_in, mysql_address, database)

    name = f"'{database}'"
    run("CREATE TABLE t (id INT PRIMARY KEY)")
    run(f"XA START {name}", "INSERT INTO t VALUES (1)", f"XA END {name}", f"XA PREPARE {name}")
    file, pos = high_watermark(connection)
    delivered, seam = executed(connection), Seam(server_uuid(connection), RecordPlace(file_number(file), pos))
    write_taken_over(Files(str(tmp_path)), TakenOver(topic_prefix, str(delivered), seam))
    # The stream passes the seam with the first of these rows, and meets XA COMMIT behind the second.
    run("INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (3)")
    settings = settings_of(mysql_address, kafka_address, topic_prefix, database, max__batch__size="1")

    def commit() -> None:
        run(f"XA COMMIT {name}", "INSERT INTO t VALUES (4)")

    if ends_before_the_start:
        commit()
    with closing(PlannedJob(settings, str(tmp_path))) as job:
        topic = f"{topic_prefix}.{database}.t"
        job.until(topic, 2)
        if not ends_before_the_start:
            commit()
        job.until(topic, 3)

        assert [record.value["after"]["id"] for record in job.of(topic)] == [2, 3, 4]


@pytest.mark.parametrize("ends_before_the_start", [True, False])
def test_a_rollback_of_rows_that_were_sent_at_xa_prepare_is_named_in_a_warning(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    ends_before_the_start: bool,
) -> None:
    run = partial(run_in, mysql_address, database)

    name, never_sent = f"'{database}'", f"'{database}_2'"
    shown = f"X'{database.encode().hex()}'"
    run("CREATE TABLE t (id INT PRIMARY KEY)")
    run(f"XA START {name}", "INSERT INTO t VALUES (1)", f"XA END {name}", f"XA PREPARE {name}")
    settings = settings_of(mysql_address, kafka_address, topic_prefix, database)
    joined = join(settings, ConnectorOffset(executed(connection), *high_watermark(connection)))
    assert [text for text in joined.warnings if shown in text and "After an XA ROLLBACK such rows stay" in text]
    write_taken_over(Files(str(tmp_path)), joined.place)
    if ends_before_the_start:
        run(f"XA ROLLBACK {name}")
    with closing(PlannedJob(settings, str(tmp_path))) as job:
        topic = f"{topic_prefix}.{database}.t"
        if not ends_before_the_start:
            run(f"XA ROLLBACK {name}")
        run("INSERT INTO t VALUES (2)")
        job.until(topic)

        (warning,) = (each for each in caplog.messages if "is rolled back" in each)
        assert shown in warning
        assert "they stay in the topics" in warning
        assert [record.value["after"]["id"] for record in job.of(topic)] == [2]

        # The stream is past what the connector had sent.
        run("INSERT INTO t VALUES (3)")
        job.until(topic, 2)
        run(f"XA START {never_sent}", "INSERT INTO t VALUES (4)", f"XA END {never_sent}", f"XA PREPARE {never_sent}")
        run(f"XA ROLLBACK {never_sent}", "INSERT INTO t VALUES (5)")
        job.until(topic, 3)

        assert [each for each in caplog.messages if "is rolled back" in each] == [warning]


def test_the_rest_of_an_xa_rows_event_comes_at_xa_commit(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
    tmp_path: Path,
) -> None:
    run = partial(run_in, mysql_address, database)

    name, rows = f"'{database}'", ", ".join(f"({number})" for number in range(200))
    run("CREATE TABLE t (id INT PRIMARY KEY)")
    # The first rows event is sent whole, and of the second one the rows 0 to 10.
    before, (file, begin) = executed(connection), high_watermark(connection)
    first, second = "INSERT INTO t VALUES (1000)", f"INSERT INTO t VALUES {rows}"
    run(f"XA START {name}", first, second, f"XA END {name}", f"XA PREPARE {name}")
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {begin}")
        event = [row for row in cursor.fetchall() if str(row[2]).startswith("Write_rows")][1]
    settings = settings_of(mysql_address, kafka_address, topic_prefix, database)
    # Debezium sees no beginning of the transaction. So its place is the end of the rows event.
    joined = join(settings, ConnectorOffset(before, file, int(event[4]), row=11))
    assert any(each.startswith("XA transactions are prepared: ") for each in joined.warnings)
    place = joined.place
    assert place.seam.least == RecordPlace(file_number(file), int(event[1]), 11)
    write_taken_over(Files(str(tmp_path)), place)
    run(f"XA COMMIT {name}")
    with closing(PlannedJob(settings, str(tmp_path))) as job:
        topic = f"{topic_prefix}.{database}.t"
        job.until(topic, 189)

        assert sorted(record.value["after"]["id"] for record in job.of(topic)) == list(range(11, 200))


def server_uuid(connection: Connection[Any]) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@server_uuid")
        return str(cursor.fetchall()[0][0])

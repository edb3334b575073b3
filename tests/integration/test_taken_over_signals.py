"""Rows of the signal table around the place of another engine, within one transaction."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.taken_over import write_taken_over
from incsnap.mysql.watermarks import executed, high_watermark
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.join import join
from lab.addresses import MySqlAddress
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers


# With the texts of statements the transaction has more events, which Debezium counts too.
@pytest.mark.parametrize("queries", ["OFF", "ON"], ids=["without statements", "with statements"])
def test_a_signal_that_the_connector_has_obeyed_is_not_obeyed_again(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
    tmp_path: Path,
    queries: str,
) -> None:
    signal = "INSERT INTO signals VALUES ('%s', 'execute-snapshot', '{\"data-collections\": [\"%s.%s\"]}')"
    with connection.cursor() as cursor:
        for table in ("obeyed", "waiting"):
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
            cursor.execute(f"INSERT INTO {table} VALUES (1), (2)")
        cursor.execute("CREATE TABLE signals (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
        cursor.execute(f"SET SESSION binlog_rows_query_log_events = {queries}")
        before, (file, begin) = executed(connection), high_watermark(connection)
        cursor.execute("BEGIN")
        for table in ("obeyed", "waiting"):
            cursor.execute(signal % (table, database, table))
        cursor.execute("COMMIT")
        cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {begin}")
        kinds = [str(event[2]) for event in cursor.fetchall()]
    settings = settings_of(
        mysql_address,
        kafka_address,
        topic_prefix,
        database,
        signal__data__collection=f"{database}.signals",
        signal__enabled__channels="source",
    )
    assert ("Rows_query" in kinds) == (queries == "ON")
    # Events behind the GTID, up to the first rows event.
    done = kinds.index("Write_rows")
    write_taken_over(Files(str(tmp_path)), join(settings, ConnectorOffset(before, file, begin, event=done)).place)
    with closing(PlannedJob(settings, str(tmp_path))) as job:
        job.until(f"{topic_prefix}.{database}.waiting", 2)

        assert job.of(f"{topic_prefix}.{database}.obeyed") == []

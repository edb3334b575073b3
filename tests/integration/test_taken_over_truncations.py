"""The record of a TRUNCATE behind a connector's offset comes once: from the connector or from the job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.taken_over import write_taken_over
from incsnap.mysql.watermarks import executed, high_watermark
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.join import join
from lab.addresses import MySqlAddress
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers


def sent_by_connector(kafka: str, topic: str, file: str, pos: int, row: Mapping[str, object] | None) -> None:
    """Write a record as Debezium does: the creation of a row, or without `row` that of a truncation."""
    source = {"version": "3.6.1.Final", "snapshot": "false", "file": file, "pos": pos, "row": 0}
    value = {"before": None, "after": row, "source": source, "op": "t" if row is None else "c", "ts_ms": 1}
    producer = Producer({"bootstrap.servers": kafka})
    key = None if row is None else json.dumps(row, separators=(",", ":")).encode()
    producer.produce(topic, json.dumps(value, separators=(",", ":")).encode(), key)
    producer.flush(30)


@pytest.mark.parametrize("is_sent", [True, False], ids=["by the connector", "by the job"])
def test_the_record_of_a_truncation_comes_once(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
    tmp_path: Path,
    is_sent: bool,
) -> None:
    topic = f"{topic_prefix}.{database}.t"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
        before, (file, begin) = executed(connection), high_watermark(connection)
        for statement in ("INSERT INTO {t} VALUES (1)", "TRUNCATE TABLE {t}", "INSERT INTO {t} VALUES (2)"):
            cursor.execute(statement.format(t=f"{database}.t"))
        cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {begin}")
        events = cursor.fetchall()
    at_row = next(int(event[1]) for event in events if str(event[2]).startswith("Write_rows"))
    at_truncation = next(int(event[1]) for event in events if "TRUNCATE" in str(event[5]))
    sent_by_connector(kafka_address, topic, file, at_row, {"id": 1})
    if is_sent:
        sent_by_connector(kafka_address, topic, file, at_truncation, None)
    settings = settings_of(mysql_address, kafka_address, topic_prefix, database, skipped__operations="none")
    write_taken_over(Files(str(tmp_path)), join(settings, ConnectorOffset(before, file, begin)).place)
    with closing(PlannedJob(settings, str(tmp_path))) as job:
        job.until(topic, 1 if is_sent else 2)

        assert [record.value["op"] for record in job.of(topic)] == ["c"] if is_sent else ["t", "c"]

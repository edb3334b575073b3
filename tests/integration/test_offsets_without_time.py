"""The take-over of a connector whose offset has no time: heartbeats behind a restart have none."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pymysql.connections import Connection

from incsnap.envelope.seam import ROW_STEP, RecordPlace
from incsnap.errors import ConfigError
from incsnap.events import file_number
from incsnap.mysql.watermarks import executed, high_watermark
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.join import join
from lab.addresses import MySqlAddress
from tests.support.planned_job import settings_of

pytestmark = pytest.mark.servers

_HOURS_MS = 3_600_000


@pytest.fixture
def topic(kafka_address: str, topic_prefix: str, database: str) -> Iterator[str]:
    """Yield the topic of the table `t`. Its first record is hours old, and is no envelope."""
    name, admin = f"{topic_prefix}.{database}.t", AdminClient({"bootstrap.servers": kafka_address})
    admin.create_topics([NewTopic(name, 2, 1)], request_timeout=30)[name].result(30)
    produce(kafka_address, name, b'{"id":1}', int(time.time() * 1000) - 5 * _HOURS_MS)
    yield name
    admin.delete_topics([name], request_timeout=30)[name].result(30)


def produce(kafka: str, topic: str, value: bytes, time_ms: int) -> None:
    """Write a record with the key of the row 1 to partition 0."""
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(topic, value, b'{"id":1}', partition=0, timestamp=time_ms)
    assert producer.flush(30) == 0


def test_the_topics_are_read_since_the_first_transaction_behind_the_offset(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
    topic: str,
) -> None:
    settings = settings_of(mysql_address, kafka_address, topic_prefix, database)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        offset = ConnectorOffset(executed(connection), *high_watermark(connection))
        assert join(settings, offset).place.seam.ends == ()

        cursor.execute("INSERT INTO t VALUES (1)")
        cursor.execute(f"SHOW BINLOG EVENTS IN '{offset.file}' FROM {offset.pos}")
        [pos] = [int(begin) for _, begin, kind, *_ in cursor.fetchall() if str(kind).startswith("Write_rows")]
    source: dict[str, object] = {"version": "3.6.1.Final", "connector": "mysql", "name": topic_prefix}
    source |= {"snapshot": "false", "file": offset.file, "pos": pos, "row": 0}
    value = {"before": None, "after": {"id": 1}, "source": source, "op": "c", "ts_ms": 1}
    produce(kafka_address, topic, json.dumps(value, separators=(",", ":")).encode(), int(time.time() * 1000))

    [end] = join(settings, offset).place.seam.ends

    assert end.end == RecordPlace(file_number(offset.file), pos, 0, ROW_STEP).next
    with pytest.raises(ConfigError, match=r"has partitioner\.class=x, and .* has records behind the offset"):
        join(settings, offset, partitioner="partitioner.class=x")

"""Signals that another engine has obeyed before its place: rows of the signal table, and messages in Kafka."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.taken_over import write_taken_over
from incsnap.config.settings import Settings
from incsnap.mysql.watermarks import executed, high_watermark
from incsnap.takeover.connector_offset import ConnectorOffset, RunningSnapshot, WaitingTable
from incsnap.takeover.join import join
from incsnap.takeover.obeyed_signals import unwritten_signals
from lab.addresses import MySqlAddress
from signals import send
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers


def settings_with(mysql: MySqlAddress, kafka: str, prefix: str, database: str, topic: str, group: str) -> Settings:
    """Return settings with signals from `topic`. `group`: the connector's consumer group there."""
    return settings_of(
        mysql,
        kafka,
        prefix,
        database,
        signal__enabled__channels="kafka",
        signal__kafka__topic=topic,
        signal__kafka__groupId=group,
    )


def commit(kafka: str, topic: str, group: str, offset: int) -> None:
    """Commit the place up to which a connector has obeyed the signals of `topic`."""
    with closing(Consumer({"bootstrap.servers": kafka, "group.id": group})) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)


# With the texts of statements the transaction has more events, which Debezium counts too.
@pytest.mark.parametrize("queries", ["OFF", "ON"], ids=["without statements", "with statements"])
@pytest.mark.parametrize("row", [0, 1], ids=["behind an event", "behind a row"])
def test_a_signal_that_the_connector_has_obeyed_is_not_obeyed_again(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
    tmp_path: Path,
    queries: str,
    row: int,
) -> None:
    signals = [
        f"""('{table}', 'execute-snapshot', '{{"data-collections": ["{database}.{table}"]}}')"""
        for table in ("obeyed", "waiting")
    ]
    with connection.cursor() as cursor:
        for table in ("obeyed", "waiting"):
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
            cursor.execute(f"INSERT INTO {table} VALUES (1), (2)")
        cursor.execute("CREATE TABLE signals (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
        cursor.execute(f"SET SESSION binlog_rows_query_log_events = {queries}")
        before, (file, begin) = executed(connection), high_watermark(connection)
        cursor.execute("BEGIN")
        for rows in [", ".join(signals)] if row else signals:
            cursor.execute(f"INSERT INTO signals VALUES {rows}")
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
    # Events behind the GTID, up to the first rows event or to its first row.
    done = kinds.index("Write_rows") - row
    offset = ConnectorOffset(before, file, begin, event=done, row=row)
    write_taken_over(Files(str(tmp_path)), join(settings, offset).place)
    with closing(PlannedJob(settings, str(tmp_path))) as job:
        job.until(f"{topic_prefix}.{database}.waiting", 2)

        assert job.of(f"{topic_prefix}.{database}.obeyed") == []


@pytest.mark.parametrize("is_committed", [True, False], ids=["obeyed by the connector", "obeyed by nobody"])
def test_a_message_that_the_connector_has_obeyed_is_not_obeyed_again(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
    tmp_path: Path,
    is_committed: bool,
) -> None:
    topic, group = f"{topic_prefix}-signal", f"{topic_prefix}-group"
    admin = AdminClient({"bootstrap.servers": kafka_address})
    admin.create_topics([NewTopic(topic, 1, 1)], request_timeout=30)[topic].result(30)
    with connection.cursor() as cursor:
        for table in ("obeyed", "waiting"):
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
            cursor.execute(f"INSERT INTO {table} VALUES (1), (2)")
            data = send.snapshot_data([f"{database}.{table}"])
            send.to_topic(kafka_address, topic, topic_prefix, table, "execute-snapshot", data)
    if is_committed:
        commit(kafka_address, topic, group, 1)
    settings = settings_with(mysql_address, kafka_address, topic_prefix, database, topic, group)
    joined = join(settings, ConnectorOffset(executed(connection), *high_watermark(connection)))
    assert joined.place.signals_at == (1 if is_committed else None)
    warnings = [text for text in joined.warnings if f"the group {group} (signal.kafka.groupId) has no place" in text]
    assert len(warnings) == (0 if is_committed else 1)
    write_taken_over(Files(str(tmp_path)), joined.place)
    with closing(PlannedJob(settings, str(tmp_path))) as job:
        assert job.offset.signal_positions.get("kafka") == joined.place.signals_at
        # The snapshots of one channel are read in the order of their signals.
        job.until(f"{topic_prefix}.{database}.waiting", 2)

        assert len(job.of(f"{topic_prefix}.{database}.obeyed")) == (0 if is_committed else 2)
    admin.delete_topics([topic], request_timeout=30)[topic].result(30)


def test_a_message_that_came_behind_the_offset_is_named_because_its_snapshot_may_be_lost(
    mysql_address: MySqlAddress,
    kafka_address: str,
    connection: Connection[Any],
    database: str,
    topic_prefix: str,
) -> None:
    topic, group, seconds = f"{topic_prefix}-signal", f"{topic_prefix}-group", 1_700_000_000
    admin = AdminClient({"bootstrap.servers": kafka_address})
    admin.create_topics([NewTopic(topic, 1, 1)], request_timeout=30)[topic].result(30)
    producer = Producer({"bootstrap.servers": kafka_address})
    for key, name, kind, sent in (
        (topic_prefix, "known", "execute-snapshot", seconds - 61),
        # Debezium may have looked at the topic behind the time of the offset.
        (topic_prefix, "lost", "execute-snapshot", seconds - 5),
        (topic_prefix, "kept", "execute-snapshot", seconds + 1),
        (topic_prefix, "halt", "stop-snapshot", seconds + 2),
        (topic_prefix, "word", "log", seconds + 2),
        ("other", "foreign", "execute-snapshot", seconds + 2),
        (topic_prefix, "next", "execute-snapshot", seconds + 3),
    ):
        signal = {"id": name, "type": kind, "data": send.snapshot_data([f"{database}.t"])}
        producer.produce(topic, json.dumps(signal), key, timestamp=sent * 1000)
        producer.flush(30)
    commit(kafka_address, topic, group, 6)
    settings = settings_with(mysql_address, kafka_address, topic_prefix, database, topic, group)
    running = RunningSnapshot("kept", (WaitingTable(f"{database}.t"),), None, None)
    place = executed(connection), *high_watermark(connection)

    joined = join(settings, ConnectorOffset(*place, seconds=seconds, running=running))

    assert joined.place.signals_at == 6
    (warning,) = [text for text in joined.warnings if topic in text]
    assert "lost (execute-snapshot), halt (stop-snapshot). " in warning
    assert "send the signal again" in warning
    # A connector with read.only=true writes down the newest signal that it knows.
    assert "halt" in unwritten_signals(settings, ConnectorOffset(*place, seconds=seconds, signal=2), 6)
    assert unwritten_signals(settings, ConnectorOffset(*place, seconds=seconds, signal=3), 6) == ""
    # The topic was made anew and is shorter than the group's place.
    assert "next" in unwritten_signals(settings, ConnectorOffset(*place, seconds=seconds), 90)
    admin.delete_topics([topic], request_timeout=30)[topic].result(30)
    assert unwritten_signals(settings, ConnectorOffset(*place, seconds=seconds), 6) == ""

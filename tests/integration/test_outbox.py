"""An outbox table, from a real server's rows to records in topics that are made for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from pymysql.cursors import Cursor

from incsnap.config.settings import Settings, TopicCreation, TopicGroup
from incsnap.envelope.records import batch_of
from incsnap.errors import ValueRefused
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.event_topics import event_topics
from incsnap.kafka.topics import admin_client, ensure_control_topic, partition_counts
from incsnap.kafka.transaction import BucketWriter
from lab.addresses import MySqlAddress
from tests.support.kafka import keyed
from tests.support.planned_job import MakeJob, PlannedJob, planned_jobs, settings_of

pytestmark = pytest.mark.servers

_OUTBOX = (
    "CREATE TABLE outbox (id CHAR(36) PRIMARY KEY, aggregatetype VARCHAR(40) NOT NULL,"
    " aggregateid VARCHAR(40) NOT NULL, type VARCHAR(40), payload JSON, at DATETIME(3) NOT NULL)"
)


@pytest.fixture
def cursor(cursor: Cursor) -> Cursor:
    cursor.execute(_OUTBOX)
    cursor.execute("CREATE TABLE signals (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
    return cursor


@pytest.fixture
def make_settings(
    mysql_address: MySqlAddress, kafka_address: str, topic_prefix: str, database: str, cursor: Cursor
) -> Callable[..., Settings]:
    options: dict[str, str] = {
        "transforms": "outbox",
        "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
        "transforms.outbox.table.fields.additional.placement": "type:header:eventType",
        "transforms.outbox.table.field.event.timestamp": "at",
        "transforms.outbox.predicate": "outbox",
        "predicates": "outbox",
        "predicates.outbox.type": "TopicNameMatches",
        "predicates.outbox.pattern": r".*\.outbox",
        "include.schema.changes": "false",
        "signal.data.collection": f"{database}.signals",
        "incremental.snapshot.chunk.size": "3",
    }

    def make(**more: str) -> Settings:
        return settings_of(mysql_address, kafka_address, topic_prefix, database, **options, **more)

    return make


@pytest.fixture
def make_job(make_settings: Callable[..., Settings], tmp_path: Path) -> Iterator[MakeJob]:
    with planned_jobs(make_settings, tmp_path) as make:
        yield make


@pytest.fixture
def job(make_job: MakeJob) -> PlannedJob:
    return make_job()


def _write(cursor: Cursor, first: int, end: int) -> None:
    for number in range(first, end):
        cursor.execute(
            "INSERT INTO outbox VALUES (%s, %s, %s, 'made', %s, '2024-01-02 03:04:05.678')",
            (f"id-{number:03}", "order" if number % 2 else "customer", f"k{number % 3}", json.dumps({"n": number})),
        )


def _numbers(job: PlannedJob, topic: str) -> list[int]:
    return [json.loads(each.value)["n"] for each in job.of(topic)]


def test_rows_go_to_the_topics_that_they_name_in_their_order(
    cursor: Cursor, job: PlannedJob, topic_prefix: str
) -> None:
    _write(cursor, 0, 20)
    cursor.execute("DELETE FROM outbox WHERE id < 'id-010'")
    cursor.execute("INSERT INTO signals VALUES ('1', 'log', '{\"message\": \"seen\"}')")
    job.until("outbox.event.order", 10)
    job.until("outbox.event.customer", 10)
    job.batches_until(lambda: any("signals" in each.topic for each in job.sent), "the row behind the deletions")

    assert _numbers(job, "outbox.event.order") == list(range(1, 20, 2))
    assert _numbers(job, "outbox.event.customer") == list(range(0, 20, 2))
    assert [each.key for each in job.of("outbox.event.order")][:3] == ["k1", "k0", "k2"]
    assert {each.topic.partition(".")[0] for each in job.sent} == {"outbox", topic_prefix}
    assert not [each for each in job.sent if each.topic.endswith(".outbox")]


def test_a_snapshot_of_the_table_sends_what_nobody_has_deleted(cursor: Cursor, job: PlannedJob, database: str) -> None:
    _write(cursor, 0, 12)
    job.until("outbox.event.order", 6)
    job.until("outbox.event.customer", 6)
    job.sent.clear()
    data = json.dumps({"type": "incremental", "data-collections": [f"{database}.outbox"]})
    cursor.execute("INSERT INTO signals VALUES ('snap', 'execute-snapshot', %s)", (data,))
    cursor.execute("DELETE FROM outbox WHERE id >= 'id-010'")
    _write(cursor, 20, 22)
    job.until("outbox.event.order", 6)
    job.until("outbox.event.customer", 6)
    job.batches_until(lambda: not job.offset.snapshot.active, "the end of the snapshot")

    for topic, parity in (("outbox.event.customer", 0), ("outbox.event.order", 1)):
        numbers = _numbers(job, topic)
        # What was deleted before its chunk was sent is not sent again; what was written meanwhile may be read too.
        assert sorted(set(numbers)) == [*range(parity, 10, 2), 20 + parity]
        assert [numbers.count(number) for number in range(parity, 10, 2)] == [1] * 5


def test_payloads_of_bytes_go_out_as_they_are_and_all_else_by_the_delegate(
    cursor: Cursor, make_job: MakeJob, topic_prefix: str, database: str
) -> None:
    cursor.execute("ALTER TABLE outbox MODIFY payload BLOB")
    delegate = "value.converter.delegate.converter.type"
    job = make_job(
        **{
            "value.converter": "io.debezium.converters.BinaryDataConverter",
            delegate: "org.apache.kafka.connect.json.JsonConverter",
            f"{delegate}.schemas.enable": "false",
        }
    )
    _write(cursor, 0, 4)
    cursor.execute("INSERT INTO outbox VALUES ('empty', 'order', 'k', 'made', NULL, NOW())")
    cursor.execute("INSERT INTO signals VALUES ('1', 'log', '{\"message\": \"seen\"}')")
    job.until("outbox.event.order", 3)
    job.until(f"{topic_prefix}.{database}.signals")

    # Were they JSON, they would be texts in base64.
    assert [each.value for each in job.of("outbox.event.order")] == [{"n": 1}, {"n": 3}, None]
    [signal] = job.of(f"{topic_prefix}.{database}.signals")
    assert signal.value["after"]["type"] == "log"


def test_a_topic_that_kafka_does_not_allow_is_told_with_the_value(cursor: Cursor, job: PlannedJob) -> None:
    cursor.execute("INSERT INTO outbox VALUES ('x', 'naïve', 'k', 't', '1', NOW())")
    with pytest.raises(ValueRefused, match=r"'naïve' to the topic 'outbox\.event\.naïve'"):
        job.batches_until(lambda: False, "such an event")


def test_topics_are_made_as_their_group_says_and_events_keep_their_time(kafka_address: str, topic_prefix: str) -> None:
    client, topic = ClientSettings(kafka_address, {}), f"{topic_prefix}.event"
    creation = TopicCreation(default=TopicGroup(partitions=3))
    known = event_topics(client, creation)
    assert known.partitions(topic) == 3
    assert partition_counts(admin_client(client), [topic]) == {topic: 3}
    assert event_topics(client, creation) is known

    ensure_control_topic(admin_client(client), topic_prefix, 1)
    rows = keyed(("a", "1"), ("b", "2"), partition=2)
    headers = pa.array([[("id", b"x")], [("id", None)]], pa.map_(pa.string(), pa.binary()))
    times = pa.array([1_700_000_000_001, 1_700_000_000_002], pa.int64())
    records = batch_of(rows.columns, headers, (pa.array([topic] * 2), times))
    transaction = BucketWriter(client, topic_prefix, "job").open(0, 1, "1:d")
    assert transaction is not None
    with transaction:
        transaction.send([(topic, len(records))], records)
        transaction.commit()

    consumer = Consumer({"bootstrap.servers": kafka_address, "group.id": topic_prefix, "auto.offset.reset": "earliest"})
    with closing(consumer):
        consumer.assign([TopicPartition(topic, 2, 0)])
        messages = [message for _ in range(2) if (message := consumer.poll(timeout=120.0)) is not None]
    assert [(each.key(), each.timestamp()[1], each.headers()) for each in messages] == [
        (b"a", 1_700_000_000_001, [("id", b"x")]),
        (b"b", 1_700_000_000_002, [("id", None)]),
    ]

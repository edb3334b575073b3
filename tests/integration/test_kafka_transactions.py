"""The transactional writer against a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from incsnap.errors import ConfigError, SinkError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import committed_batch, control_topic, group_of, recorded_batch
from incsnap.kafka.producer import TransactionalProducer
from incsnap.kafka.refusals import SinkRefused
from incsnap.kafka.topics import admin_client, ensure_control_topic, ensure_topics
from incsnap.kafka.transaction import BucketWriter
from tests.support.kafka import keyed, read_all, records, unique

pytestmark = pytest.mark.servers


@pytest.fixture
def admin(kafka_address: str) -> AdminClient:
    return admin_client(ClientSettings(kafka_address))


@pytest.fixture
def writer(kafka_address: str, admin: AdminClient) -> Iterator[BucketWriter]:
    """A writer of a prefix of its own: two buckets, and a topic ``<prefix>.t`` of three partitions."""
    prefix = unique("txn")
    ensure_control_topic(admin, prefix, 2)
    ensure_topics(admin, [f"{prefix}.t"], 3)
    yield BucketWriter(ClientSettings(kafka_address), prefix, "job1")
    for answer in admin.delete_topics([control_topic(prefix), f"{prefix}.t"]).values():
        answer.result()


def send(writer: BucketWriter, batch: int, batch_records: pa.RecordBatch, bucket: int = 0) -> bool:
    transaction = writer.open(bucket, batch)
    if transaction is None:
        return False
    with transaction:
        transaction.send(f"{writer.prefix}.t", batch_records)
        transaction.commit()
    return True


def values(writer: BucketWriter, partitions: tuple[int, ...] = (0,)) -> list[bytes | None]:
    return [r.value for r in read_all(writer.client.bootstrap_servers, f"{writer.prefix}.t", partitions)]


def test_a_batch_that_is_replayed_is_skipped(writer: BucketWriter) -> None:
    assert send(writer, 1, keyed(("a", "1")))
    assert not send(writer, 1, keyed(("a", "1")))
    assert send(writer, 2, keyed(("a", "2")))
    assert not send(writer, 2, keyed(("a", "2")))
    assert values(writer) == [b"1", b"2"]


def test_buckets_and_jobs_count_their_batches_apart(writer: BucketWriter) -> None:
    assert send(writer, 1, keyed(("a", "1")))
    assert send(writer, 1, keyed(("b", "2")), bucket=1)
    assert send(replace(writer, job_id="job2"), 1, keyed(("a", "3")))
    assert values(writer) == [b"1", b"2", b"3"]


def test_a_zombie_in_the_middle_is_fenced_and_leaves_nothing(writer: BucketWriter) -> None:
    zombie = writer.open(0, 1)
    assert zombie is not None
    zombie.send(f"{writer.prefix}.t", keyed(("a", "zombie")))
    assert send(writer, 1, keyed(("a", "heir")))
    with pytest.raises(SinkError, match="Another writer took over") as caught, zombie:
        zombie.commit()
    assert caught.value.resumable
    assert values(writer) == [b"heir"]
    assert committed_batch(writer.client, writer.prefix, writer.job_id, 0, 10) == 1


def test_an_aborted_transaction_shows_nothing_and_counts_for_nothing(writer: BucketWriter) -> None:
    def fail_half_way() -> None:
        transaction = writer.open(0, 1)
        assert transaction is not None
        with transaction:
            transaction.send(f"{writer.prefix}.t", keyed(("a", "half")))
            raise RuntimeError("the task dies")

    with pytest.raises(RuntimeError, match="the task dies"):
        fail_half_way()
    assert values(writer) == []
    assert send(writer, 1, keyed(("a", "whole")))
    assert values(writer) == [b"whole"]


def test_a_transaction_left_open_by_a_dead_writer_is_ended_by_the_next(writer: BucketWriter) -> None:
    dead = writer.open(0, 1)
    assert dead is not None
    dead.send(f"{writer.prefix}.t", keyed(("a", "dead")))
    dead._producer.close()
    assert send(writer, 1, keyed(("a", "alive")))
    assert values(writer) == [b"alive"]


def test_when_the_brokers_forgot_the_offset_the_control_record_still_knows(
    writer: BucketWriter, admin: AdminClient
) -> None:
    for batch in range(1, 5):
        assert send(writer, batch, keyed(("a", str(batch))))
    assert send(replace(writer, job_id="other"), 9, keyed(("a", "9")))
    group = group_of(writer.prefix, writer.job_id)
    admin.delete_consumer_groups([group])[group].result()
    assert recorded_batch(writer.client, writer.prefix, writer.job_id, 0, 10, first_look=1) == 4
    assert recorded_batch(writer.client, writer.prefix, "unknown", 0, 10, first_look=1) is None
    assert not send(writer, 4, keyed(("a", "4")))
    assert send(writer, 5, keyed(("a", "5")))
    assert values(writer) == [b"1", b"2", b"3", b"4", b"9", b"5"]


def test_headers_tombstones_null_keys_and_empty_values_arrive_in_order(writer: BucketWriter) -> None:
    lines = records(
        (0, b"k1", b"c1"),
        (0, b"k1", b"d1", None, b'{"id":2}'),
        (0, b"k1", None),
        (0, b"k2", b"c2", b'{"id":1}', None),
        (0, None, b"keyless"),
        (0, b"", b""),
        (0, b"k3", b"\x00\xff\x00"),
        (0, b"k4", b"last", b"o", b"n"),
    )
    assert send(writer, 1, lines)
    found = read_all(writer.client.bootstrap_servers, f"{writer.prefix}.t")
    assert [(r.key, r.value, r.headers) for r in found] == [
        (b"k1", b"c1", ()),
        (b"k1", b"d1", (("__debezium.newkey", b'{"id":2}'),)),
        (b"k1", None, ()),
        (b"k2", b"c2", (("__debezium.oldkey", b'{"id":1}'),)),
        (None, b"keyless", ()),
        (b"", b"", ()),
        (b"k3", b"\x00\xff\x00", ()),
        (b"k4", b"last", (("__debezium.oldkey", b"o"), ("__debezium.newkey", b"n"))),
    ]


def test_each_record_goes_to_its_own_partition_in_order(writer: BucketWriter) -> None:
    count = 5_000
    whole = records(*[(i % 3, str(i).encode(), str(i).encode(), *([b"o"] if i % 7 == 0 else [])) for i in range(count)])
    # A slice: offsets into the columns do not begin at 0.
    assert send(writer, 1, whole.slice(100))
    found = read_all(writer.client.bootstrap_servers, f"{writer.prefix}.t", (0, 1, 2))
    for partition in range(3):
        expected = [str(i).encode() for i in range(100, count) if i % 3 == partition]
        assert [r.key for r in found if r.partition == partition] == expected
        assert [r.value for r in found if r.partition == partition] == expected


def test_a_full_queue_is_waited_for_and_order_holds(writer: BucketWriter) -> None:
    tight = replace(writer, client=replace(writer.client, producer={"queue.buffering.max.messages": "100"}))
    count = 3_000
    lines = [(0, b"k", str(i).encode(), *([b"o"] if i % 50 == 0 else [])) for i in range(count)]
    assert send(tight, 1, records(*lines))
    assert values(writer) == [str(i).encode() for i in range(count)]


def test_a_record_too_large_for_the_client_is_refused_by_name(writer: BucketWriter) -> None:
    with pytest.raises(SinkRefused, match=r"large.*topic .*\.t, key big") as caught:
        send(writer, 1, keyed(("small", "1"), ("big", "x" * 1_100_000)))
    assert "max.message.bytes" in caught.value.hint
    assert not caught.value.resumable
    assert values(writer) == []


def test_a_record_too_large_for_the_topic_is_refused_by_name(writer: BucketWriter, admin: AdminClient) -> None:
    topic = f"{writer.prefix}.small"
    answers = admin.create_topics([NewTopic(topic, 1, 1, config={"max.message.bytes": "2000"})])
    answers[topic].result()
    plain = replace(writer, client=replace(writer.client, producer={"compression.type": "none"}))

    def send_big() -> None:
        transaction = plain.open(0, 1)
        assert transaction is not None
        with transaction:
            transaction.send(topic, keyed(("big", "x" * 5_000)))
            transaction.commit()

    with pytest.raises(SinkRefused, match=r"large.*small, key big"):
        send_big()
    assert committed_batch(writer.client, writer.prefix, writer.job_id, 0, 10) is None
    admin.delete_topics([topic])[topic].result()


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(ConfigError, match=r"linger\.millis"):
        TransactionalProducer(ClientSettings("localhost:1", {"linger.millis": "3"}).for_producer("x"))


def test_the_committed_number_is_an_ordinary_group_offset(writer: BucketWriter, admin: AdminClient) -> None:
    assert send(writer, 7, keyed(("a", "1")), bucket=1)
    assert committed_batch(writer.client, writer.prefix, writer.job_id, 1, 10) == 7
    assert committed_batch(writer.client, writer.prefix, writer.job_id, 0, 10) is None
    (record,) = read_all(writer.client.bootstrap_servers, control_topic(writer.prefix), (1,))
    assert record.value == b'{"job": "job1", "bucket": 1, "batch": 7}'


def test_an_older_copy_of_a_checkpoint_is_refused_and_not_skipped(writer: BucketWriter) -> None:
    assert send(writer, 5, keyed(("a", "1")))

    with pytest.raises(SinkRefused, match="has sent batch 5"):
        writer.open(0, 4)

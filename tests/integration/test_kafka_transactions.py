"""The transactional writer against a real broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.envelope.added_fields import HEADERS
from incsnap.envelope.records import RECORDS
from incsnap.errors import ConfigError, SinkError
from incsnap.kafka import topic_limits
from incsnap.kafka import transaction as transactions
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import CommittedBatch, committed_batch, control_topic, group_of, recorded_batch
from incsnap.kafka.outgoing_messages import NUMBER
from incsnap.kafka.producer import TransactionalProducer
from incsnap.kafka.producer_cache import ProducerCache
from incsnap.kafka.refusals import OversizedRecord, RecordsTooLarge, SinkRefused
from incsnap.kafka.retries import STEP_SECONDS
from incsnap.kafka.topic_limits import TopicLimit, topic_limit
from incsnap.kafka.topics import admin_client, ensure_control_topic, ensure_topics, partition_counts
from incsnap.kafka.transaction import BucketWriter
from incsnap.tasks import blocks
from incsnap.tasks.bucket import write_bucket
from incsnap.tasks.left_out import SizeRule
from tests.support.kafka import keyed, read_all, records, unique
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers
Move = Callable[[int], None]


@pytest.fixture
def admin(kafka_address: str) -> AdminClient:
    return admin_client(ClientSettings(kafka_address))


@pytest.fixture
def writer(kafka_address: str, admin: AdminClient) -> Iterator[BucketWriter]:
    """Yield a writer with its own prefix, two buckets, and a topic `<prefix>.t` of three partitions."""
    prefix = unique("txn")
    ensure_control_topic(admin, prefix, 2)
    ensure_topics(admin, [f"{prefix}.t"], 3)
    yield BucketWriter(ClientSettings(kafka_address), prefix, "job1")
    for answer in admin.delete_topics([control_topic(prefix), f"{prefix}.t"], request_timeout=30).values():
        answer.result()


@pytest.fixture(autouse=True)
def move(monkeypatch: pytest.MonkeyPatch) -> Iterator[Move]:
    """Call it with a number: what follows is done by that process, each with its own kept producers."""
    processes: dict[int, ProducerCache] = {}

    def to(process: int) -> None:
        monkeypatch.setattr(transactions, "PRODUCERS", processes.setdefault(process, ProducerCache()))

    to(0)
    yield to
    for producers in processes.values():
        producers.close()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The transactional id of each producer that was opened."""
    ids: list[str] = []

    class Counted(TransactionalProducer):
        def __init__(self, settings: Mapping[str, str]) -> None:
            ids.append(settings["transactional.id"])
            super().__init__(settings)

    monkeypatch.setattr(transactions, "TransactionalProducer", Counted)
    return ids


def send(
    writer: BucketWriter, batch: int, batch_records: pa.RecordBatch, bucket: int = 0, digest: str = "2:same"
) -> bool:
    transaction = writer.open(bucket, batch, digest)
    if transaction is None:
        return False
    with transaction:
        transaction.send([(f"{writer.prefix}.t", len(batch_records))], batch_records)
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


def test_records_of_many_topics_are_sent_at_once(writer: BucketWriter, topic_prefix: str) -> None:
    servers = writer.client.bootstrap_servers
    names = [f"{topic_prefix}.many{number}" for number in range(3)]
    ensure_topics(admin_client(writer.client), names, 2)
    rows = [(1, b"a", b"0"), (0, b"b", b"1"), (1, b"c", b"2"), (0, b"d", None), (0, b"e", b"4"), (1, b"f", b"5")]
    transaction = writer.open(0, 1, "2:same")
    assert transaction is not None
    with transaction:
        transaction.send([(names[0], 3), (names[1], 1), (names[2], 2)], records(*rows))
        transaction.commit()
    sent = [
        (name, partition, record.key, record.value)
        for name in names
        for partition in (0, 1)
        for record in read_all(servers, name, (partition,))
    ]
    assert sent == [
        (names[0], 0, b"b", b"1"),
        (names[0], 1, b"a", b"0"),
        (names[0], 1, b"c", b"2"),
        (names[1], 0, b"d", None),
        (names[2], 0, b"e", b"4"),
        (names[2], 1, b"f", b"5"),
    ]


def test_buckets_and_jobs_count_their_batches_apart(writer: BucketWriter) -> None:
    assert send(writer, 1, keyed(("a", "1")))
    assert send(writer, 1, keyed(("b", "2")), bucket=1)
    assert send(replace(writer, job_id="job2"), 1, keyed(("a", "3")))
    assert values(writer) == [b"1", b"2", b"3"]


def test_a_zombie_in_the_middle_is_fenced_and_leaves_nothing(writer: BucketWriter) -> None:
    zombie = writer.open(0, 1, "2:same")
    assert zombie is not None
    zombie.send([(f"{writer.prefix}.t", 1)], keyed(("a", "zombie")))
    assert send(writer, 1, keyed(("a", "heir")))
    with pytest.raises(SinkError, match="Another writer took over") as caught, zombie:
        zombie.commit()
    assert caught.value.resumable
    assert values(writer) == [b"heir"]
    assert committed_batch(writer.client, writer.prefix, writer.job_id, 0, 60) == CommittedBatch(1, "2:same")


def test_an_aborted_transaction_shows_nothing_and_counts_for_nothing(writer: BucketWriter) -> None:
    def fail_half_way() -> None:
        transaction = writer.open(0, 1, "2:same")
        assert transaction is not None
        with transaction:
            transaction.send([(f"{writer.prefix}.t", 1)], keyed(("a", "half")))
            raise RuntimeError("the task dies")

    with pytest.raises(RuntimeError, match="the task dies"):
        fail_half_way()
    assert values(writer) == []
    assert send(writer, 1, keyed(("a", "whole")))
    assert values(writer) == [b"whole"]


def test_a_transaction_left_open_by_a_dead_writer_is_ended_by_the_next(writer: BucketWriter) -> None:
    dead = writer.open(0, 1, "2:same")
    assert dead is not None
    dead.send([(f"{writer.prefix}.t", 1)], keyed(("a", "dead")))
    dead._producer.close()
    assert send(writer, 1, keyed(("a", "alive")))
    assert values(writer) == [b"alive"]


def test_the_control_record_replaces_an_expired_offset(writer: BucketWriter, admin: AdminClient) -> None:
    for batch in range(1, 5):
        assert send(writer, batch, keyed(("a", str(batch))))
    assert send(replace(writer, job_id="other"), 9, keyed(("a", "9")))
    group = group_of(writer.prefix, writer.job_id)
    admin.delete_consumer_groups([group], request_timeout=30)[group].result()
    assert recorded_batch(writer.client, writer.prefix, writer.job_id, 0, 60, first_look=1) == CommittedBatch(
        4, "2:same"
    )
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
    sent = read_all(writer.client.bootstrap_servers, f"{writer.prefix}.t")
    assert [(r.key, r.value, r.headers) for r in sent] == [
        (b"k1", b"c1", ()),
        (b"k1", b"d1", (("__debezium.newkey", b'{"id":2}'),)),
        (b"k1", None, ()),
        (b"k2", b"c2", (("__debezium.oldkey", b'{"id":1}'),)),
        (None, b"keyless", ()),
        (b"", b"", ()),
        (b"k3", b"\x00\xff\x00", ()),
        (b"k4", b"last", (("__debezium.oldkey", b"o"), ("__debezium.newkey", b"n"))),
    ]


def test_headers_that_a_transform_adds_stand_behind_the_others(writer: BucketWriter) -> None:
    lines = records((0, b"k1", b"v1", b"o", None), (0, b"k2", b"v2"), (0, b"k3", None))
    added = pa.array([[("a", b"1"), ("b", None), ("a", b"")], None, [("a", b"\x00")]], HEADERS.type)
    batch = pa.RecordBatch.from_arrays([*lines.columns, added], schema=RECORDS.append(HEADERS))
    assert send(writer, 1, batch)
    sent = read_all(writer.client.bootstrap_servers, f"{writer.prefix}.t")
    assert [(r.key, r.headers) for r in sent] == [
        (b"k1", (("__debezium.oldkey", b"o"), ("a", b"1"), ("b", None), ("a", b""))),
        (b"k2", ()),
        (b"k3", (("a", b"\x00"),)),
    ]


@pytest.mark.parametrize("most", [{}, {"queue.buffering.max.messages": "100"}], ids=["room", "full queue"])
def test_thousands_of_records_with_equal_headers_arrive_in_order(writer: BucketWriter, most: dict[str, str]) -> None:
    count = 4_100
    lines = [(i % 2, str(i).encode(), str(i).encode(), *([b"o"] if i == 6 else [])) for i in range(count)]
    lines[3], lines[4] = (1, None, b"keyless"), (0, b"4", None)
    lines[8] = (0, b"", b"")
    shared = [("run", b"7"), ("task", None), ("place", b"")]
    added = pa.array([shared] * count, HEADERS.type)
    batch = pa.RecordBatch.from_arrays([*records(*lines).columns, added], schema=RECORDS.append(HEADERS))
    assert send(replace(writer, client=replace(writer.client, producer=most)), 1, batch)
    sent = read_all(writer.client.bootstrap_servers, f"{writer.prefix}.t", (0, 1))
    for partition in range(2):
        expected = [line[1:3] for line in lines if line[0] == partition]
        assert [(r.key, r.value) for r in sent if r.partition == partition] == expected
    (moved,) = [r for r in sent if r.key == b"6"]
    assert moved.headers == (("__debezium.oldkey", b"o"), *shared)
    assert {r.headers for r in sent if r is not moved} == {tuple(shared)}


def test_each_record_goes_to_its_own_partition_in_order(writer: BucketWriter) -> None:
    count = 5_000
    whole = records(*[(i % 3, str(i).encode(), str(i).encode(), *([b"o"] if i % 7 == 0 else [])) for i in range(count)])
    # A slice: offsets into the columns do not begin at 0.
    assert send(writer, 1, whole.slice(100))
    sent = read_all(writer.client.bootstrap_servers, f"{writer.prefix}.t", (0, 1, 2))
    for partition in range(3):
        expected = [str(i).encode() for i in range(100, count) if i % 3 == partition]
        assert [r.key for r in sent if r.partition == partition] == expected
        assert [r.value for r in sent if r.partition == partition] == expected


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
    answers = admin.create_topics([NewTopic(topic, 1, 1, config={"max.message.bytes": "2000"})], request_timeout=30)
    answers[topic].result()
    plain = replace(writer, client=replace(writer.client, producer={"compression.type": "none"}))

    def send_big() -> None:
        transaction = plain.open(0, 1, "2:same")
        assert transaction is not None
        with transaction:
            transaction.send([(topic, 1)], keyed(("big", "x" * 5_000)))
            transaction.commit()

    with pytest.raises(SinkRefused, match=r"large.*small, key big"):
        send_big()
    assert committed_batch(writer.client, writer.prefix, writer.job_id, 0, 60) is None
    admin.delete_topics([topic], request_timeout=30)[topic].result()


def numbered(*pairs: tuple[str, str]) -> pa.RecordBatch:
    return keyed(*pairs).append_column(NUMBER, pa.array(range(len(pairs)), pa.int64()))


@pytest.fixture
def narrow(writer: BucketWriter, admin: AdminClient) -> Iterator[str]:
    """A topic that takes batches of 2,000 bytes."""
    topic = f"{writer.prefix}.narrow"
    ensure_topics(admin, [topic], 1, 1, {"max.message.bytes": "2000"})
    yield topic
    admin.delete_topics([topic], request_timeout=30)[topic].result()


@pytest.mark.parametrize("size", [1_100_000, 5_000])
def test_the_error_names_the_record_that_is_too_large(writer: BucketWriter, narrow: str, size: int) -> None:
    plain = replace(writer, client=replace(writer.client, producer={"compression.type": "none"}))

    def send_numbered() -> None:
        transaction = plain.open(0, 1, "2:same")
        assert transaction is not None
        with transaction:
            transaction.send([(narrow, 3)], numbered(("a", "1"), ("big", "x" * size), ("c", "3")))
            transaction.commit()

    with pytest.raises(RecordsTooLarge) as caught:
        send_numbered()
    # A broker refuses all that is in one batch with the record.
    assert OversizedRecord(1, narrow, size + 3, by_client=size > 1_000_000) in caught.value.records


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(ConfigError, match=r"linger\.millis"):
        TransactionalProducer(ClientSettings("localhost:1", {"linger.millis": "3"}).for_producer("x"))


def test_the_committed_number_is_an_ordinary_group_offset(writer: BucketWriter, admin: AdminClient) -> None:
    assert send(writer, 7, keyed(("a", "1")), bucket=1)
    assert committed_batch(writer.client, writer.prefix, writer.job_id, 1, 60) == CommittedBatch(7, "2:same")
    assert committed_batch(writer.client, writer.prefix, writer.job_id, 0, 60) is None
    (record,) = read_all(writer.client.bootstrap_servers, control_topic(writer.prefix), (1,))
    assert record.value == b'{"job": "job1", "bucket": 1, "batch": 7, "digest": "2:same"}'


def test_an_older_copy_of_a_checkpoint_is_refused_and_not_skipped(writer: BucketWriter) -> None:
    assert send(writer, 5, keyed(("a", "1")))

    with pytest.raises(SinkRefused, match="has sent batch 5"):
        writer.open(0, 4, "2:same")


def test_another_batch_of_the_same_number_is_refused_and_not_skipped(writer: BucketWriter, admin: AdminClient) -> None:
    assert send(writer, 5, keyed(("a", "1")), digest="2:one")

    with pytest.raises(SinkRefused, match=r"has sent batch 5 .* ends it elsewhere") as caught:
        writer.open(0, 5, "2:other")
    assert "second job" in caught.value.hint
    group = group_of(writer.prefix, writer.job_id)
    admin.delete_consumer_groups([group], request_timeout=30)[group].result()
    with pytest.raises(SinkRefused, match="ends it elsewhere"):
        writer.open(0, 5, "2:other")
    assert writer.open(0, 5, "2:one") is None
    assert writer.open(0, 5, "3:form-of-another-release") is None


def test_a_digest_of_any_length_comes_back_as_it_was_committed(writer: BucketWriter) -> None:
    for batch in range(1, 41):
        digest = "2:" + "x" * (batch % 23)
        assert send(writer, batch, keyed(), digest=digest)
        committed = committed_batch(writer.client, writer.prefix, writer.job_id, 0, 60)
        assert committed == CommittedBatch(batch, digest)


def test_the_next_batches_go_on_with_the_producer_of_the_first(writer: BucketWriter, opened: list[str]) -> None:
    for batch in (1, 2, 7):
        assert send(writer, batch, keyed(("a", str(batch))))
        assert send(writer, batch, keyed(("b", str(batch))), bucket=1)

    assert opened == [f"incsnap-{writer.prefix}-0", f"incsnap-{writer.prefix}-1"]
    assert values(writer) == [b"1", b"1", b"2", b"2", b"7", b"7"]
    assert committed_batch(writer.client, writer.prefix, writer.job_id, 0, 60) == CommittedBatch(7, "2:same")


def test_a_bucket_that_moves_between_processes_loses_and_repeats_nothing(
    writer: BucketWriter, move: Move, opened: list[str]
) -> None:
    for batch, process in enumerate((0, 1, 1, 0, 2, 0), start=1):
        move(process)
        assert send(writer, batch, keyed(("a", str(batch))))

    assert values(writer) == [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert len(opened) == 5


def test_a_batch_that_another_process_has_committed_is_skipped_by_a_kept_producer(
    writer: BucketWriter, move: Move
) -> None:
    assert send(writer, 1, keyed(("a", "1")))
    move(1)
    assert send(writer, 2, keyed(("a", "2")))
    move(0)
    assert not send(writer, 2, keyed(("a", "2")))
    assert send(writer, 3, keyed(("a", "3")))
    assert values(writer) == [b"1", b"2", b"3"]


def test_a_zombie_with_a_kept_producer_is_fenced_and_leaves_nothing(writer: BucketWriter, move: Move) -> None:
    assert send(writer, 1, keyed(("a", "1")))
    zombie = writer.open(0, 2, "2:same")
    assert zombie is not None
    zombie.send([(f"{writer.prefix}.t", 1)], keyed(("a", "zombie")))
    move(1)
    assert send(writer, 2, keyed(("a", "heir")))
    move(0)
    with pytest.raises(SinkError, match="Another writer took over") as caught, zombie:
        zombie.commit()
    assert caught.value.resumable
    assert values(writer) == [b"1", b"heir"]


def test_a_second_driver_on_the_checkpoint_is_refused_although_the_producer_was_kept(
    writer: BucketWriter, move: Move
) -> None:
    assert send(writer, 1, keyed(("a", "1")), digest="2:common")
    move(1)
    assert not send(writer, 1, keyed(("a", "1")), digest="2:common")
    assert send(writer, 2, keyed(("a", "theirs")), digest="2:theirs")
    move(0)
    with pytest.raises(SinkRefused, match="ends it elsewhere"):
        send(writer, 2, keyed(("a", "ours")), digest="2:ours")
    with pytest.raises(SinkRefused, match="ends it elsewhere"):
        send(writer, 2, keyed(("a", "ours")), digest="2:ours")
    assert values(writer) == [b"1", b"theirs"]


def test_a_producer_whose_transaction_was_given_up_is_not_kept(writer: BucketWriter, opened: list[str]) -> None:
    assert send(writer, 1, keyed(("a", "1")))
    transaction = writer.open(0, 2, "2:same")
    assert transaction is not None
    transaction.send([(f"{writer.prefix}.t", 1)], keyed(("a", "half")))
    transaction.abort()
    assert send(writer, 2, keyed(("a", "2")))
    assert len(opened) == 2
    assert values(writer) == [b"1", b"2"]


def test_a_kept_producer_sends_to_partitions_that_its_topic_was_given_meanwhile(
    writer: BucketWriter, admin: AdminClient, opened: list[str]
) -> None:
    topic = f"{writer.prefix}.t"
    assert send(writer, 1, keyed(("a", "1")))
    admin.create_partitions([NewPartitions(topic, 6)], request_timeout=30)[topic].result()
    # The controller answers before the broker knows the partitions.
    wait_until(lambda: partition_counts(admin, [topic]) == {topic: 6})
    assert send(writer, 2, keyed(("a", "2"), partition=5))
    assert values(writer, (5,)) == [b"2"]


def test_a_topic_that_was_deleted_under_a_kept_producer_is_named_soon(writer: BucketWriter, admin: AdminClient) -> None:
    topic = f"{writer.prefix}.gone"
    ensure_topics(admin, [topic], 1)
    assert _sent_to(writer, 1, topic)
    admin.delete_topics([topic], request_timeout=30)[topic].result(30)
    wait_until(lambda: not partition_counts(admin, [topic]))

    began = time.monotonic()
    with pytest.raises(SinkError, match=f"the topic {topic} no longer exists"):
        _sent_to(writer, 2, topic)
    # librdkafka alone would try until the time for a commit is up, which is half a minute.
    assert time.monotonic() - began < STEP_SECONDS / 2

    ensure_topics(admin, [topic], 1)
    assert _sent_to(writer, 2, topic)
    assert [read.value for read in read_all(writer.client.bootstrap_servers, topic)] == [b"2"]
    admin.delete_topics([topic], request_timeout=30)[topic].result(30)


def _sent_to(writer: BucketWriter, batch: int, topic: str) -> bool:
    transaction = writer.open(0, batch, f"1:{batch}")
    if transaction is None:
        return False
    with transaction:
        transaction.send([(topic, 1)], keyed(("a", str(batch))))
        transaction.commit()
    return True


def test_small_records_are_sent_in_batches_that_the_topic_takes(
    writer: BucketWriter, narrow: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(topic_limits, "_batch_bytes", {})
    plain = replace(writer, client=replace(writer.client, producer={"compression.type": "none"}))
    rows = blocks.events(1, 0, 0, narrow, "d.t", keyed(*((f"k{i}", "x" * 300) for i in range(40))))
    task = iter([blocks.to_arrow([rows], "2:d")])
    counts = write_bucket(task, WindowBuffers(str(tmp_path)), plain, lambda topic: 1, SizeRule(plain.client))
    assert counts.events == 40
    assert len(read_all(writer.client.bootstrap_servers, narrow)) == 40


def test_the_limits_of_client_and_topic_are_known_to_the_byte(
    writer: BucketWriter, narrow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_limits, "_UNKNOWN_SECONDS", 0.0)
    wait_until(lambda: topic_limit(writer.client, narrow) == TopicLimit(2000))
    small = replace(writer, client=replace(writer.client, producer={"message.max.bytes": "5000"}))
    largest = small.client.largest_record
    assert send(small, 1, keyed(("k", "x" * (largest - 1))))
    with pytest.raises(SinkRefused, match="large"):
        send(small, 2, keyed(("k", "x" * largest)))

"""What the topics show about how far they came, on real servers: after a failover, and with new partitions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from incsnap.events import StreamPosition
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.mysql import catalog, watermarks
from incsnap.tables import TableId
from incsnap.tasks.formats import format_of
from incsnap.verify import both_sides
from incsnap.verify.allowance import Allowance
from incsnap.verify.both_sides import LiveSides
from incsnap.verify.changed_keys import TopicChanged, place_in_log
from incsnap.verify.evidence import Evidence
from incsnap.verify.proof import Reached
from incsnap.verify.record_reading import RecordForm, for_table
from incsnap.verify.table_side import VerifiedTable
from incsnap.verify.topic_side import PartitionPart, RecordsRemoved, messages_of
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.planned_job import settings_of

pytestmark = pytest.mark.servers

_SOURCE = '{"version":"3","snapshot":"%s","file":"%s","pos":%d,"row":0}'
_RECORD = '{"before":null,"after":{"id":%d},"source":' + _SOURCE + ',"op":"%s"}'
_PARTITIONS = 2


class Topic:
    """A table `t` with its topic, and the sides that read both."""

    def __init__(self, mysql: MySqlAddress, kafka: str, prefix: str, database: str) -> None:
        self.table = TableId(database, "t")
        self.name, self.connection = f"{prefix}.{self.table}", connect(mysql)
        self.run(f"CREATE TABLE {self.table.sql} (id INT PRIMARY KEY)")
        self._admin, self._producer = AdminClient({"bootstrap.servers": kafka}), Producer({"bootstrap.servers": kafka})
        topic = NewTopic(self.name, num_partitions=_PARTITIONS, replication_factor=1)
        self._admin.create_topics([topic], request_timeout=30)[self.name].result()
        settings = for_table(settings_of(mysql, kafka, prefix, database))
        shape = catalog.shapes_of(self.connection, [self.table])[self.table]
        form = RecordForm.of(format_of(settings, shape), settings.formats)
        verified = VerifiedTable(shape, self.name, _PARTITIONS, form)
        self.delivered: list[StreamPosition] = []  # what a job or connector has written down
        evidence = cast("Evidence", SimpleNamespace(shown=lambda: iter(self.delivered)))
        client = ClientSettings(kafka)
        self.sides = LiveSides(self.connection, settings, client, {self.name: [verified]}, evidence, Allowance())
        self.sides.ends = dict.fromkeys(((self.name, number) for number in range(_PARTITIONS)), 0)

    def run(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    def send(self, partition: int, number: int, place: tuple[str, int], snapshot: str = "false") -> None:
        """Write the record of a row that was inserted at `place`, or that a snapshot of this place has read."""
        value = _RECORD % (number, snapshot, *place, "c" if snapshot == "false" else "r")
        self._producer.produce(self.name, value, f'{{"id":{number}}}', partition)
        assert self._producer.flush(30) == 0

    def add_partition(self) -> None:
        partitions = [NewPartitions(self.name, _PARTITIONS + 1)]
        self._admin.create_partitions(partitions, request_timeout=30)[self.name].result()

    def remove_before(self, partition: int, offset: int) -> None:
        """Remove the records before `offset`, as retention does."""
        place = TopicPartition(self.name, partition, offset)
        (removed,) = self._admin.delete_records([place], request_timeout=30).values()
        removed.result()

    def reached(self, number: int) -> Reached:
        """How far the partition of a key came, as a round sees it."""
        key = (self.name, b'{"id":%d}' % number)
        self.sides.low()
        self.sides.select([key])
        return self.sides.topic([key]).reached(key)

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def topic(mysql_address: MySqlAddress, kafka_address: str, topic_prefix: str, database: str) -> Iterator[Any]:
    with closing(Topic(mysql_address, kafka_address, topic_prefix, database)) as made:
        yield made


def test_a_place_that_the_servers_binlog_does_not_have_yet_is_of_another_server(topic: Topic) -> None:
    here = watermarks.high_watermark(topic.connection)
    for partition in range(_PARTITIONS):
        topic.send(partition, partition, here)
    assert topic.reached(0) == Reached(place_in_log(*here), place_in_log(*here))

    # The old primary was at a later file than the new one, from whose binlog nothing has come since.
    for partition in range(_PARTITIONS):
        topic.send(partition, partition, ("binlog.900000", 120))
    assert topic.reached(0) == Reached(None, None)


def test_rows_of_a_first_snapshot_under_way_show_nothing_until_its_last_row_is_there(topic: Topic) -> None:
    here = watermarks.high_watermark(topic.connection)
    topic.send(0, 0, here, "first")
    topic.send(1, 1, here, "true")
    assert topic.reached(1) == Reached(None, place_in_log(*here))
    assert topic.reached(9) == Reached(None, None)

    topic.send(0, 2, here, "last")
    assert topic.reached(9) == Reached(None, place_in_log(*here))


def test_a_topic_that_gets_more_partitions_meanwhile_is_not_judged(topic: Topic) -> None:
    topic.send(0, 1, watermarks.high_watermark(topic.connection))
    topic.reached(1)
    topic.add_partition()

    with pytest.raises(TopicChanged, match="has 3 partitions now, 2 when it was read"):
        topic.reached(1)


def test_a_topic_that_loses_its_oldest_records_while_it_is_read_is_not_judged(topic: Topic, kafka_address: str) -> None:
    for number in range(3):
        topic.send(0, number, ("binlog.000001", 120))
    part = PartitionPart(topic.name, 0, 0, 3)
    assert [len(messages) for _, messages in messages_of(ClientSettings(kafka_address), [part])] == [3]
    topic.remove_before(0, 2)

    with pytest.raises(RecordsRemoved, match="the record of offset 0 is gone"):
        list(messages_of(ClientSettings(kafka_address), [part]))
    rest = PartitionPart(topic.name, 0, 2, 3)
    assert [len(messages) for _, messages in messages_of(ClientSettings(kafka_address), [rest])] == [1]


def test_records_are_read_up_to_an_open_transaction_and_over_aborted_ones(topic: Topic, kafka_address: str) -> None:
    settings = {"bootstrap.servers": kafka_address}
    place = ("binlog.000001", 120)
    topic.send(0, 0, place)
    aborted, waiting = (Producer({**settings, "transactional.id": f"{topic.name}-{name}"}) for name in "ab")
    for producer in (aborted, waiting):
        producer.init_transactions(30)
        producer.begin_transaction()
    aborted.produce(topic.name, b"gone", b"k", 0)
    aborted.flush(30)
    aborted.abort_transaction(30)
    topic.send(0, 1, place)
    client = ClientSettings(kafka_address)
    # Two records of one partition, one that was aborted, and a marker.
    end = end_behind(client, topic, 4)
    waiting.produce(topic.name, b"open", b"k", 0)
    waiting.flush(30)
    topic.send(0, 2, place)

    assert end_behind(client, topic, 4) == end
    assert keys_up_to(client, topic, end) == [b'{"id":0}', b'{"id":1}']
    waiting.abort_transaction(30)
    assert keys_up_to(client, topic, end_behind(client, topic, 7)) == [b'{"id":0}', b'{"id":1}', b'{"id":2}']


def test_what_was_delivered_counts_once_its_transactions_can_be_read(
    topic: Topic, kafka_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(both_sides, "_UNDECIDED_SECONDS", 0.2)
    topic.run(f"INSERT INTO {topic.table.sql} VALUES {','.join(f'({number})' for number in range(20))}")
    writer = Producer({"bootstrap.servers": kafka_address, "transactional.id": topic.name})
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(topic.name, b"waits", b"k", 0)
    writer.flush(30)
    topic.delivered = [StreamPosition(watermarks.executed(topic.connection), "", 0)]

    # The keys are in both partitions, and partition 0 cannot be read to its end.
    reached = {number: topic.reached(number).strong for number in range(20)}
    assert set(reached.values()) == {None, both_sides._EVERYTHING}
    writer.abort_transaction(30)
    monkeypatch.setattr(both_sides, "_UNDECIDED_SECONDS", 30.0)
    assert {topic.reached(number).strong for number in range(20)} == {both_sides._EVERYTHING}


def end_behind(client: ClientSettings, topic: Topic, least: int) -> int:
    """Return the end of partition 0 once it is at `least` or behind. Kafka writes markers behind its answer."""
    while (end := topic_ends(client, {topic.name: _PARTITIONS})[topic.name, 0]) < least:
        time.sleep(0.01)
    return end


def keys_up_to(client: ClientSettings, topic: Topic, end: int) -> list[bytes | None]:
    part = PartitionPart(topic.name, 0, 0, end)
    return [each.key() for _, messages in messages_of(client, [part]) for each in messages]


def test_a_key_that_moved_with_the_number_of_partitions_waits_for_both(topic: Topic) -> None:
    topic.run(f"INSERT INTO {topic.table.sql} VALUES {','.join(f'({number})' for number in range(20))}")
    here = watermarks.high_watermark(topic.connection)
    for number in range(20):
        topic.send(0, number, here)

    reached = {number: topic.reached(number).strong for number in range(20)}
    # Half of the keys belong into partition 1, which shows nothing.
    assert set(reached.values()) == {None, place_in_log(*here)}

"""Deletions without their tombstones, as `incsnap verify` sees them on a real Kafka."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.config.load import from_properties
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.kafka.topics import admin_client, ensure_topics
from incsnap.mysql.catalog import shape_of
from incsnap.tables import TableId
from incsnap.tasks.formats import format_of
from incsnap.verify import topic_side
from incsnap.verify.allowance import Allowance
from incsnap.verify.both_sides import LiveSides
from incsnap.verify.evidence import Evidence
from incsnap.verify.record_reading import RecordForm
from incsnap.verify.rounds import Limits, settle
from incsnap.verify.table_side import VerifiedTable
from lab.addresses import MySqlAddress
from tests.support.kafka import unique
from tests.support.properties import QUIET

pytestmark = pytest.mark.servers

_KEY = b'{"id":1}'


class Topic:
    """A topic of one partition, of a table whose row 1 was inserted and deleted, and the sides of verify."""

    def __init__(self, connection: Connection[Any], mysql: MySqlAddress, kafka: str, database: str) -> None:
        prefix = unique("lost")
        settings = from_properties(
            {
                **QUIET,
                **mysql.properties(),
                "topic.prefix": prefix,
                "bootstrap.servers": kafka,
                "key.converter": "JsonConverter",
                "value.converter": "JsonConverter",
                "key.converter.schemas.enable": "false",
                "value.converter.schemas.enable": "false",
            }
        ).settings
        self._client, self._kafka = ClientSettings(kafka), kafka
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
            cursor.execute("INSERT INTO t VALUES (1)")
            cursor.execute("SHOW BINARY LOG STATUS")
            self._file, self._pos = cursor.fetchone()[:2]
            cursor.execute("DELETE FROM t")
        shape = shape_of(connection, TableId(database, "t"))
        assert shape is not None
        format_ = format_of(settings, shape)
        self.name = format_.topic
        ensure_topics(admin_client(self._client), [self.name], 1)
        table = VerifiedTable(shape, self.name, 1, RecordForm.of(format_, settings.formats))
        evidence = Evidence(self._client, prefix, None)
        self.sides = LiveSides(connection, settings, self._client, {self.name: [table]}, evidence, Allowance())
        self.sides.ends = topic_ends(self._client, {self.name: 1})

    def deletion(self) -> bytes:
        """Return the record of the DELETE."""
        source = {"snapshot": "false", "file": self._file, "pos": self._place_of_deletion(), "row": 0}
        value = {"before": {"id": 1}, "after": None, "source": source, "op": "d", "ts_ms": 1}
        return json.dumps(value, separators=(",", ":")).encode()

    def _place_of_deletion(self) -> int:
        low = self.sides.low()
        self.sides.select([])
        events = self.sides.events(low, low.end._replace(pos=self._pos), self.sides.high(), [(self.name, _KEY)])
        return events.last[self.name, _KEY].pos

    def send(self, *values: bytes | None, key: bytes = _KEY, transaction: str = "") -> None:
        """Send records of the key. `transaction`: `commit` or `abort`."""
        more = {"transactional.id": unique("writer")} if transaction else {}
        producer = Producer({"bootstrap.servers": self._kafka, **more})
        if transaction:
            producer.init_transactions(30)
            producer.begin_transaction()
        for value in values:
            producer.produce(self.name, key=key, value=value)
        producer.flush(30)
        if transaction:
            getattr(producer, f"{transaction}_transaction")(30)

    def outcome(self) -> Any:
        """Return what verify proves about the key: verdict, whether by weak evidence, and why nothing is proved."""
        limits = Limits(wait_seconds=0.0, again_seconds=0.0)
        outcome = settle(self.sides, [(self.name, _KEY)], limits)[self.name, _KEY]
        return outcome.judgement.verdict.value, outcome.judgement.weak, outcome.unproved


@pytest.fixture
def topic(
    connection: Connection[Any], cursor: Cursor, mysql_address: MySqlAddress, kafka_address: str, database: str
) -> Topic:
    return Topic(connection, mysql_address, kafka_address, database)


def test_a_tombstone_that_is_lost_behind_the_last_record_is_a_difference(topic: Topic) -> None:
    """The connector may still send it, so the evidence is weak, and the key is looked at again."""
    topic.send(topic.deletion())
    assert topic.outcome() == ("different", True, "")
    topic.send(None)
    assert topic.outcome() == ("equal", False, "")


@pytest.mark.parametrize("tail", [1, 1_000])
def test_only_a_record_behind_a_deletion_proves_that_its_tombstone_is_lost(
    topic: Topic, tail: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the marker of its transaction nor an aborted transaction is a record."""
    monkeypatch.setattr(topic_side, "_TAIL_OFFSETS", tail)
    topic.send(topic.deletion(), transaction="commit")
    topic.send(None, transaction="abort")
    assert topic.outcome() == ("different", True, "")
    topic.send(b"{}", key=b'{"id":2}', transaction="commit")
    assert topic.outcome() == ("different", False, "")


def test_a_record_that_was_read_with_the_whole_topic_counts(topic: Topic) -> None:
    topic.send(topic.deletion(), transaction="commit")
    topic.outcome()
    topic.send(b"{}", key=b'{"id":2}', transaction="commit")
    topic.sides.ends = topic_ends(ClientSettings(topic._kafka), {topic.name: 1})
    assert topic.outcome() == ("different", False, "")

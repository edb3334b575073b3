"""The keys of a connector's records behind its offset: the take-over joins records by the bytes of their keys."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from pymysql.connections import Connection

from incsnap.envelope.avro_format import framed_id
from incsnap.errors import ConfigError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.registry import Registry
from incsnap.kafka.topics import admin_client, ensure_topics
from incsnap.mysql.catalog import shape_of
from incsnap.tables import TableId
from incsnap.takeover.join import Joined, join
from incsnap.takeover.offset_place import STOP_CLEANLY
from incsnap.tasks.formats import format_of
from lab.addresses import MySqlAddress
from tests.integration.test_taken_over_records import Topic, places_of_rows, settings_for, topic, written

pytestmark = pytest.mark.servers

__all__ = ["topic"]

_KEY = b'{"id":1}'
_WITH_SCHEMAS = {
    "key__converter": "org.apache.kafka.connect.json.JsonConverter",
    "key__converter__schemas__enable": "true",
}


def with_schema(topic: Topic, type_: str) -> bytes:
    """Return the row's key as JSON with its schema."""
    fields = [{"type": type_, "optional": False, "field": "id"}]
    schema = {"type": "struct", "fields": fields, "optional": False, "name": f"{topic.name}.Key"}
    return json.dumps({"schema": schema, "payload": {"id": 1}}, separators=(",", ":")).encode()


class Stage:
    """A table with one row behind the offset, and its topic, which has this row."""

    def __init__(self, mysql: MySqlAddress, connection: Connection[Any], topic: Topic, partitions: int) -> None:
        self.mysql, self.connection, self.topic, self.table = mysql, connection, topic, f"{topic.database}.t"
        ensure_topics(admin_client(ClientSettings(topic.kafka, {})), [topic.name], partitions)
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {self.table} (id INT PRIMARY KEY)")
        self.insert(1)

    def insert(self, number: int) -> None:
        """Insert a row behind the offset."""
        self.offset, events = written(self.connection, f"INSERT INTO {self.table} VALUES ({number})")
        self.place = places_of_rows(events)[0]

    def write(self, key: bytes, partition: int | None = None) -> int:
        """Write the row's record with this key, and return its partition: by default the one that Java chooses."""
        source: dict[str, object] = {"version": "3.6.1.Final", "connector": "mysql", "name": self.topic.prefix}
        source |= {"snapshot": "false", "gtid": "", "file": self.offset.file, "pos": self.place, "row": 0}
        value = {"before": None, "after": {"id": 1}, "source": source, "op": "c", "ts_ms": 1}
        producer = Producer({"bootstrap.servers": self.topic.kafka, "partitioner": "murmur2_random"})
        partitions: list[int] = []
        producer.produce(
            self.topic.name,
            json.dumps(value, separators=(",", ":")).encode(),
            key,
            -1 if partition is None else partition,
            on_delivery=lambda _, message: partitions.append(message.partition() or 0),
        )
        assert producer.flush(30) == 0
        return partitions[0]

    def join(self, **settings: str) -> Joined:
        """Take the topic over."""
        return join(settings_for(self.mysql, self.topic, **settings), self.offset)


@pytest.fixture
def stage(mysql_address: MySqlAddress, connection: Connection[Any], topic: Topic) -> Stage:
    """Return a table whose topic has four partitions."""
    return Stage(mysql_address, connection, topic, 4)


def test_a_record_in_a_partition_that_its_key_does_not_choose_is_refused(stage: Stage) -> None:
    chosen = stage.write(_KEY)
    assert [each.partition for each in stage.join().place.seam.ends] == [chosen]

    other = stage.write(_KEY, (chosen + 1) % 4)
    with pytest.raises(ConfigError, match=f"offset 0 of {stage.topic.name} into partition {other}") as refused:
        stage.join()
    assert refused.value.hint == STOP_CLEANLY


@pytest.mark.parametrize("schemas", ["false", "true"])
def test_a_key_in_another_form_than_the_files_is_refused(stage: Stage, schemas: str) -> None:
    stage.write(_KEY if schemas == "true" else with_schema(stage.topic, "int32"))

    with pytest.raises(ConfigError, match=f"{stage.topic.name}: .* has a key of another form") as refused:
        stage.join(**{**_WITH_SCHEMAS, "key__converter__schemas__enable": schemas})
    assert "--worker" in refused.value.hint


def test_the_schema_within_a_key_must_be_the_jobs_because_it_chooses_the_partition(
    stage: Stage, connection: Connection[Any]
) -> None:
    stage.write(with_schema(stage.topic, "int32"))
    assert len(stage.join(**_WITH_SCHEMAS).place.seam.ends) == 1

    stage.write(with_schema(stage.topic, "int64"))
    with pytest.raises(ConfigError, match="has a key of another form"):
        stage.join(**_WITH_SCHEMAS)

    # The connector has written it before this statement.
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {stage.table} COMMENT 'altered'")
    assert stage.join(**_WITH_SCHEMAS).place.seam.ends


def test_the_schema_within_a_key_chooses_nothing_in_a_topic_of_one_partition(
    mysql_address: MySqlAddress, connection: Connection[Any], topic: Topic
) -> None:
    stage = Stage(mysql_address, connection, topic, 1)
    stage.write(with_schema(topic, "int64"))

    assert len(stage.join(**_WITH_SCHEMAS).place.seam.ends) == 1


def test_the_id_before_a_key_is_looked_up_and_not_registered(stage: Stage, registry_url: str) -> None:
    subject = f"{stage.topic.name}-key"
    avro = {
        "key__converter": "io.confluent.connect.avro.AvroConverter",
        "key__converter__schema__registry__url": registry_url,
        "schema__name__adjustment__mode": "avro",
    }
    schema = {"type": "record", "name": "X", "fields": [{"name": "id", "type": "int"}]}
    other = Registry(registry_url, {}).register(f"{subject}-other", json.dumps(schema))
    stage.write(framed_id(other) + b"\x02")

    with pytest.raises(ConfigError, match="has a key of another form"):
        stage.join(**avro)
    with SchemaRegistryClient({"url": registry_url, "timeout": 10}) as client:
        assert subject not in client.get_subjects()

    settings = settings_for(stage.mysql, stage.topic, **avro)
    shape = shape_of(stage.connection, TableId.parse(stage.table))
    assert shape is not None
    key = format_of(settings, shape).key
    assert key is not None
    stage.insert(2)
    stage.write(key.keys([pa.array([2], pa.int64())])[0].as_py())
    assert len(stage.join(**avro).place.seam.ends) == 1

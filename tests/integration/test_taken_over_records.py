"""The records of a connector before and behind its offset, as a take-over reads them in the topics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.taken_over import write_taken_over
from incsnap.config.settings import Settings
from incsnap.envelope.partitioner import partition
from incsnap.envelope.seam import RecordPlace
from incsnap.errors import ConfigError
from incsnap.events import file_number
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, ensure_topics
from incsnap.mysql.watermarks import executed, high_watermark, server_uuid
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.join import join
from incsnap.takeover.offset_place import STOP_CLEANLY
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.planned_job import PlannedJob, settings_of
from tests.support.purging import purge_binlog

pytestmark = pytest.mark.servers

#: Settings of rows without envelopes that show the place of their event, and not their row in it.
UNWRAPPED = {
    "transforms": "unwrap",
    "transforms__unwrap__type": "io.debezium.transforms.ExtractNewRecordState",
    "transforms__unwrap__add__headers": "op,source.file,source.pos",
}


@dataclass
class Topic:
    """The topic of the table `t`, to which a connector has written."""

    kafka: str  #: address of Kafka
    prefix: str  #: topic.prefix
    database: str  #: database of the table
    _at: int = field(default=0, init=False)

    @property
    def name(self) -> str:
        """The topic's name."""
        return f"{self.prefix}.{self.database}.t"

    def envelope(
        self, op: str, gtid: str, file: str, pos: int, *, key: bytes | None = b'{"id":1}', tombstone: bool = True
    ) -> None:
        """Write the record of the row 1, as Debezium does; behind that of a deletion comes a tombstone."""
        source: dict[str, object] = {"version": "3.6.1.Final", "connector": "mysql", "name": self.prefix}
        source |= {"snapshot": "false", "gtid": gtid, "file": file, "pos": pos, "row": 0}
        before, after = (None, {"id": 1}) if op == "c" else ({"id": 1}, None)
        value = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1}
        self._send(key, json.dumps(value, separators=(",", ":")).encode())
        if op == "d" and tombstone:
            self.tombstone(key)

    def tombstone(self, key: bytes | None) -> None:
        """Write a tombstone."""
        self._send(key, None)

    def row(self, file: str, pos: int, *, row: int = 0, key: bytes | None = b'{"id":1}') -> None:
        """Write a row without envelope, with its place in headers."""
        headers = {"__op": b"c", "__source_file": file.encode(), "__source_pos": str(pos).encode()}
        headers["__source_row"] = str(row).encode()
        self._send(key, b'{"id":1}', headers)

    def _send(self, key: bytes | None, value: bytes | None, headers: Mapping[str, bytes] | None = None) -> None:
        producer = Producer({"bootstrap.servers": self.kafka, "partitioner": "murmur2_random"})
        producer.produce(self.name, value, key, headers=list((headers or {}).items()))
        assert producer.flush(30) == 0


@pytest.fixture
def topic(kafka_address: str, topic_prefix: str, database: str) -> Topic:
    """Return the topic of the table `t` in the database of the test."""
    return Topic(kafka_address, topic_prefix, database)


def settings_for(mysql: MySqlAddress, topic: Topic, **more: str) -> Settings:
    """Return the settings of a job that takes the topic over. `more`: as in `settings_of`."""
    return settings_of(mysql, topic.kafka, topic.prefix, topic.database, **more)


def written(connection: Connection[Any], *statements: str) -> tuple[ConnectorOffset, list[tuple[str, int]]]:
    """Execute the statements. Return the offset before them, and (kind, position) of each event since then."""
    offset = ConnectorOffset(executed(connection), *high_watermark(connection))
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        cursor.execute(f"SHOW BINLOG EVENTS IN '{offset.file}' FROM {offset.pos}")
        return offset, [(str(row[2]), int(row[1])) for row in cursor.fetchall()]


def places_of_rows(events: list[tuple[str, int]]) -> list[int]:
    """Return the positions of the rows events."""
    return [pos for kind, pos in events if kind.startswith(("Write_rows", "Update_rows", "Delete_rows"))]


def test_a_deletion_as_the_last_record_before_the_offset_is_no_repetition(
    mysql_address: MySqlAddress, connection: Connection[Any], database: str, topic: Topic
) -> None:
    table = f"{database}.t"
    create = f"CREATE TABLE {table} (id INT PRIMARY KEY)"
    _, events = written(connection, create, f"INSERT INTO {table} VALUES (1)", f"DELETE FROM {table}")
    offset = ConnectorOffset(executed(connection), *high_watermark(connection))
    delivered = f"{server_uuid(connection)}:1"
    created, deleted = places_of_rows(events)
    topic.envelope("c", delivered, offset.file, created)
    topic.envelope("d", delivered, offset.file, deleted)

    joined = join(settings_for(mysql_address, topic), offset)

    assert not joined.warnings
    assert joined.place.seam.ends == ()


def key_of(number: int) -> bytes:
    """Return the bytes of a key."""
    return b'{"id":%d}' % number


def other_key(*, partition_of_1: bool) -> int:
    """Return another key than 1 of a topic with two partitions: one in the partition of 1, or in the other one."""
    first, *others = partition(pa.array(map(key_of, (1, *range(10, 40))), pa.binary()), 2)
    return 10 + [each == first for each in others].index(partition_of_1)


_NEAR, _FAR = other_key(partition_of_1=True), other_key(partition_of_1=False)


# The records of a row have the letters d, t (tombstone) and c, and a row that is not deleted has c.
@pytest.mark.parametrize(
    ("statement", "present", "tombstones", "missing"),
    [
        ("DELETE FROM {} WHERE id = 1", "d", "true", [("t", 1)]),
        ("DELETE FROM {} WHERE id = 1", "dt", "true", []),
        ("DELETE FROM {} WHERE id = 1", "d", "false", []),
        ("DELETE FROM {} WHERE id < 3", "d", "true", [("d", 2), ("t", 1), ("t", 2)]),
        (f"UPDATE {{}} SET id = {_NEAR} WHERE id = 1", "d", "true", [("c", _NEAR), ("t", 1)]),
        (f"UPDATE {{}} SET id = {_NEAR} WHERE id = 1", "dt", "true", [("c", _NEAR)]),
        (f"UPDATE {{}} SET id = {_NEAR} WHERE id = 1", "dtc", "true", []),
        (f"UPDATE {{}} SET id = {_FAR} WHERE id = 1", "d", "false", [("c", _FAR)]),
        (f"UPDATE {{}} SET id = {_FAR} WHERE id = 1", "dt", "true", [("c", _FAR)]),
        (f"UPDATE {{}} SET id = {_FAR} WHERE id = 1", "dc", "true", [("t", 1)]),
        (f"UPDATE {{}} SET id = {_FAR} WHERE id = 1", "dtc", "true", []),
        (f"INSERT INTO {{}} VALUES ({_FAR})", "c", "true", []),
    ],
)
def test_of_the_row_before_the_offset_what_the_topics_lack_is_sent(
    mysql_address: MySqlAddress,
    connection: Connection[Any],
    database: str,
    topic: Topic,
    tmp_path: Path,
    statement: str,
    present: str,
    tombstones: str,
    missing: list[tuple[str, int]],
) -> None:
    table = f"{database}.t"
    ensure_topics(admin_client(ClientSettings(topic.kafka, {})), [topic.name], 2)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO {table} VALUES (1), (2)")
    before, events = written(connection, statement.format(table), f"INSERT INTO {table} VALUES (99)")
    place = places_of_rows(events)[0]
    for letter in present:
        if letter == "t":
            topic.tombstone(key_of(1))
        else:
            number = 1 if letter == "d" else _NEAR if str(_NEAR) in statement else _FAR
            topic.envelope(letter, "", before.file, place, key=key_of(number), tombstone=False)
    # Behind the GTID come BEGIN, the table map and the rows event. The first row is done, for its first record.
    done = [kind for kind, _ in events].index("Table_map")
    settings = settings_for(mysql_address, topic, tombstones__on__delete=tombstones)
    joined = join(settings, replace(before, event=done, row=1))
    assert not joined.warnings
    write_taken_over(Files(str(tmp_path)), joined.place)
    with closing(PlannedJob(settings, str(tmp_path))) as job:
        job.batches_until(lambda: ("c", 99) in operations(job, topic), "last row")

        assert sorted(operations(job, topic)) == sorted([*missing, ("c", 99)])


def operations(job: PlannedJob, topic: Topic) -> list[tuple[str, int]]:
    """Return operation and key of each record that a job has sent; the operation of a tombstone is t."""
    return [(each.value["op"] if each.value else "t", each.key["id"]) for each in job.of(topic.name)]


def test_rows_without_envelope_within_an_xa_transaction_do_not_come_again(
    mysql_address: MySqlAddress, connection: Connection[Any], database: str, topic: Topic
) -> None:
    table, name = f"{database}.t", f"'{database}'"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    insert = f"INSERT INTO {table} VALUES (1), (2), (3), (4)"
    before, events = written(connection, f"XA START {name}", insert, f"XA END {name}", f"XA PREPARE {name}")
    try:
        (begin,) = places_of_rows(events)
        end = next(pos for _, pos in events if pos > begin)
        for row in range(3):
            topic.row(before.file, begin, row=row)
        unwrapped = {**UNWRAPPED, "transforms__unwrap__add__headers": "op,source.file,source.pos,source.row"}

        # Debezium sees no beginning of the transaction. So its place is the end of the rows event.
        joined = join(settings_for(mysql_address, topic, **unwrapped), replace(before, pos=end, row=1))
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"XA ROLLBACK {name}")

    assert [(each.end.pos, each.end.row) for each in joined.place.seam.ends] == [(begin, 2)]


@pytest.mark.parametrize("key", [b'{"id":1}', None], ids=["with a key", "without a key"])
def test_a_compressed_transaction_at_the_offset_needs_a_heartbeat_behind_it(
    mysql_address: MySqlAddress, connection: Connection[Any], database: str, topic: Topic, key: bytes | None
) -> None:
    table = f"{database}.t"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id INT{' PRIMARY KEY' if key else ''})")
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
    try:
        insert = f"INSERT INTO {table} VALUES"
        before, events = written(connection, "BEGIN", f"{insert} (1)", f"{insert} (2)", "COMMIT")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION binlog_transaction_compression = OFF")
    payload = next(pos for kind, pos in events if kind == "Transaction_payload")
    topic.envelope("c", "", before.file, payload, key=key)
    settings = settings_for(mysql_address, topic)
    # A clean stop leaves such an offset: BEGIN, two table maps and a rows event are done, and a row of the next event.
    within = replace(before, pos=payload, event=4, row=1)

    with pytest.raises(ConfigError, match=rf"{topic.name} .*of (a|the) compressed transaction") as refused:
        join(settings, within)
    assert "set heartbeat.interval.ms" in refused.value.hint

    # A heartbeat has the offset behind the transaction. Debezium counts the payload as an event behind COMMIT.
    joined = join(settings, ConnectorOffset(executed(connection), *high_watermark(connection), event=1))
    assert not joined.warnings
    assert (joined.place.seam.ends, joined.place.seam.keyless) == ((), ())


@pytest.mark.parametrize("queries", ["OFF", "ON"])
def test_rows_before_a_clean_stop_do_not_come_twice_if_they_do_not_show_their_number(
    mysql_address: MySqlAddress, connection: Connection[Any], database: str, topic: Topic, queries: str
) -> None:
    table = f"{database}.t"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
        cursor.execute(f"SET SESSION binlog_rows_query_log_events = {queries}")
    before, events = written(connection, f"INSERT INTO {table} VALUES (1), (2)")
    (place,) = places_of_rows(events)
    begin = next(pos for kind, pos in events if kind == "Query")
    for number in (1, 2):
        topic.row(before.file, place, key=b'{"id":%d}' % number)
    settings = settings_for(mysql_address, topic, **UNWRAPPED)

    # BEGIN, the statement and the table map are done, and two rows of the next event.
    done = 3 if queries == "ON" else 2
    joined = join(settings, replace(before, pos=begin, event=done, row=2))
    assert joined.place.seam.least == RecordPlace(file_number(before.file), place, 2)
    assert not joined.warnings

    joined = join(settings, replace(before, pos=begin, event=done, row=1))
    assert [text for text in joined.warnings if "1 records that the connector has sent come twice" in text]


def test_rows_without_a_key_and_without_their_number_come_twice_with_a_warning(
    mysql_address: MySqlAddress, connection: Connection[Any], database: str, topic: Topic
) -> None:
    table = f"{database}.t"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id INT)")
    offset, events = written(connection, f"INSERT INTO {table} VALUES (1)")
    (place,) = places_of_rows(events)
    topic.row(offset.file, place, key=None)

    joined = join(settings_for(mysql_address, topic, **UNWRAPPED), offset)

    assert [text for text in joined.warnings if "1 records that the connector has sent come twice" in text]
    assert f"The topics go on up to {offset.file}:{place}" in " ".join(joined.lines)


def test_rows_of_a_snapshot_that_do_not_show_it_are_refused_until_the_connector_has_sent_a_change(
    mysql_address: MySqlAddress, connection: Connection[Any], database: str, topic: Topic
) -> None:
    table = f"{database}.t"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    settings = settings_for(
        mysql_address, topic, **{**UNWRAPPED, "transforms__unwrap__add__headers": "source.file,source.pos,source.row"}
    )
    offset = ConnectorOffset(executed(connection), *high_watermark(connection))
    topic.row(offset.file, offset.pos)

    with pytest.raises(ConfigError, match=f"{topic.name} has rows of a snapshot, .*add.headers=op,") as refused:
        join(settings, offset)

    assert "let it send a change" in refused.value.hint
    written(connection, f"INSERT INTO {table} VALUES (1)")
    assert join(settings, ConnectorOffset(executed(connection), *high_watermark(connection))).place.seam.ends == ()


@pytest.mark.parametrize("key", [b'{"id":3}', None], ids=["with a key", "without a key"])
def test_a_row_without_envelope_of_another_server_is_refused_although_a_later_row_is_of_this_one(
    mysql_address: MySqlAddress, connection: Connection[Any], database: str, topic: Topic, key: bytes | None
) -> None:
    ensure_topics(admin_client(ClientSettings(topic.kafka, {})), [topic.name], 4)
    table = f"{database}.t"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    offset, events = written(connection, f"INSERT INTO {table} VALUES (1)", f"INSERT INTO {table} VALUES (2)")
    places = places_of_rows(events)
    unwrapped = {**UNWRAPPED, "transforms__unwrap__add__headers": "op,source.file,source.pos,source.row"}
    settings = settings_for(mysql_address, topic, **unwrapped)
    topic.row(offset.file, places[1])
    join(settings, offset)
    # This server has no rows event here. The keys 1 and 3 choose different partitions.
    topic.row(offset.file, places[0] + 1, key=key)

    with pytest.raises(ConfigError, match=f"does not have {offset.file}:{places[0] + 1}[,:]") as refused:
        join(settings, offset)

    assert refused.value.hint == STOP_CLEANLY


def test_a_row_without_envelope_in_a_purged_file_is_before_the_offset(
    own_mysql: MySqlAddress, kafka_address: str, topic_prefix: str
) -> None:
    topic = Topic(kafka_address, topic_prefix, "purged_rows")
    with closing(connect(own_mysql)) as root, root.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS purged_rows")
        cursor.execute("CREATE DATABASE purged_rows")
        create = "CREATE TABLE purged_rows.t (id INT PRIMARY KEY)"
        _, events = written(root, create, "INSERT INTO purged_rows.t VALUES (1)")
        offset = ConnectorOffset(executed(root), *high_watermark(root))
        cursor.execute("FLUSH BINARY LOGS")
        purge_binlog(root)
    settings = settings_for(own_mysql, topic, **UNWRAPPED)
    (place,) = places_of_rows(events)
    topic.row(offset.file, place)
    assert f"{offset.file} is purged. The server still has all" in " ".join(join(settings, offset).lines)

    topic.row(offset.file, offset.pos + 100)
    with pytest.raises(ConfigError, match=f"does not have {offset.file}: the connector read another server"):
        join(settings, offset)

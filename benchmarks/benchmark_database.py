"""A database of the benchmark's own, with a signal table, on servers that may be somebody's."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from benchmarks.tables import Design
from incsnap.errors import ServerUnreachable
from incsnap.kafka.topics import creatable_together
from lab.mysql_client import connect
from lab.servers import Servers
from signals import send

_KAFKA_SECONDS = 30
#: As many as a broker deletes in that time.
_DELETED_TOGETHER = 500
#: Topics that a broker makes at least, beside other work.
_MADE_A_SECOND = 25
_SIGNALS = "incsnap_signal"
_NOT_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
)


class BenchmarkDatabase:
    """Use ``benchmark_database``. ``folder`` is for what the jobs keep."""

    def __init__(self, servers: Servers, database: str, folder: Path) -> None:
        self.servers, self.database, self.folder = servers, database, folder
        self.signals = f"{database}.{_SIGNALS}"
        self.connection = self.connect()

    def connect(self) -> Connection[Cursor]:
        """A new connection, autocommit on. It waits long: a procedure that writes a backlog takes a minute and more."""
        return connect(self.servers.mysql, read_timeout=900)

    def create(self, design: Design, name: str, rows: int) -> str:
        """The name with the database, of a new table with so many rows."""
        table = f"{self.database}.{name}"
        design.create(self.connection, table, rows)
        return table

    def execute_snapshot(self, tables: Sequence[str]) -> None:
        """Returns when the signal's row is committed."""
        send.to_table(self.connection, self.signals, send.new_id(), "execute-snapshot", send.snapshot_data(tables))


@contextlib.contextmanager
def benchmark_database(servers: Servers, folder: Path) -> Iterator[BenchmarkDatabase]:
    """The database is dropped when the block ends."""
    made = BenchmarkDatabase(servers, f"incsnap_bench_{os.getpid()}", folder)
    with made.connection, made.connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {made.database}")
        cursor.execute(f"CREATE DATABASE {made.database}")
        try:
            cursor.execute(
                f"CREATE TABLE {made.signals} (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data MEDIUMTEXT)"
            )
            yield made
        finally:
            with made.connect() as again:
                again.cursor().execute(f"DROP DATABASE IF EXISTS {made.database}")


@contextlib.contextmanager
def topics(
    kafka: str, prefix: str, tables: Mapping[str, int], config: Mapping[str, str] | None = None
) -> Iterator[dict[str, str]]:
    """The topic of each table, made with so many partitions for both sides alike.

    Every topic of the prefix is deleted when the block ends.
    """
    admin = AdminClient({"bootstrap.servers": kafka})
    names = {table: f"{prefix}.{table}" for table in tables}
    try:
        new = [NewTopic(names[table], partitions, 1, config=dict(config or {})) for table, partitions in tables.items()]
        for some in creatable_together(new, max(tables.values(), default=1)):
            for future in admin.create_topics(some, request_timeout=_KAFKA_SECONDS).values():
                future.result(_KAFKA_SECONDS)
        _wait_for_leaders(admin, kafka, {names[table]: partitions for table, partitions in tables.items()})
        yield names
    finally:
        ours = [name for name in admin.list_topics(timeout=_KAFKA_SECONDS).topics if name.startswith(prefix)]
        for begin in range(0, len(ours), _DELETED_TOGETHER):
            part = ours[begin : begin + _DELETED_TOGETHER]
            for future in admin.delete_topics(part, request_timeout=_KAFKA_SECONDS).values():
                # One that is gone already is no harm.
                with contextlib.suppress(KafkaException):
                    future.result(_KAFKA_SECONDS)


def _wait_for_leaders(admin: AdminClient, kafka: str, topics: Mapping[str, int]) -> None:
    """A new topic exists some milliseconds before its partitions can be read; the last of thousands, a minute."""
    deadline = time.monotonic() + _KAFKA_SECONDS + len(topics) / _MADE_A_SECOND
    while missing := _leaderless(admin, topics):
        if time.monotonic() > deadline:
            raise ServerUnreachable(f"{len(missing)} topics have no leader, {missing[0]} among them")
        time.sleep(0.05)
    # A leader that is known may still not know of it.
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "incsnap-bench"})
    try:
        for topic, partition in ((topic, number) for topic, count in topics.items() for number in range(count)):
            while True:
                try:
                    consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_KAFKA_SECONDS)
                    break
                except KafkaException as failure:
                    error: KafkaError = failure.args[0]
                    if not (error.retriable() or error.code() in _NOT_YET) or time.monotonic() > deadline:
                        raise
                    time.sleep(0.02)
    finally:
        consumer.close()


def _leaderless(admin: AdminClient, topics: Mapping[str, int]) -> list[str]:
    known = admin.list_topics(timeout=_KAFKA_SECONDS).topics
    led = {name: sum(each.leader >= 0 for each in known[name].partitions.values()) for name in known}
    return [name for name, count in topics.items() if led.get(name, 0) < count]

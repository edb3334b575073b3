"""A database for the benchmark, with a signal table, on servers that others may use too."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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
#: Topics that a broker can delete within 30 s.
_DELETED_TOGETHER = 500
#: Topics that a broker creates a second at the least, beside other work.
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
    """The database of a benchmark. Use `benchmark_database`. `folder` is for files of the jobs."""

    def __init__(self, servers: Servers, database: str, folder: Path) -> None:
        self.servers, self.database, self.folder = servers, database, folder
        self.signals = f"{database}.{_SIGNALS}"
        self.connection = self.connect()

    def connect(self) -> Connection[Cursor]:
        """Return a new connection with autocommit.

        Its read timeout is 900 s: writing a backlog takes more than a minute.
        """
        return connect(self.servers.mysql, read_timeout=900)

    def create(self, design: Design, name: str, rows: int) -> str:
        """Create a table with `rows` rows. Return its name with the database."""
        table = f"{self.database}.{name}"
        design.create(self.connection, table, rows)
        return table

    def execute_snapshot(self, tables: Sequence[str], chosen: Mapping[str, Any] | None = None) -> None:
        """Request a snapshot of `tables`. Return when the signal's row is committed.

        `chosen`: the fields that choose rows.
        """
        data = send.snapshot_data(tables, chosen=chosen)
        send.to_table(self.connection, self.signals, send.new_id(), "execute-snapshot", data)


@contextlib.contextmanager
def benchmark_database(servers: Servers, folder: Path) -> Iterator[BenchmarkDatabase]:
    """Create the database, and drop it when the block ends."""
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
    """Create a topic for each table, and yield the topics' names by table.

    `tables` maps each table to its number of partitions, so that all sides have equal topics. `config` is the
    configuration of each topic. At the end of the block every topic whose name begins with `prefix` is deleted.
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
                # Ignore topics that are already deleted.
                with contextlib.suppress(KafkaException):
                    future.result(_KAFKA_SECONDS)


def _wait_for_leaders(admin: AdminClient, kafka: str, topics: Mapping[str, int]) -> None:
    """Wait until the new topics can be read. That takes some milliseconds, and a minute for the last of thousands."""
    deadline = time.monotonic() + _KAFKA_SECONDS + len(topics) / _MADE_A_SECOND
    while missing := _leaderless(admin, topics):
        if time.monotonic() > deadline:
            raise ServerUnreachable(f"{len(missing)} topics have no leader, {missing[0]} among them")
        time.sleep(0.05)
    # A partition's leader may not know of the partition yet.
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

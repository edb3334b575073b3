"""The records that incsnap makes of the changes, without Spark and Kafka: by the planner's batches and their tasks.

The statements run once. Each configuration has its own job, which reads the changes meanwhile. The database has a
random name: `renamed` replaces it in records by the name in the golden files.
"""

from __future__ import annotations

import re
import secrets
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.config.topics import topics_of
from incsnap.envelope.snapshot_records import snapshot_records
from incsnap.envelope.sources import SourceConstants
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.mysql.catalog import shape_of
from incsnap.mysql.chunk_reader import read_chunk
from incsnap.mysql.column_defaults import shape_with_defaults
from incsnap.mysql.session import connect
from incsnap.planner import planner, stream_port
from incsnap.planner.planner import first_position
from incsnap.snapshot.notifications import ABORTED, COMPLETED
from incsnap.tables import TableId, quote
from incsnap.tasks import blocks, formats
from incsnap.tasks.formats import format_of
from incsnap.tasks.own_topics import by_topic
from incsnap.tasks.partitions import ReadyPart, SlicePart
from incsnap.tasks.slice_rows import slice_rows
from lab.addresses import MySqlAddress
from lab.mysql_client import connect as open_session
from lab.servers import Servers
from tests.golden.configurations import Configuration, Signal
from tests.golden.statements import DATABASE, execute, execute_all
from tests.golden.written_json import dump, parse
from tests.support.kafka import Read
from tests.support.planned_job import planner_at_hand

_NOW_US = 1_700_000_000_123_456
_SECONDS = 240
_DDL = re.compile(r"(/\*.*?\*/\s*)?(ALTER|CREATE|DROP|RENAME|TRUNCATE)\b", re.IGNORECASE)

Topics = dict[str, list[Read]]


class Schemas:
    """A schema registry that accepts every schema. It replaces the registry that the settings name."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def register(self, subject: str, schema: str) -> int:
        self._texts.append(schema)
        return len(self._texts)

    def text(self, number: int) -> str:
        return self._texts[number - 1]


@dataclass(frozen=True, slots=True)
class Stage:
    """A database with the tables of schema.sql, and the position behind their creation."""

    servers: Servers
    database: str
    start: StreamPosition
    schemas: Schemas

    def settings(self, configuration: Configuration) -> Settings:
        mysql = self.servers.mysql
        properties = {
            **mysql.properties(),
            # By default the id follows from the prefix, and another test run may use the same server and prefix.
            "database.server.id": str(100_000 + secrets.randbelow(1 << 30)),
            "bootstrap.servers": self.servers.kafka,
            "checkpoint.location": "unused",
            "snapshot.mode": "no_data",
            **configuration.properties(self.database),
        }
        return from_properties(properties, {}).settings

    def end(self) -> tuple[str, int]:
        ((file, pos, *_),) = self.query("SHOW BINARY LOG STATUS")
        return str(file), int(pos)

    def tables(self) -> list[str]:
        return [
            str(name)
            for (name,) in self.query(
                "SELECT table_name FROM information_schema.tables"
                f" WHERE table_schema = '{self.database}' AND table_type = 'BASE TABLE' ORDER BY table_name"
            )
        ]

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return _query(self.servers.mysql, sql)

    def renamed(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the record with the golden files' name of the database."""
        renamed_record: dict[str, Any] = parse(dump(record).replace(self.database, DATABASE))
        return renamed_record


@contextmanager
def stage(servers: Servers) -> Iterator[Stage]:
    """Create a database, and drop it at the end of the block."""
    # The name has no character that avro_unicode would replace.
    database, schemas, mysql = f"golden{secrets.token_hex(6)}", Schemas(), servers.mysql
    _query(mysql, f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
    try:
        execute_all(mysql, database, "schema.sql")
        ((file, pos, *_),) = _query(mysql, "SHOW BINARY LOG STATUS")
        ((executed, uuid),) = _query(mysql, "SELECT @@GLOBAL.gtid_executed, @@server_uuid")
        start = StreamPosition(GtidSet.parse(executed), file, pos, server_uuid=uuid)
        with (
            patch.object(formats, "_registry", lambda url, client, kind: schemas),
            # A job passes a statement that touches none of its tables at once. Otherwise it would wait ten seconds.
            patch.object(planner, "_MOVE_SECONDS", 0.0),
            patch.object(stream_port, "_IDLE_SECONDS", 0.02),
        ):
            yield Stage(servers, database, start, schemas)
    finally:
        for name in (database, f"{database}_outbox"):
            _query(mysql, f"DROP DATABASE IF EXISTS {name}")


def played(stage: Stage, configurations: Sequence[Configuration]) -> dict[str, Topics]:
    """Run changes.sql, and return the records of each configuration by topic.

    Jobs ask the server for definitions and defaults of tables. So before each statement that defines tables, jobs with
    such tables read all changes so far.
    """
    with ExitStack() as stack:
        jobs = {
            each.name: stack.enter_context(_job(stage, stage.settings(each), each.partitions))
            for each in configurations
        }

        # A job mostly waits, so all jobs run in threads.
        threads = stack.enter_context(ThreadPoolExecutor(len(jobs)))

        def read(among: Sequence[Configuration]) -> None:
            end = stage.end()
            for done in [threads.submit(jobs[each.name].until, end) for each in among]:
                done.result()

        # The first batch begins with the tables of schema.sql.
        for first in [threads.submit(job.batch) for job in jobs.values()]:
            first.result()
        for statement in execute(stage.servers.mysql, stage.database, "changes.sql"):
            if _DDL.match(statement):
                read([each for each in configurations if each.changes])
        read(configurations)
        for each in configurations:
            for signal in each.signals:
                jobs[each.name].ask(stage, signal)
        return {name: job.read() for name, job in jobs.items()}


def read_again(stage: Stage, settings: Settings, table: str) -> Topics:
    """Return the records of the table's rows as a chunk reads them; {} if the table cannot be read in chunks."""
    with closing(connect(settings.mysql)) as connection:
        shape = shape_of(connection, TableId(stage.database, table))
        if shape is None or not shape.key:
            return {}
        shape = shape_with_defaults(connection, shape, definitions=settings.columns.needs_definitions)
        format_ = format_of(settings, shape)
        order = ", ".join(quote(shape.columns[index].name) for index in shape.key)
        tail = f"FROM {shape.id.sql} ORDER BY {order}"
        columns = read_chunk(connection, shape, tail, max_bytes=1 << 28, timeout_seconds=60, needed=format_.view.needed)
    source = SourceConstants("binlog.000001", 4, _NOW_US, 1)
    partitions = dict.fromkeys(topics_of(settings, shape.id), 1)
    by_bucket = snapshot_records(format_, columns, source, partitions, 1, now_us=_NOW_US)
    topic = topics_of(settings, shape.id)[0].replace(stage.database, DATABASE)
    return {topic: [read for records in by_bucket.values() for read in _reads(records)]}


class _Job:
    """A job without Spark: it calls the planner as Spark would, and runs the tasks of each batch itself."""

    def __init__(self, stage: Stage, settings: Settings, partitions: int, root: str) -> None:
        """Begin at the stage's start. `partitions`: how many each topic has that a row names."""
        self._settings, self._partitions = settings, partitions
        self._database = stage.database
        self.planner = planner_at_hand(settings, root)
        self._offset = replace(first_position(settings, buckets=1), stream=stage.start)
        self._topics: Topics = defaultdict(list)

    def until(self, end: tuple[str, int]) -> None:
        deadline = time.monotonic() + _SECONDS
        while not self._offset.stream.reached(*end):
            assert time.monotonic() < deadline, f"{end} is not reached in {_SECONDS} s, but {self._offset.stream}"
            self.batch()

    def ask(self, stage: Stage, signal: Signal) -> None:
        """Insert the rows of the signal, and run batches until its snapshot ends."""
        with closing(open_session(stage.servers.mysql)) as connection, connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {stage.database}.debezium_signal VALUES (%s, %s, %s)", signal.rows(stage.database)
            )
        deadline = time.monotonic() + _SECONDS
        while not any(
            note.id == signal.id and note.type in (COMPLETED, ABORTED) for note in self._offset.snapshot.notifications
        ):
            assert time.monotonic() < deadline, f"the snapshot of {signal.id} does not end in {_SECONDS} s"
            self.batch()

    def batch(self) -> None:
        offset = self.planner.plan(self._offset)
        rows: list[blocks.BlockRow] = []
        for part in self.planner.parts(self._offset, offset):
            if isinstance(part, ReadyPart):
                rows += part.rows
            elif isinstance(part, SlicePart):
                rows += slice_rows(part, self._settings, _NOW_US)
        for _, _, _, kind, topic, table, block in sorted(rows, key=lambda row: row[2]):
            if kind not in (blocks.EVENTS, blocks.TABLES):
                continue
            for whole in blocks.decode(block):
                for run, records in blocks.by_run(whole, blocks.runs_of(kind, topic, table, whole)):
                    for name, of_topic in by_topic(run.topic, records, lambda _: self._partitions):
                        self._topics[name.replace(self._database, DATABASE)] += _reads(of_topic)
        self.planner.committed(offset)
        self._offset = offset

    def read(self) -> Topics:
        """Return all records so far, one partition after the other, as a Kafka consumer reads them."""
        return {topic: sorted(reads, key=lambda read: read.partition) for topic, reads in self._topics.items()}


@contextmanager
def _job(stage: Stage, settings: Settings, partitions: int) -> Iterator[_Job]:
    with ExitStack() as stack:
        job = _Job(stage, settings, partitions, stack.enter_context(tempfile.TemporaryDirectory()))
        stack.callback(job.planner.close)
        yield job


def _reads(records: Any) -> list[Read]:
    none = [None] * len(records)
    added = records.column("headers").to_pylist() if "headers" in records.schema.names else none
    names = ("partition", "key", "value", "old_key", "new_key")
    rows = zip(*(records.column(name).to_pylist() for name in names), added, strict=True)
    return [
        Read(partition, 0, key, value, (*_moved(old, new), *(more or ())))
        for partition, key, value, old, new, more in rows
        if partition >= 0
    ]


def _moved(old: bytes | None, new: bytes | None) -> list[tuple[str, bytes]]:
    headers = (("__debezium.oldkey", old), ("__debezium.newkey", new))
    return [(name, data) for name, data in headers if data is not None]


def _query(address: MySqlAddress, sql: str) -> list[tuple[Any, ...]]:
    with closing(open_session(address)) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())

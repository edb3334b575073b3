"""A database with tables, a signal table and the topics of a job, and the comparison of the tables with the topics.

The demo and the end-to-end tests use it. They signal, write, and wait until the job has sent everything. At the end
they replay the topics and compare them with the tables.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pymysql
from confluent_kafka.admin import AdminClient
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.checkpoint.status import read_status
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.compare import Comparison, compare
from lab.lag_probe import LagProbe
from lab.listening import Follower, Notices
from lab.mysql_client import connect
from lab.replay import TopicReplay, replay
from lab.running_job import RunningJob, running_job, write_properties
from lab.table_designs import TableDesign
from signals import send


@dataclass(frozen=True, slots=True)
class TableProof:
    """The result for one table: its replayed topic, and the comparison with the server."""

    table: TableId  #: captured table
    replay: TopicReplay  #: the table's topic, as a consumer reads it
    comparison: Comparison  #: the topic's final rows against the table's

    def faults(self, snapshots: int) -> list[str]:
        """Return a line for each kind of fault.

        `snapshots` is how often snapshots of this table were requested. A key may have at most that many `r` records.
        """
        faults = self.comparison.faults() + self.replay.judgement.faults()
        if self.replay.most_reads() > snapshots:
            faults.append(f"a key was read {self.replay.most_reads()} times in {snapshots} snapshots")
        return [f"{self.table}: {fault}" for fault in faults]


class CapturedDatabase:
    """A database that a job captures. Use `captured_database`, which also removes it.

    `folder` holds the job's properties, log and checkpoint.
    """

    def __init__(self, mysql: MySqlAddress, kafka: str, database: str, prefix: str, folder: Path) -> None:
        self.mysql, self.kafka, self.database, self.prefix, self.folder = mysql, kafka, database, prefix, folder
        self.tables: list[tuple[TableDesign, TableId]] = []
        self.signals = TableId(database, "signals")
        self.log = folder / "job.log"
        self.checkpoint = folder / "checkpoint"
        self._marks = TableId(database, "marks")
        self._mark = 0
        self._connection = self.connect()
        with self._connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS `{database}`")
            cursor.execute(
                f"CREATE TABLE {self.signals.sql}"
                " (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data TEXT NULL)"
            )
            cursor.execute(f"CREATE TABLE {self._marks.sql} (id BIGINT PRIMARY KEY, version BIGINT NOT NULL)")

    def close(self) -> None:
        """Drop the database and delete the topics, so that a server named by the environment is left as it was."""
        self._connection.close()
        with contextlib.suppress(pymysql.MySQLError), self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS `{self.database}`")
        with contextlib.suppress(Exception):
            admin = AdminClient({"bootstrap.servers": self.kafka})
            ours = [name for name in admin.list_topics(timeout=10).topics if self.prefix in name]
            for future in admin.delete_topics(ours, request_timeout=10).values() if ours else ():
                with contextlib.suppress(Exception):
                    future.result()

    def connect(self) -> Connection[Cursor]:
        """Return a new connection with autocommit."""
        return connect(self.mysql)

    def create(self, design: TableDesign, rows: int) -> TableId:
        """Create another table of the database and fill it with `rows` rows."""
        table = design.create(self._connection, self.database, rows)
        self.tables.append((design, table))
        return table

    def topic(self, table: TableId) -> str:
        """Return the name of the topic of `table`."""
        return f"{self.prefix}.{table}"

    @property
    def notifications(self) -> str:
        """Return the name of the topic of notifications."""
        return f"{self.prefix}-notifications"

    def properties(self, overrides: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the job's settings. `overrides` replace single ones."""
        tables = [str(table) for _, table in self.tables] + [str(self._marks)]
        return {
            **self.mysql.properties(),
            "topic.prefix": self.prefix,
            "table.include.list": ",".join(table.replace(".", "\\.") for table in tables),
            "snapshot.mode": "no_data",
            "signal.enabled.channels": "source,kafka",
            "signal.data.collection": str(self.signals),
            "signal.kafka.topic": f"{self.prefix}-signal",
            "signal.kafka.bootstrap.servers": self.kafka,
            "notification.enabled.channels": "sink",
            "notification.sink.topic.name": self.notifications,
            "topic.creation.default.partitions": "2",
            "topic.creation.default.replication.factor": "1",
            "bootstrap.servers": self.kafka,
            "checkpoint.location": str(self.checkpoint),
            **(overrides or {}),
        }

    def connector(self, overrides: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the settings of a real connector on these tables, as its file has them for the job too.

        `overrides` replace single ones.
        """
        return {
            **self.properties(),
            "name": self.prefix,
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "tasks.max": "1",
            "database.server.id": "6124",
            "database.ssl.mode": "disabled",
            "driver.allowPublicKeyRetrieval": "true",
            "snapshot.mode": "initial",
            "signal.enabled.channels": "source",
            "schema.history.internal.kafka.bootstrap.servers": self.kafka,
            "schema.history.internal.kafka.topic": f"{self.prefix}.history",
            "poll.interval.ms": "50",
            **(overrides or {}),
        }

    @contextlib.contextmanager
    def job(self, overrides: Mapping[str, str] | None = None) -> Iterator[RunningJob]:
        """Run `incsnap run` with these settings until the block ends, which kills it, or until it is stopped."""
        path = write_properties(self.folder / "incsnap.properties", self.properties(overrides))
        with running_job(path, self.log, self.checkpoint) as job:
            yield job

    def has_windows_in_flight(self) -> bool:
        """Whether the job has planned a chunk whose last rows it has not released yet."""
        status = read_status(str(self.checkpoint))
        return status is not None and status.windows_in_flight > 0

    @contextlib.contextmanager
    def notices(self) -> Iterator[Notices]:
        """Yield the job's notifications, read from the first one on. The consumer is closed when the block ends."""
        with Follower(self.kafka, self.notifications) as follower:
            yield Notices(follower)

    def execute_by_row(self, name: str, tables: Sequence[TableId]) -> None:
        """Request snapshots of `tables` by a row of the signal table. `name` is the signal's id."""
        self.signal_by_row(name, "execute-snapshot", send.snapshot_data([str(table) for table in tables]))

    def signal_by_row(self, name: str, kind: str, data: Mapping[str, object]) -> None:
        """Write the signal `name` of type `kind` into the signal table."""
        with self.connect() as connection:
            send.to_table(connection, self.signals.sql, name, kind, data)

    def execute_by_message(self, name: str, tables: Sequence[TableId]) -> None:
        """Request snapshots of `tables` by a message on the signal topic. `name` is the signal's id."""
        data = send.snapshot_data([str(table) for table in tables])
        send.to_topic(self.kafka, f"{self.prefix}-signal", self.prefix, name, "execute-snapshot", data)

    @contextlib.contextmanager
    def lag_probe(self) -> Iterator[LagProbe]:
        """Measure the stream's lag from commit to consumer until the block ends."""
        with LagProbe(self.connect, self._marks, self.kafka, self.topic(self._marks)) as probe:
            yield probe

    def drain(self, job: RunningJob, seconds: float = 240.0, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Wait until `job` has sent all that is written now. The writers must have stopped.

        Two marker rows are written, one after the other. When the first mark arrives, the transaction of another bucket
        of the same batch may still be open. When the second arrives, a later batch has begun, so the first mark's batch
        is complete.
        """
        with (
            Follower(self.kafka, self.topic(self._marks)) as follower,
            self.connect() as connection,
            connection.cursor() as cursor,
        ):
            for _ in range(2):
                self._mark += 1
                cursor.execute(f"INSERT INTO {self._marks.sql} VALUES (%s, %s)", (-self._mark, 0))
                mark = b'{"id":-%d}' % self._mark

                def seen(mark: bytes = mark) -> bool:
                    meanwhile()
                    return any(message.key() == mark for message in follower.poll(0.2))

                job.wait_until("the last change was sent", seen, seconds, every=0.0)

    def verdicts(
        self, *, keep_times: bool = False, progress: Callable[[int], None] = lambda records: None
    ) -> list[TableProof]:
        """Replay all topics from the beginning and compare them with the tables. No other session may be writing."""
        replays = {self.topic(table): TopicReplay(keep_times=keep_times) for _, table in self.tables}
        replay(self.kafka, replays, progress=progress)
        with self.connect() as connection:
            return [
                TableProof(table, topic_replay, compare(connection, table, topic_replay.living, topic_replay.columns))
                for _, table in self.tables
                for topic_replay in [replays[self.topic(table)]]
            ]


@contextlib.contextmanager
def captured_database(
    mysql: MySqlAddress, kafka: str, database: str, prefix: str, folder: Path
) -> Iterator[CapturedDatabase]:
    """Create a captured database. Its database and its topics are removed when the block ends."""
    captured = CapturedDatabase(mysql, kafka, database, prefix, folder)
    try:
        yield captured
    finally:
        captured.close()

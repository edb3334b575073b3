"""The rules of `gap_rules` for whole tables, by Spark: which keys of tables and topics differ behind a gap.

Both sides become numbers: a hash of 64 bits for a row, and a small number for a deletion. One shuffle brings a key's
row and records together. A row that differs and has the same hash would not be found: one in 2**64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's name)

from incsnap.columns.arrow import RecordBatch
from incsnap.config.settings import Settings
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.planner.key_ranges import RangePart
from incsnap.tasks.chunk import aside
from incsnap.tasks.error_text import errors_of_tasks
from incsnap.tasks.formats import format_of
from incsnap.verify.allowance import Allowance
from incsnap.verify.gap_rules import Seam
from incsnap.verify.record_reading import DELETION, ROW, TOMBSTONE, RecordForm
from incsnap.verify.table_side import OwnKeys, VerifiedTable, read_range
from incsnap.verify.topic_side import PartitionPart, parts_between, read_parts

#: Settings of a session for large comparisons, where a job's are for many small batches.
_SESSION = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
}
_SIDE = pa.schema(
    [
        ("number", pa.int32()),
        ("key", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("is_new", pa.bool_()),
        ("state", pa.int8()),
        ("row", pa.binary()),
    ]
)
_COLUMNS = "number int, key binary, partition int, offset long, is_new boolean, state byte, row binary"
#: States of a key beside the hash of its row.
_GONE, _INCOMPLETE, _UNKNOWN = 1, 2, 3
#: The partition of a table's rows.
_TABLE = -1
#: Most keys that are brought to the driver at once.
_TOGETHER = 500_000


@dataclass(frozen=True, slots=True)
class TableCounts:
    """Counts of the keys of a table and its topic."""

    rows: int = 0  #: rows of the table
    differing: int = 0  #: keys of rows that the topic does not show
    extra: int = 0  #: keys that the topic shows and the table does not have


class GapComparison:
    """The comparison of `tables` with their topics. Call `close` at the end.

    `behind`: transactions that a server must have executed before a SELECT. No job of Spark has two stages that run at
    the same time, and no stage has more tasks than `allowance` has.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        tables: Sequence[VerifiedTable],
        behind: GtidSet,
        allowance: Allowance,
    ) -> None:
        self._spark, self._settings, self._tables = _large_session(spark, allowance), settings, tables
        self._behind, self._allowance = str(behind), allowance
        self._at_once = allowance.tasks or spark.sparkContext.defaultParallelism
        self._found: DataFrame | None = None

    def close(self) -> None:
        """Free what the executors hold."""
        if self._found is not None:
            self._found.unpersist()

    def run(self, client: ClientSettings, seam: Seam, ranges: Sequence[Sequence[RangePart]]) -> list[TableCounts]:
        """Compare, and return the counts of each table. `ranges`: those of the keys, for each table in order.

        Raise ServerUnreachable or ChunkFailed if a server fails.
        """
        rows = self._rows([(number, part) for number, parts in enumerate(ranges) for part in parts])
        # The rows are read first, so that the topics have come further when they are read.
        rows.persist(StorageLevel.DISK_ONLY)
        try:
            with self._allowance.spark_job(), errors_of_tasks():
                counted = {row["number"]: row["count"] for row in rows.groupBy("number").count().collect()}
            counts = {table.topic: table.partitions for table in self._tables}
            begins, ends = topic_ends(client, counts, first=True), topic_ends(client, counts)
            records = self._records(client, parts_between(begins, ends), seam)
            both = rows.unionByName(records).coalesce(self._at_once)
            self._found = keys_to_repair(both.repartition(self._at_once, "number", "key"))
            self._found.persist(StorageLevel.DISK_ONLY)
            with self._allowance.spark_job(), errors_of_tasks():
                differing = self._found.groupBy("number", "is_extra").count().collect()
        finally:
            rows.unpersist()
        by_kind = {(row["number"], row["is_extra"]): row["count"] for row in differing}
        return [
            TableCounts(counted.get(number, 0), by_kind.get((number, False), 0), by_kind.get((number, True), 0))
            for number in range(len(self._tables))
        ]

    def keys(self, number: int, count: int, *, extra: bool) -> Iterator[list[bytes]]:
        """Yield `count` keys of table `number`, in parts.

        `extra`: the keys that the table does not have; else the keys of its rows that differ.
        """
        assert self._found is not None
        chosen = self._found.where((F.col("number") == number) & (F.col("is_extra") == extra))
        parts = -(-count // _TOGETHER)
        for part in range(parts):
            own = chosen if parts == 1 else chosen.where(F.pmod(F.crc32("key"), F.lit(parts)) == part)
            with self._allowance.spark_job(), errors_of_tasks():
                keys = own.select("key").toArrow().column(0).to_pylist()
            yield keys

    def _rows(self, parts: Sequence[tuple[int, RangePart]]) -> DataFrame:
        settings, tables, behind = self._settings.to_json(), list(self._tables), self._behind

        def read(part: tuple[int, RangePart]) -> Iterator[RecordBatch]:
            number, range_ = part
            low = GtidSet.parse(behind)
            for batch in aside(read_range(Settings.from_json(settings), tables[number], range_, behind=low)):
                yield _side(number, batch, partition=_TABLE)

        return self._tasks(parts, read)

    def _records(self, client: ClientSettings, parts: Sequence[PartitionPart], seam: Seam) -> DataFrame:
        own = [OwnKeys.of(format_of(self._settings, table.shape)) for table in self._tables]
        readers = [
            (part, form, numbers)
            for topic, form, numbers in _by_topic(self._tables)
            for part in parts
            if part.topic == topic
        ]

        def read(reader: tuple[PartitionPart, RecordForm, Sequence[int]]) -> Iterator[RecordBatch]:
            part, form, numbers = reader
            begin = seam.get((part.topic, part.partition), 0)
            for batch in aside(read_parts(client, [part], {part.topic: form}, places=False)):
                for number in numbers:
                    yield _side(number, own[number].of_batch(batch), partition=part.partition, seam=begin)

        return self._tasks(readers, read)

    def _tasks(self, parts: Sequence[Any], read: Callable[[Any], Iterator[RecordBatch]]) -> DataFrame:
        """Return the keys, states and hashes of what `read` yields for `parts`, by `at_once` tasks at most."""
        listed, tasks = list(parts), max(1, min(self._at_once, len(parts)))

        def read_all(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
            for batch in batches:
                for task in batch.column(0).to_pylist():
                    for part in listed[task::tasks]:
                        yield from read(part)

        side = self._spark.range(0, tasks, 1, tasks).mapInArrow(read_all, _COLUMNS)
        return side.select("number", "key", "partition", "offset", "is_new", code_of(self._tables).alias("code"))


def _by_topic(tables: Sequence[VerifiedTable]) -> list[tuple[str, RecordForm, list[int]]]:
    """Return the topics to read, each with the form of its records and the numbers of its tables.

    A topic is read once for all tables whose records have one form.
    """
    topics: list[tuple[str, RecordForm, list[int]]] = []
    for number, table in enumerate(tables):
        for topic, form, numbers in topics:
            # The settings of a registry have no hash, and an equal form may have other doubles.
            if topic == table.topic and form == table.form and form.doubles == table.form.doubles:
                numbers.append(number)
                break
        else:
            topics.append((table.topic, table.form, [number]))
    return topics


def _large_session(spark: SparkSession, allowance: Allowance) -> SparkSession:
    """Return a session with settings of its own, for large comparisons. It shares the task slots."""
    session = spark.newSession()
    for name, value in _SESSION.items():
        session.conf.set(name, value)
    if allowance.tasks is not None:
        session.conf.set("spark.sql.shuffle.partitions", str(allowance.tasks))
    return session


def code_of(tables: Sequence[VerifiedTable]) -> Column:
    """Return the state of a key as a number: the hash of its row, or one of the states beside it."""
    bare = [number for number, table in enumerate(tables) if not table.form.tombstones]
    state = F.col("state")
    return (
        F.when(state == ROW, F.xxhash64("row"))
        .when((state == TOMBSTONE) | ((state == DELETION) & F.col("number").isin(bare)), F.lit(_GONE))
        .when(state == DELETION, F.lit(_INCOMPLETE))
        .otherwise(F.lit(_UNKNOWN))
    )


def keys_to_repair(sides: DataFrame) -> DataFrame:
    """Return the keys that are sent again or deleted, as `gap_rules.needs_repair` says.

    `sides` has rows and records with their codes. The result has `number`, `key`, and `is_extra`: the table does not
    have the key.
    """
    last = sides.groupBy("number", "key", "partition").agg(
        F.max_by("code", "offset").alias("code"), F.max("is_new").alias("is_new")
    )
    row = F.when(F.col("partition") == _TABLE, F.col("code"))
    shown = F.when(F.col("partition") != _TABLE, F.col("code"))
    keys = last.groupBy("number", "key").agg(
        F.max(row).alias("row"),
        F.min(shown).alias("least"),
        F.max(shown).alias("greatest"),
        F.max("is_new").alias("is_new"),
    )
    expected = F.coalesce("row", F.lit(_GONE))
    same = F.coalesce((F.col("least") == expected) & (F.col("greatest") == expected), F.lit(False))
    return keys.where(~same & ~F.col("is_new")).select("number", "key", F.col("row").isNull().alias("is_extra"))


def _side(number: int, batch: RecordBatch, *, partition: int, seam: int = 0) -> RecordBatch:
    """Return the columns of `_SIDE` for rows of a table or records of a partition, without those that have no key."""
    n = len(batch)
    if partition == _TABLE:
        offsets, states = pa.repeat(pa.scalar(0, pa.int64()), n), pa.repeat(pa.scalar(ROW, pa.int8()), n)
        is_new = pa.repeat(pa.scalar(False), n)
    else:
        offsets, states = batch.column("offset"), batch.column("state")
        is_new = pc.greater_equal(offsets, seam)
    arrays = [
        pa.repeat(pa.scalar(number, pa.int32()), n),
        batch.column("key"),
        pa.repeat(pa.scalar(partition, pa.int32()), n),
        offsets,
        is_new,
        states,
        batch.column("row"),
    ]
    side = pa.RecordBatch.from_arrays(arrays, schema=_SIDE)
    return side.filter(side.column("key").is_valid()) if side.column("key").null_count else side

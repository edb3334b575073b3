"""The comparison of whole tables with their topics by Spark: it finds the keys whose rows differ.

Both sides become (key, 64-bit hash of the row), and Spark joins them by key. The hash only chooses keys: what is
reported was compared byte by byte, in a later round (`incsnap.verify.rounds`). The topics are read once, and kept on
the executors' disks for the histories of keys.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's name)

from incsnap.columns.arrow import RecordBatch
from incsnap.config.settings import Settings
from incsnap.kafka.client_settings import ClientSettings
from incsnap.planner.key_ranges import RangePart
from incsnap.tasks.chunk import aside
from incsnap.verify.allowance import Allowance
from incsnap.verify.changed_keys import place_in_log
from incsnap.verify.proof import LastRecord, RowPlace, TopicKey
from incsnap.verify.record_reading import DELETION, ROW, TOMBSTONE, UNREADABLE
from incsnap.verify.table_side import VerifiedTable, read_range
from incsnap.verify.topic_side import PartitionPart, read_parts

_TABLE = "topic string, key binary, table_partition int, row binary"
_RECORDS = (
    "topic string, key binary, partition int, offset long, time long, state byte, row binary, is_snapshot boolean,"
    " file string, pos long, row_number long"
)
#: Settings of a session for large comparisons, where a job's are for many small batches.
_SESSION = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
}
#: Most older records of a key that are kept, to tell a stale row.
_OLDER = 50


@dataclass(slots=True)
class PartitionFacts:
    """The evidence in the records of a partition about how far it came."""

    last: RowPlace | None = None  #: place of the last record of an event
    snapshot: RowPlace | None = None  #: highest place of a row of a snapshot


@dataclass(slots=True)
class History:
    """The records of a key."""

    record: LastRecord | None = None  #: the last one
    older: list[LastRecord] = field(default_factory=list)  #: earlier ones but tombstones, the oldest first


@dataclass(frozen=True, slots=True)
class TopicCounts:
    """Counts of a topic's records."""

    unreadable: int = 0  #: records that are neither rows nor deletions
    sent_twice: int = 0  #: records that repeat an earlier one of their key
    back_in_time: int = 0  #: records that are older than an earlier one of their key


class WholeTables:
    """The comparison of `tables` by a Spark session. Call `close` at the end. Tables of one topic have one form.

    With a limit of tasks, no job of Spark has two stages that run at the same time, and no stage has more tasks.
    """

    def __init__(
        self, spark: SparkSession, settings: Settings, tables: Sequence[VerifiedTable], allowance: Allowance
    ) -> None:
        self._spark = large_session(spark, allowance)
        self._settings, self._forms = settings, {table.topic: table.form for table in tables}
        self._allowance = allowance
        self._rows: DataFrame | None = None
        self._records: DataFrame | None = None
        self._held: list[DataFrame] = []

    def close(self) -> None:
        """Free what the executors hold."""
        for held in self._held:
            held.unpersist()

    def read_tables(self, ranges: Sequence[tuple[VerifiedTable, RangePart]]) -> dict[str, int]:
        """Read ranges of the tables' keys, and return the number of rows by topic."""
        parts, settings = list(ranges), self._settings.to_json()

        def read(numbers: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
            for number in _numbers(numbers):
                table, part = parts[number]
                yield from aside(read_range(Settings.from_json(settings), table, part))

        self._rows = self._read_all(
            len(parts),
            lambda tasks: tasks.mapInArrow(read, _TABLE).select(
                "topic", "key", "table_partition", F.xxhash64("row").alias("table_hash")
            ),
        )
        with self._allowance.spark_job():
            return {row["topic"]: row["count"] for row in self._rows.groupBy("topic").count().collect()}

    def read_topics(self, client: ClientSettings, parts: Sequence[PartitionPart]) -> dict[str, TopicCounts]:
        """Read the parts of the topics, and return counts of each topic's records."""
        forms, listed = self._forms, list(parts)

        def read(numbers: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
            for number in _numbers(numbers):
                yield from aside(read_parts(client, [listed[number]], forms))

        self._records = self._read_all(len(parts), lambda tasks: tasks.mapInArrow(read, _RECORDS))
        history = self._judged().groupBy("topic").agg(F.sum("twice").alias("twice"), F.sum("back").alias("back"))
        odd = self._records.where(F.col("state") == UNREADABLE).groupBy("topic").count()
        with self._allowance.spark_job():
            unreadable = {row["topic"]: row["count"] for row in odd.collect()}
        with self._allowance.spark_job():
            repeated = {row["topic"]: (row["twice"] or 0, row["back"] or 0) for row in history.collect()}
        return {topic: TopicCounts(unreadable.get(topic, 0), *repeated.get(topic, (0, 0))) for topic in self._forms}

    def repeated_keys(self, most: int) -> dict[TopicKey, tuple[int, int]]:
        """Return the keys, at most `most`, with records that repeat an earlier one, or that are older than one.

        Of each key the numbers of such records.
        """
        of_keys = self._judged().groupBy("topic", "key").agg(F.sum("twice").alias("twice"), F.sum("back").alias("back"))
        with self._allowance.spark_job():
            rows = (
                of_keys.where(F.col("key").isNotNull() & ((F.col("twice") > 0) | (F.col("back") > 0)))
                .limit(most)
                .toArrow()
            )
        counts = zip(rows.column("twice").to_pylist(), rows.column("back").to_pylist(), strict=True)
        return dict(zip(_keys(rows), counts, strict=True))

    def _judged(self) -> DataFrame:
        """Return topic and key of each record of an event, and 1 or 0 in `twice` and in `back`.

        `twice`: the record repeats an earlier one of its key. `back`: it is older than an earlier one.
        """
        assert self._records is not None
        of_key = Window.partitionBy("topic", "key", "partition").orderBy("offset")
        # A compressed transaction has one place for all of its events, so the row belongs to the comparison.
        same = Window.partitionBy(
            "topic", "key", "partition", "state", "file", "pos", "row_number", F.xxhash64("row")
        ).orderBy("offset")
        # For this reason the row says nothing of the order.
        earlier = F.max("event").over(of_key.rowsBetween(Window.unboundedPreceding, -1))
        placed = self._records.withColumn("event", F.when(_event_place().isNotNull(), F.struct("file", "pos")))
        return placed.where(F.col("event").isNotNull()).select(
            "topic",
            "key",
            (F.row_number().over(same) > 1).cast("int").alias("twice"),
            F.coalesce((F.col("event") < earlier).cast("int"), F.lit(0)).alias("back"),
        )

    def facts(self) -> dict[tuple[str, int], PartitionFacts]:
        """Return what each partition's records show about how far it came."""
        assert self._records is not None
        placed = self._records.withColumn("event", _event_place()).withColumn(
            "read", F.when(F.col("is_snapshot") & F.col("file").isNotNull(), F.struct("file", "pos", "row_number"))
        )
        last = F.max_by("event", F.when(F.col("event").isNotNull(), F.col("offset"))).alias("event")
        with self._allowance.spark_job():
            rows = placed.groupBy("topic", "partition").agg(last, F.max("read").alias("read")).collect()
        return {
            (row["topic"], row["partition"]): PartitionFacts(_place(row["event"]), _place(row["read"])) for row in rows
        }

    def differing(self, sample: int = 1, number: int = 0) -> list[TopicKey]:
        """Return the keys whose sides differ, of one key in `sample`. `number`: which of the samples."""
        assert self._rows is not None
        assert self._records is not None
        # The order of a partition is that of its offsets: the clock of a producer may go back.
        newest = F.struct("offset", "time", "state", F.xxhash64("row").alias("hash"))
        of_partition = self._records.groupBy("topic", "key", "partition").agg(F.max(newest).alias("one"))
        last = of_partition.groupBy("topic", "key").agg(F.max_by("one", F.col("one.time")).alias("last"))
        if self._allowance.tasks is not None:
            # Otherwise the two sides of the join are shuffled at the same time.
            last = last.persist(StorageLevel.DISK_ONLY)
            self._held.append(last)
            with self._allowance.spark_job():
                last.count()
        joined = self._rows.join(last, ["topic", "key"], "full_outer")
        state = F.col("last.state")
        bare = [topic for topic, form in self._forms.items() if not form.tombstones]
        is_gone = (state == TOMBSTONE) | ((state == DELETION) & F.col("topic").isin(bare))
        same_row = (state == ROW) & (F.col("table_hash") == F.col("last.hash"))
        is_same = F.when(F.col("table_hash").isNotNull(), same_row).otherwise(is_gone)
        differ = joined.where(F.col("key").isNotNull() & ~F.coalesce(is_same, F.lit(False))).select("topic", "key")
        if sample > 1:
            differ = differ.where(F.crc32("key") % sample == number)
        with self._allowance.spark_job():
            return _keys(differ.toArrow())

    def histories(self, keys: Collection[TopicKey]) -> dict[TopicKey, History]:
        """Return the records of `keys`."""
        assert self._records is not None
        chosen = pa.table(
            [pa.array([topic for topic, _ in keys], pa.string()), pa.array([key for _, key in keys], pa.binary())],
            names=["topic", "key"],
        )
        if not keys:
            return {}
        only_these = self._spark.createDataFrame(chosen)
        records = self._records.join(F.broadcast(only_these), ["topic", "key"], "left_semi")
        # A key that is in several partitions moved with the number of partitions.
        left = F.max_by("time", "offset").over(Window.partitionBy("topic", "key", "partition"))
        records = records.withColumn("left", left).orderBy("left", "partition", "offset")
        histories: dict[TopicKey, History] = {}
        with self._allowance.spark_job():
            of_keys = records.toArrow()
        for batch in of_keys.to_batches():
            note_records(batch, histories)
        return histories

    def sampled(self, keys: Iterable[TopicKey], sample: int, number: int = 0) -> list[TopicKey]:
        """Return those of `keys` that are in a sample of one key in `sample`. `number`: which of the samples."""
        return [key for key in keys if sample == 1 or zlib.crc32(key[1]) % sample == number]

    def _read_all(self, count: int, read: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """Return what `read` makes of the numbers below `count`, kept on disk.

        With a share of the processor each number is a job of its own, so that the jobs can be spread over time.
        """
        if self._allowance.share == 1:
            tasks = self._spark.range(0, count, 1, max(1, min(count, self._allowance.tasks or count)))
            self._held.append(read(tasks).persist(StorageLevel.DISK_ONLY))
            return self._held[-1]
        parts = [read(self._spark.range(number, number + 1, 1, 1)) for number in range(max(1, count))]
        for part in parts:
            self._held.append(part.persist(StorageLevel.DISK_ONLY))
            with self._allowance.spark_job():
                part.count()
        return reduce(DataFrame.unionAll, parts)


def large_session(spark: SparkSession, allowance: Allowance) -> SparkSession:
    """Return a session with settings of its own, for large comparisons. It shares the task slots."""
    session = spark.newSession()
    for name, value in _SESSION.items():
        session.conf.set(name, value)
    if allowance.tasks is not None:
        session.conf.set("spark.sql.shuffle.partitions", str(allowance.tasks))
    return session


def note_records(records: RecordBatch, histories: dict[TopicKey, History], *, only: bool = False) -> None:
    """Add `records` (columns of TOPIC_RECORDS), in the order of their partitions, to the histories of their keys.

    `only`: add only to histories that are there.
    """
    names = ("topic", "key", "partition", "offset", "state", "row", "is_snapshot", "file", "pos", "row_number")
    for topic, key, partition, offset, state, row, is_read, file, pos, number in zip(
        *(records.column(name).to_pylist() for name in names), strict=True
    ):
        if only and (topic, key) not in histories:
            continue
        history = histories.setdefault((topic, key), History())
        if history.record is not None and state != TOMBSTONE:
            history.older = [*history.older[-_OLDER:], history.record]
        known = place_in_log(file, pos, number) if file else None
        place, read_at = (None, known) if is_read else (known, None)
        if state == TOMBSTONE and history.record is not None:
            place = history.record.place
        history.record = LastRecord(row, partition, offset, state == TOMBSTONE, place, read_at)


def note_places(records: RecordBatch, facts: dict[tuple[str, int], PartitionFacts]) -> None:
    """Add the places of `records`, in the order of their partitions, to what they show about their partitions."""
    names = ("topic", "partition", "is_snapshot", "file", "pos", "row_number")
    for topic, partition, is_read, file, pos, number in zip(
        *(records.column(name).to_pylist() for name in names), strict=True
    ):
        if not file:
            continue
        place, known = place_in_log(file, pos, number), facts.setdefault((topic, partition), PartitionFacts())
        if is_read:
            known.snapshot = place if known.snapshot is None else max(known.snapshot, place)
        else:
            known.last = place


def _event_place() -> Column:
    """Return the place of a record of an event, as a column that can be compared; null for others."""
    is_event = F.col("file").isNotNull() & ~F.col("is_snapshot")
    return F.when(is_event, F.struct("file", "pos", "row_number"))


def _place(named: Any) -> RowPlace | None:
    return None if named is None else place_in_log(named["file"], named["pos"], named["row_number"])


def _keys(table: pa.Table) -> list[TopicKey]:
    return list(zip(table.column("topic").to_pylist(), table.column("key").to_pylist(), strict=True))


def _numbers(batches: Iterable[RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()

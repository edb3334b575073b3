"""The rules of `gap_rules` for whole tables: which keys of tables and topics differ behind a gap.

Tasks of Spark reduce both sides to hashes of keys and codes of rows (`incsnap.verify.gap_matching`). The hashes are
kept in a temporary folder of the driver's machine, and the driver compares them in parts of the hashes' range.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from incsnap.columns.arrow import BytesArray, RecordBatch
from incsnap.columns.hashing import hash64
from incsnap.config.settings import Settings
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.planner.key_ranges import RangePart
from incsnap.tasks.chunk import aside
from incsnap.tasks.formats import format_of
from incsnap.verify.allowance import Allowance
from incsnap.verify.gap_matching import CodedRecords, CodedRows, Numbers, codes_of, differing
from incsnap.verify.gap_rules import Seam
from incsnap.verify.kept_sides import RECORDS, ROWS, KeptSides
from incsnap.verify.part_jobs import PartJobs
from incsnap.verify.record_reading import RecordForm
from incsnap.verify.side_blocks import BlockFacts, sorted_block
from incsnap.verify.side_slices import SideSlices, hash_ranges
from incsnap.verify.table_side import OwnKeys, VerifiedTable, read_range
from incsnap.verify.topic_side import PartitionPart, parts_between, read_parts

P = TypeVar("P")
#: A range of the keys of a table, with the table's number.
_Range = tuple[int, RangePart]
#: A part of a partition, the form of its records, and the numbers of their tables.
_Reader = tuple[PartitionPart, RecordForm, Sequence[int]]
_ROWS = pa.schema(
    [("key", pa.binary()), ("key_hash", pa.uint64()), ("code", pa.int64()), ("number", pa.int32())],
)
_RECORDS = pa.schema([*_ROWS, ("is_new", pa.bool_())])
#: Rows or offsets of one task.
_TASK_ROWS = 200_000
#: Rows and records that are compared at once: half a second, and some 100 MB.
_COMPARED = 2_000_000
#: Most keys that are brought together.
_TOGETHER = 500_000


@dataclass(frozen=True, slots=True)
class TableCounts:
    """Counts of the keys of a table and its topic."""

    rows: int = 0  #: rows of the table
    differing: int = 0  #: keys of rows that the topic does not show
    extra: int = 0  #: keys that the topic shows and the table does not have


class GapComparison:
    """The comparison of `tables` with their topics. Call `close` at the end.

    `job` is the id of the job, of which one comparison runs at a time. What a killed one has left is removed.
    `behind`: transactions that a server must have executed before a SELECT. No more tasks of Spark run at the same time
    than `allowance` has.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        tables: Sequence[VerifiedTable],
        behind: GtidSet,
        allowance: Allowance,
        job: str,
    ) -> None:
        self._jobs = PartJobs(spark.sparkContext, allowance)
        self._settings, self._tables, self._behind, self._allowance = settings, tables, str(behind), allowance
        prefix = f"incsnap-gap-{job}-"
        for left in Path(gettempdir()).glob(f"{prefix}*"):
            shutil.rmtree(left, ignore_errors=True)
        self._folder = TemporaryDirectory(prefix=prefix)
        self._sides = KeptSides.new(Path(self._folder.name), "")
        #: The keys that differ, by the number of their table and by whether the table lacks them.
        self._found: dict[tuple[int, bool], list[tuple[SideSlices, Numbers]]] = {}

    def close(self) -> None:
        """Remove what was read."""
        self._folder.cleanup()

    def run(
        self, client: ClientSettings, seam: Seam, ranges: Sequence[Sequence[RangePart]], rows_of: Sequence[int]
    ) -> list[TableCounts]:
        """Compare, and return the counts of each table.

        `ranges` and `rows_of`: the ranges of the keys, and about how many rows there are, for each table in order.
        Raise ServerUnreachable or ChunkFailed if a server fails.
        """
        # The rows are read first, so that the topics have come further when they are read.
        rows = self._read_rows([(number, part) for number, parts in enumerate(ranges) for part in parts], rows_of)
        counts = {table.topic: table.partitions for table in self._tables}
        begins, ends = topic_ends(client, counts, first=True), topic_ends(client, counts)
        partitions = self._read_records(client, parts_between(begins, ends), seam)
        total = self._lines(ROWS, rows) + self._lines(RECORDS, len(partitions))
        counted = np.zeros(len(self._tables), np.int64)
        for bounds in hash_ranges(total // _COMPARED + 1):
            with self._allowance.work():
                self._allowance.go_on()
                counted += self._compare(rows, partitions, bounds)
        return [
            TableCounts(int(counted[number]), self._count(number, extra=False), self._count(number, extra=True))
            for number in range(len(self._tables))
        ]

    def keys(self, number: int, *, extra: bool) -> Iterator[list[bytes]]:
        """Yield the keys of table `number` that differ, in parts.

        `extra`: the keys that the table does not have; else the keys of its rows.
        """
        for slices, indexes in self._found.get((number, extra), ()):
            for begin in range(0, len(indexes), _TOGETHER):
                yield slices.keys(indexes[begin : begin + _TOGETHER])

    def _lines(self, side: str, parts: int) -> int:
        """Return the rows or records in `parts` blocks of a side."""
        lines = 0
        for number in range(parts):
            with self._sides.block(side, number) as (_, facts):
                lines += facts.count
        return lines

    def _count(self, number: int, *, extra: bool) -> int:
        return sum(len(indexes) for _, indexes in self._found.get((number, extra), ()))

    def _compare(self, ranges: int, partitions: Sequence[int], bounds: tuple[int, int]) -> Numbers:
        """Compare the keys whose hashes lie in `bounds`. Return the number of rows of each table."""
        rows = SideSlices(self._sides, ROWS, range(ranges), bounds)
        records = SideSlices(self._sides, RECORDS, range(len(partitions)), bounds)
        again, extra = differing(
            CodedRows(rows.column("key_hash"), rows.column("code")),
            CodedRecords(
                key=records.column("key_hash"),
                code=records.column("code"),
                partition=np.repeat(np.array(partitions, np.int32), records.counts),
                is_new=records.column("is_new").astype(np.bool_),
            ),
        )
        numbers = rows.column("number")
        for slices, indexes, owners in ((rows, again, numbers), (records, extra, records.column("number"))):
            owner = owners[indexes]
            for number in np.unique(owner).tolist():
                self._found.setdefault((number, slices is records), []).append((slices, indexes[owner == number]))
        return np.bincount(numbers.astype(np.int64), minlength=len(self._tables))

    def _read_rows(self, parts: Sequence[_Range], rows_of: Sequence[int]) -> int:
        """Read ranges of the tables' keys, and return how many they are."""
        count = Counter(number for number, _ in parts)
        settings, tables, behind, seed = self._settings.to_json(), list(self._tables), self._behind, self._sides.seed

        def read(part: _Range) -> bytes:
            number, range_ = part
            low = GtidSet.parse(behind)
            batches = aside(read_range(Settings.from_json(settings), tables[number], range_, behind=low))
            return _block((_rows(number, batch, seed) for batch in batches), _ROWS)

        self._read(ROWS, parts, lambda each: rows_of[each[0]] // count[each[0]], read)
        return len(parts)

    def _read_records(self, client: ClientSettings, parts: Sequence[PartitionPart], seam: Seam) -> list[int]:
        """Read the parts of the topics, and return the partition of each block."""
        own, seed = [OwnKeys.of(format_of(self._settings, table.shape)) for table in self._tables], self._sides.seed
        readers: list[_Reader] = [
            (part, form, numbers)
            for topic, form, numbers in _by_topic(self._tables)
            for part in parts
            if part.topic == topic
        ]

        def read(reader: _Reader) -> bytes:
            part, form, numbers = reader
            begin = seam.get((part.topic, part.partition), 0)
            batches = aside(read_parts(client, [part], {part.topic: form}, places=False))
            coded = (
                _records(number, own[number].of_batch(batch), begin, form, seed)
                for batch in batches
                for number in numbers
            )
            return _block(coded, _RECORDS)

        self._read(RECORDS, readers, lambda each: each[0].end - each[0].begin, read)
        return [part.partition for part, _, _ in readers]

    def _read(self, side: str, parts: Sequence[P], weight: Callable[[P], int], read: Callable[[P], bytes]) -> None:
        for _ in self._jobs.keep(self._sides.places, side, list(enumerate(parts)), weight, _TASK_ROWS, read):
            self._allowance.go_on()


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


def _rows(number: int, batch: RecordBatch, seed: int) -> RecordBatch:
    """Return the columns of `_ROWS` for rows of table `number`."""
    codes = pa.array(hash64(batch.column("row"), seed).view(np.int64))
    return pa.RecordBatch.from_arrays([*_keys(number, batch.column("key"), seed, codes)], schema=_ROWS)


def _records(number: int, batch: RecordBatch, seam: int, form: RecordForm, seed: int) -> RecordBatch:
    """Return the columns of `_RECORDS` for records of one partition, whose seam is `seam`."""
    codes = codes_of(batch.column("state"), batch.column("row"), tombstones=form.tombstones, seed=seed)
    is_new = pc.greater_equal(batch.column("offset"), seam)
    return pa.RecordBatch.from_arrays(
        [*_keys(number, batch.column("key"), seed, pa.array(codes)), is_new], schema=_RECORDS
    )


def _keys(number: int, keys: BytesArray, seed: int, codes: Any) -> tuple[Any, ...]:
    """Return the columns of `_ROWS`. Each table has a seed of its own, so equal keys of two tables differ."""
    numbers = pa.repeat(pa.scalar(number, pa.int32()), len(keys))
    return keys, pa.array(hash64(keys, seed + number)), codes, numbers


def _block(batches: Iterable[RecordBatch], schema: Any) -> bytes:
    """Return the block of the columns, without the lines that have no key."""
    table = pa.Table.from_batches(batches, schema)
    if table.column("key").null_count:
        table = table.filter(table.column("key").is_valid())
    return sorted_block(table.combine_chunks(), BlockFacts(len(table)))

"""The comparison of whole tables with their topics: it finds the keys whose rows differ.

Tasks of Spark reduce both sides to hashes of keys and rows (`incsnap.verify.side_blocks`). The hashes are kept in a
folder of the driver's machine. Tasks on that machine write them there, others send them to the driver. The driver
compares them in parts of the hashes' range (`incsnap.verify.matching`). The hashes only choose keys: what is reported
was compared byte by byte, in a later round (`incsnap.verify.rounds`). The values of records are read again for the keys
that were chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from incsnap.columns.arrow import BytesArray, RecordBatch
from incsnap.columns.hashing import hash64
from incsnap.config.settings import Settings
from incsnap.kafka.client_settings import ClientSettings
from incsnap.tasks.chunk import aside
from incsnap.verify.allowance import Allowance
from incsnap.verify.compared_sides import Candidates, ComparedSides
from incsnap.verify.histories import History, PartitionFacts, in_order_of_keys, note_records
from incsnap.verify.kept_sides import RECORDS, ROWS, KeptRange, KeptSides
from incsnap.verify.part_jobs import PartJobs
from incsnap.verify.progress import Progress
from incsnap.verify.proof import TopicKey
from incsnap.verify.record_reading import RecordForm
from incsnap.verify.sampling import Sample
from incsnap.verify.side_blocks import BlockFacts, stream_of, table_block, table_columns, topic_block
from incsnap.verify.side_slices import Offsets, hash_ranges, offsets_of, spread
from incsnap.verify.table_side import LOCKED_SECONDS, VerifiedTable, read_range
from incsnap.verify.topic_side import PartitionPart, hashed_records, read_chosen

P = TypeVar("P")
#: Rows or offsets of the parts of one task.
_TASK_ROWS = 200_000
#: Rows and records that are compared at once: half a second, and some 200 MB.
_TOGETHER = 2_000_000
#: Offsets between two chosen records that are read rather than skipped. A new place in a partition takes some 20 ms.
_GAP = 20_000


@dataclass(frozen=True, slots=True)
class TopicCounts:
    """Counts of a topic's records."""

    unreadable: int = 0  #: records that are neither rows nor deletions
    sent_twice: int = 0  #: records that repeat an earlier one of their key
    back_in_time: int = 0  #: records that are older than an earlier one of their key


class WholeTables:
    """The comparison of `tables` in the sample of `sample`, with what it reads kept in `sides`.

    Tables of one topic have one form. With a limit of tasks, one job of Spark runs at a time, with so many tasks.
    A table may be locked for `locked_seconds`.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        tables: Sequence[VerifiedTable],
        sides: KeptSides,
        sample: Sample,
        allowance: Allowance,
        progress: Progress,
        locked_seconds: float = LOCKED_SECONDS,
    ) -> None:
        self._locked_seconds = locked_seconds
        self._jobs = PartJobs(spark.sparkContext, allowance)
        self._settings, self._tables, self._sides, self._sample = settings, tables, sides, sample
        self._forms = {table.topic: table.form for table in tables}
        self._allowance, self._progress = allowance, progress
        self._ranges: Sequence[KeptRange] = ()
        self._parts: Sequence[PartitionPart] = ()
        #: Facts of the parts that were read, by side and number.
        self._facts: dict[tuple[str, int], BlockFacts] = {}
        self._found: dict[str, Candidates] = {}

    def read_tables(self, ranges: Sequence[KeptRange], rows_of: Mapping[int, int]) -> dict[str, int]:
        """Read ranges of the tables' keys, and return the number of rows by topic.

        `rows_of`: about how many rows a range of each table has.
        """
        self._ranges = ranges
        settings, tables, seed, sample = self._settings.to_json(), self._tables, self._sides.seed, self._sample
        locked = self._locked_seconds

        def read(each: KeptRange) -> bytes:
            own, table = Settings.from_json(settings), tables[each.table]
            rows = aside(read_range(own, table, each.part, sample=sample, locked_seconds=locked))
            return table_block(table_columns(batch.column("key"), batch.column("row"), seed) for batch in rows)

        self._read(ROWS, ranges, lambda each: rows_of.get(each.table, 0), read)
        counts = dict.fromkeys(self._forms, 0)
        for number, each in enumerate(ranges):
            counts[tables[each.table].topic] += self._facts[ROWS, number].count
        return counts

    def read_topics(self, client: ClientSettings, parts: Sequence[PartitionPart]) -> dict[str, TopicCounts]:
        """Read the parts of the topics, compare them with the tables, and return counts of each topic's records.

        Raise TooManyDiffer if too many keys differ.
        """
        self._parts = parts
        forms, seed, sample = self._forms, self._sides.seed, self._sample

        def read(part: PartitionPart) -> bytes:
            return topic_block(aside(hashed_records(client, part, forms[part.topic], seed, sample)))

        self._read(RECORDS, parts, lambda part: part.end - part.begin, read)
        self._progress.begin("comparing")
        counts = {}
        for topic in self._forms:
            differences = self._found[topic] = self._compared(topic)
            unreadable = sum(self._facts[RECORDS, number].unreadable for number in self._numbers(RECORDS, topic))
            counts[topic] = TopicCounts(unreadable, differences.sent_twice, differences.back_in_time)
        return counts

    def repeated_keys(self, most: int) -> dict[TopicKey, tuple[int, int]]:
        """Return the keys, at most `most`, with records that repeat an earlier one, or that are older than one.

        Of each key the numbers of such records.
        """
        every = ((topic, each) for topic, differences in self._found.items() for each in differences.repeated)
        return {(topic, key): (twice, back) for _, (topic, (key, twice, back)) in zip(range(most), every, strict=False)}

    def facts(self) -> dict[tuple[str, int], PartitionFacts]:
        """Return what each partition's records show about how far it came."""
        facts: dict[tuple[str, int], PartitionFacts] = {}
        for number in self._in_order():
            part, own = self._parts[number], self._facts[RECORDS, number]
            known = facts.setdefault((part.topic, part.partition), PartitionFacts())
            known.last = own.last or known.last
            known.snapshot = max((each for each in (known.snapshot, own.snapshot) if each), default=None)
        return facts

    def differing(self) -> list[TopicKey]:
        """Return the keys whose sides differ."""
        return [(topic, key) for topic, differences in self._found.items() for key in differences.keys]

    def histories(self, client: ClientSettings, keys: Iterable[TopicKey]) -> dict[TopicKey, History]:
        """Return the records of `keys`, which are read again."""
        chosen = list(keys)
        histories: dict[TopicKey, History] = {}
        for topic, form in self._forms.items():
            own = pa.array([key for name, key in chosen if name == topic], pa.binary())
            batches = self._read_again(client, topic, form, own) if len(own) else []
            if batches:
                with self._allowance.work():
                    records = pa.Table.from_batches(batches)
                    # The chosen records are those of equal hashes.
                    records = records.filter(pc.is_in(records.column("key"), own))
                    for batch in in_order_of_keys(records).to_batches():
                        note_records(batch, histories)
        return histories

    # -- reading

    def _read(self, side: str, parts: Sequence[P], weight: Callable[[P], int], read: Callable[[P], bytes]) -> None:
        """Read the parts that no file has."""
        left = self._sides.left(side, len(parts))
        for number in sorted({*range(len(parts))} - {*left}):
            self._note(side, number, earlier=True)
        self._progress.begin(f"reading {'tables' if side == ROWS else 'topics'}")
        parts_left = [(number, parts[number]) for number in left]
        for number in self._jobs.keep(self._sides.places, side, parts_left, weight, _TASK_ROWS, read):
            self._note(side, number, earlier=False)

    def _note(self, side: str, number: int, *, earlier: bool) -> None:
        with self._sides.block(side, number) as (_, facts):
            self._facts[side, number] = facts
        if side == ROWS:
            self._progress.read(rows=facts.count * self._sample.every, earlier=earlier)
        else:
            self._progress.read(records=self._parts[number].end - self._parts[number].begin, earlier=earlier)

    def _numbers(self, side: str, topic: str) -> list[int]:
        """Return the numbers of a topic's parts, in the order of partitions and offsets."""
        if side == ROWS:
            return [number for number, each in enumerate(self._ranges) if self._tables[each.table].topic == topic]
        return [number for number in self._in_order() if self._parts[number].topic == topic]

    def _in_order(self) -> list[int]:
        parts = self._parts
        return sorted(range(len(parts)), key=lambda number: (parts[number].partition, parts[number].begin))

    # -- comparing

    def _compared(self, topic: str) -> Candidates:
        """Return the keys of a topic that differ, and those whose records repeat earlier ones."""
        numbers = [self._numbers(side, topic) for side in (ROWS, RECORDS)]
        partitions = [self._parts[number].partition for number in numbers[1]]
        compared = ComparedSides(self._sides, numbers[0], numbers[1], partitions, self._forms[topic].tombstones)
        total = sum(self._facts[side, each].count for side, listed in zip((ROWS, RECORDS), numbers, strict=True)
                    for each in listed)  # fmt: skip
        candidates = Candidates()
        for bounds in hash_ranges(total // _TOGETHER + 1):
            with self._allowance.work():
                self._allowance.go_on()
                compared.add(bounds, candidates)
        return candidates

    # -- reading again

    def _read_again(self, client: ClientSettings, topic: str, form: RecordForm, keys: BytesArray) -> list[RecordBatch]:
        """Return the records of `keys`, as batches in the order of partitions and offsets."""
        hashes = np.unique(hash64(keys, self._sides.seed))
        parts: list[tuple[PartitionPart, Offsets]] = []
        for number in self._numbers(RECORDS, topic):
            with self._allowance.work(), self._sides.block(RECORDS, number) as (batch, _):
                offsets = offsets_of(batch, hashes)
            parts += spread(self._parts[number], offsets, _GAP)
        if not parts:
            return []

        def read(_: int, each: tuple[PartitionPart, Offsets]) -> bytes:
            return stream_of(aside(read_chosen(client, *each, form)))

        def weight(each: tuple[PartitionPart, Offsets]) -> int:
            return each[0].end - each[0].begin

        blocks = dict(self._jobs.run(list(enumerate(parts)), weight, _TASK_ROWS, read))
        return [batch for number in sorted(blocks) for batch in pa.ipc.open_stream(blocks[number])]

"""The task of one bucket in one batch: sends the released rows that no event has overtaken, then the events.

This module holds the rule of de-duplication: the log always wins. A row of a window is discarded if its key has an
event in a batch after the window's batch, up to the batch that releases the row. Released rows go first, and events
follow in binlog order. No key is in both, so their order to each other does not matter. The module does no I/O of its
own: callers pass in the buffers and the transactions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache, partial, reduce
from itertools import chain
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.checkpoint.progress import BucketCounts
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.envelope.records import overtaken_by
from incsnap.errors import SinkError
from incsnap.kafka.refusals import RecordsTooLarge
from incsnap.tasks import blocks
from incsnap.tasks.event_counts import event_counts
from incsnap.tasks.left_out import LeftOut, SizeRule
from incsnap.tasks.outgoing import Outgoing
from incsnap.tasks.own_topics import PartitionsOf, by_topic


class ChangeBlock(NamedTuple):
    """A block of change records or of notifications, still encoded. `decoded` gives its records."""

    kind: str  #: `blocks.EVENTS` or `blocks.TABLES`
    topic: str  #: "" for many tables
    table: str  #: as `str(TableId)`; "" for many tables and for notifications
    records: pa.Buffer  #: as `blocks.encode` wrote them

    def decoded(self) -> Iterator[tuple[list[blocks.Run], pa.RecordBatch]]:
        """Yield the block's records batch by batch, each with the runs (`blocks.Run`) that say which records are of
        which table.
        """
        for records in blocks.decode(self.records):
            yield blocks.runs_of(self.kind, self.topic, self.table, records), records


@dataclass(slots=True)
class BucketBatch:
    """The blocks of one bucket and batch, in order."""

    batch: int  #: number of the batch
    digest: str  #: digest of the batch's end
    bucket: int  #: number of the bucket
    #: Changes and notifications, encoded. They are decoded one by one, because all of them may be gigabytes.
    changes: list[ChangeBlock] = field(default_factory=list)
    releases: list[blocks.ReleaseOrder] = field(default_factory=list)  #: the windows' parts to send
    #: tables with held windows, whose keys are written down; None if the batch holds no window
    held_tables: tuple[str, ...] | None = None
    place: str = ""  #: the batch's beginning and end, for the control record

    def keys_of(self, tables: Iterable[str]) -> dict[str, pa.Array]:
        """Return for each of the tables the identities of all rows that its events in this batch and bucket have
        changed.

        An identity tells a row from all other rows of its table. Inserts and deletes have one identity each. An update
        has two: the row's identity before the change, and after it. Rows that nothing tells apart have none.
        """
        keys: dict[str, list[pa.Array]] = {table: [] for table in tables}
        for block in self.changes if keys else ():
            if block.kind == blocks.EVENTS and block.table not in keys:
                continue
            for runs, records in block.decoded():
                for run, of_table in blocks.by_run(records, runs):
                    if run.table in keys:
                        keys[run.table].append(overtaken_by(of_table).drop_null())
        return {table: pa.concat_arrays(arrays or [pa.array([], pa.binary())]) for table, arrays in keys.items()}

    def overtaken(self) -> dict[str, pa.Array]:
        """Return for each table with a held window the identities of its events in this batch and bucket, each once."""
        return {table: pc.unique(keys) for table, keys in self.keys_of(self.held_tables or ()).items()}


def gather(batches: Iterable[pa.RecordBatch]) -> BucketBatch | None:
    """Return what a sink task received (rows of `blocks.SCHEMA`) as one bucket's batch; None if it received no row.

    Blocks come from several source tasks in any order. The result has them in the order of `ord`. Raise SinkError if
    they are of more than one bucket or batch: their records would share one transaction.
    """
    table = pa.Table.from_batches(list(batches)) if (batches := [b for b in batches if b.num_rows]) else None
    if table is None:
        return None
    targets = set(
        zip(*(table.column(name).to_pylist() for name in ("batch", "digest", "bucket", "place")), strict=True)
    )
    if len(targets) != 1:
        raise SinkError(
            f"A sink task was given blocks of {len(targets)} batches or buckets: {sorted(targets)[:4]}",
            "Repartition with DataFrame.repartitionById(buckets, col('bucket')); please report it with the log.",
        )
    ((batch, digest, bucket, place),) = targets
    received = BucketBatch(batch, digest, bucket, place=place)
    for row in pc.sort_indices(table, [("ord", "ascending")]).to_pylist():
        _add(received, {name: table.column(name)[row] for name in ("kind", "topic", "tbl", "block")})
    return received


def _add(received: BucketBatch, row: Mapping[str, Any]) -> None:
    """Add one block to the bucket. Raise SinkError if its kind is unknown."""
    kind, block = row["kind"].as_py(), row["block"].as_buffer()
    if kind in (blocks.EVENTS, blocks.TABLES):
        received.changes.append(ChangeBlock(kind, row["topic"].as_py(), row["tbl"].as_py(), block))
    elif kind == blocks.RELEASE:
        received.releases.append(blocks.decode_release(block.to_pybytes()))
    elif kind == blocks.HELD_TABLES:
        named = (*(received.held_tables or ()), *blocks.decode_held_tables(block.to_pybytes()))
        received.held_tables = tuple(dict.fromkeys(named))
    else:
        raise SinkError(f"A block of unknown kind {kind!r} came to bucket {received.bucket}")


class Delivery:
    """The records that a bucket sends in a batch, and their counts."""

    def __init__(self, received: BucketBatch, buffers: WindowBuffers) -> None:
        self._received = received
        self._buffers = buffers
        self._reads = self._discarded = self._bytes = 0
        self._events = BucketCounts()

    @property
    def counts(self) -> BucketCounts:
        """Return the counts of what was yielded so far. They are complete once `records` has ended."""
        return replace(self._events, reads=self._reads, discarded=self._discarded, bytes=self._bytes)

    def records(self) -> Iterator[Outgoing]:
        """Yield released rows that are not overtaken, then events and notifications. Nothing empty is yielded.

        Call this once only. The run of a notification has the table "".
        """
        for outgoing in chain(self._released(), self._changes()):
            if outgoing.records.num_rows:
                self._bytes += blocks.record_bytes(outgoing.records)
                yield outgoing

    def by_table(self) -> Iterator[tuple[str, str, pa.RecordBatch]]:
        """Yield (topic, table, records) for everything that `records` yields."""
        for outgoing in self.records():
            for run, of_table in blocks.by_run(outgoing.records, outgoing.runs):
                yield run.topic, run.table, of_table

    def _changes(self) -> Iterator[Outgoing]:
        for block in self._received.changes:
            for whole_runs, whole in block.decoded():
                runs, records = sent(whole_runs, whole)
                if block.table or block.kind == blocks.TABLES:
                    self._events += event_counts(records)
                yield Outgoing(runs, records)

    def _released(self) -> Iterator[Outgoing]:
        received, buffers = self._received, self._buffers
        fresh = received.keys_of(release.table for release in received.releases)
        # Windows of a table are held through nearly the same batches, so each batch's keys are read once.
        written = cache(partial(buffers.read_discards, bucket=received.bucket))
        for release in received.releases:
            parts = buffers.read_window(release.file, received.bucket, range(*release.parts))
            earlier = (written(batch, table=release.table) for batch in range(*release.batches)) if parts else ()
            overtaking = [keys for keys in (fresh[release.table], *earlier) if len(keys)]
            for rows in parts:
                kept = _without(rows, overtaking)
                self._discarded += rows.num_rows - kept.num_rows
                self._reads += kept.num_rows
                yield Outgoing([blocks.Run(release.topic, release.table, len(kept))], kept, release.file)


def sent(runs: Sequence[blocks.Run], records: pa.RecordBatch) -> tuple[Sequence[blocks.Run], pa.RecordBatch]:
    """Return the records that are sent to Kafka, and their runs: all records except those that a transform has dropped.

    A source task marks a dropped record with partition -1. Such a record is not sent, but it still counts as an event
    of its row: an older row of a window with this key is discarded (`BucketBatch.keys_of`).
    """
    goes = records.column("partition").to_numpy() >= 0
    return (runs, records) if goes.all() else blocks.kept(runs, records, goes)


def _without(rows: pa.RecordBatch, overtaking: Sequence[pa.Array]) -> pa.RecordBatch:
    """Return `rows` without those whose identity is in one of `overtaking`.

    `overtaking` has one array per batch. Together they may exceed the 2 GiB that Arrow allows in one array.
    """
    identity = overtaken_by(rows)
    gone = [pc.is_in(identity, value_set=keys) for keys in overtaking]
    overtaken = reduce(pc.or_, gone) if gone else None
    return rows if overtaken is None or not pc.any(overtaken).as_py() else rows.filter(pc.invert(overtaken))


class OpenTransaction(AbstractContextManager["OpenTransaction"], Protocol):
    """The part of `kafka.transaction.Transaction` that a bucket uses."""

    def send(self, topics: Sequence[tuple[str, int]], records: pa.RecordBatch) -> None: ...
    def commit(self, place: str = "") -> None: ...


class BucketTransactions(Protocol):
    """The part of `kafka.transaction.BucketWriter` that a bucket uses."""

    def open(self, bucket: int, batch: int, digest: str) -> OpenTransaction | None: ...


def write_bucket(
    rows: Iterator[pa.RecordBatch],
    buffers: WindowBuffers,
    transactions: BucketTransactions,
    partitions_of: PartitionsOf,
    sizes: SizeRule | None = None,
) -> BucketCounts:
    """Run one sink task: send the bucket's share of a batch to Kafka in one transaction, and return its counts.

    If an earlier attempt has committed this batch in this bucket, nothing is sent, and `skipped` is 1 in the counts.
    Raise SinkError; nothing of the batch is visible then.

    The order of the steps matters. Keys of held tables are written down before the commit, because a batch whose number
    is committed is never looked at again. A replay writes them too, in case the files were lost. Records that Kafka
    refuses for their size are written down before the commit as well. The transaction then begins again without them,
    as `sizes` says.
    """
    received = gather(rows)
    if received is None:
        return BucketCounts()
    if received.held_tables is not None:
        buffers.write_discards(received.batch, received.bucket, received.overtaken())
    left_out = LeftOut((received.batch, received.bucket, received.digest), buffers.refused, sizes or SizeRule())
    while True:
        try:
            return _send(Delivery(received, buffers), received, transactions, partitions_of, left_out)
        except RecordsTooLarge as error:
            left_out.learn(error)


def _send(
    delivery: Delivery,
    received: BucketBatch,
    transactions: BucketTransactions,
    partitions_of: PartitionsOf,
    left_out: LeftOut,
) -> BucketCounts:
    """Send all records but those left out, in one transaction.

    Raise RecordsTooLarge if more records must be left out.
    """
    outgoing = delivery.records()
    first = next(outgoing, None)
    if first is None:
        return delivery.counts
    transaction = transactions.open(received.bucket, received.batch, received.digest)
    if transaction is None:
        deque(outgoing, maxlen=0)
        return replace(delivery.counts, skipped=1)
    with transaction:
        for kept in map(left_out.kept, chain([first], outgoing)):
            if len(kept.runs) > 1:
                transaction.send([(run.topic, run.records) for run in kept.runs], kept.records)
                continue
            for run in kept.runs:
                for own_topic, of_topic in by_topic(run.topic, kept.records, partitions_of):
                    transaction.send([(own_topic, len(of_topic))], of_topic)
        letters = left_out.letters(partitions_of)
        if letters is not None:
            transaction.send([(left_out.letter_topic, len(letters))], letters)
        left_out.settle()
        transaction.commit(received.place)
    return left_out.counted(delivery.counts)

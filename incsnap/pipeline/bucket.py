"""What one bucket sends in one batch: released rows that no event has overtaken, then the events, in binlog order.

The rule of de-duplication lives here (the log always wins): a window row is dropped when its key has an event in the
batch that releases the window, or had one in a batch since the window was read. The released rows go first; since no
key is in both, their order does not matter. Pure but for the buffers it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.envelope.records import overtaken_by
from incsnap.errors import SinkError
from incsnap.pipeline import blocks
from incsnap.pipeline.progress import BucketCounts


class Buffers(Protocol):
    """What is needed of ``buffer.WindowBuffers``."""

    def read_window(self, file: str, bucket: int) -> pa.RecordBatch | None: ...
    def read_discards(self, batches: Iterable[int], bucket: int, table: str) -> pa.Array: ...


@dataclass(slots=True)
class BucketBatch:
    """The blocks of one bucket and batch, in order."""

    batch: int
    bucket: int
    #: (topic, table or "" for a notification, records)
    records: list[tuple[str, str, pa.RecordBatch]] = field(default_factory=list)
    releases: list[blocks.Release] = field(default_factory=list)
    held: tuple[str, ...] = ()
    has_hold: bool = False

    def keys_of(self, table: str) -> pa.Array:
        """Identities of all events of the table in this batch and bucket: inserts, both of updates, deletes."""
        found = [overtaken_by(records) for _, owner, records in self.records if owner == table and table]
        return pa.concat_arrays(found) if found else pa.array([], pa.binary())

    def overtaken(self) -> dict[str, pa.Array]:
        """By table, what windows that stay unreleased must be told."""
        return {table: pc.unique(self.keys_of(table)) for table in self.held}


@dataclass(frozen=True, slots=True)
class Delivery:
    """What to write, in order, and what to count."""

    records: list[tuple[str, pa.RecordBatch]]
    counts: BucketCounts


def gather(batches: Iterable[pa.RecordBatch]) -> BucketBatch | None:
    """The rows a sink task was given (``blocks.SCHEMA``), sorted; ``None`` when it was given none.

    Raises ``SinkError`` when there is more than one bucket or batch among them: their records would share a
    transaction, and a bucket its fence.
    """
    table = pa.Table.from_batches(list(batches)) if (batches := [b for b in batches if b.num_rows]) else None
    if table is None:
        return None
    owners = set(zip(table.column("batch").to_pylist(), table.column("bucket").to_pylist(), strict=True))
    if len(owners) != 1:
        raise SinkError(
            f"A sink task was given blocks of {len(owners)} (batch, bucket) pairs: {sorted(owners)[:4]}",
            "Repartition with DataFrame.repartitionById(buckets, col('bucket')); please report it with the log.",
        )
    ((batch, bucket),) = owners
    mine = BucketBatch(batch, bucket)
    for row in pc.sort_indices(table, [("ord", "ascending")]).to_pylist():
        _add(mine, {name: table.column(name)[row] for name in ("kind", "topic", "tbl", "block")})
    return mine


def _add(mine: BucketBatch, row: Mapping[str, Any]) -> None:
    kind, block = row["kind"].as_py(), row["block"].as_buffer()
    if kind in (blocks.EVENTS, blocks.NOTES):
        owner = row["tbl"].as_py() if kind == blocks.EVENTS else ""
        mine.records += [(row["topic"].as_py(), owner, records) for records in blocks.decode(block)]
    elif kind == blocks.RELEASE:
        mine.releases.append(blocks.decode_release(block.to_pybytes()))
    elif kind == blocks.HOLD:
        mine.held = tuple(dict.fromkeys((*mine.held, *blocks.decode_hold(block.to_pybytes()))))
        mine.has_hold = True
    else:
        raise SinkError(f"A block of unknown kind {kind!r} came to bucket {mine.bucket}")


def deliver(mine: BucketBatch, buffers: Buffers) -> Delivery:
    """Released rows less overtaken ones, then events and notifications."""
    out: list[tuple[str, pa.RecordBatch]] = []
    reads = discarded = 0
    fresh = {table: mine.keys_of(table) for table in {release.table for release in mine.releases}}
    for release in mine.releases:
        window = buffers.read_window(release.file, mine.bucket)
        if window is None or not window.num_rows:
            continue
        earlier = buffers.read_discards(release.batches, mine.bucket, release.table)
        gone = pa.concat_arrays([fresh[release.table], earlier])
        if len(gone):
            kept = window.filter(pc.invert(pc.is_in(overtaken_by(window), value_set=gone)))
            discarded += window.num_rows - kept.num_rows
            window = kept
        reads += window.num_rows
        out.append((release.topic, window))
    out += [(topic, records) for topic, _, records in mine.records]
    out = [(topic, records) for topic, records in out if records.num_rows]
    changes = sum(len(records) - records.column("value").null_count for _, table, records in mine.records if table)
    size = sum(_bytes(records.column(name)) for _, records in out for name in ("key", "value"))
    return Delivery(out, BucketCounts(events=changes, reads=reads, discarded=discarded, bytes=size))


def _bytes(column: Any) -> int:
    return pc.sum(pc.binary_length(column)).as_py() or 0

"""The status of a job as read from its last offset and its counters on disk.

This needs neither Spark nor a running job. Both files change while the job runs, so a file that is torn or missing for
a moment is skipped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.offsets import QueueFiles
from incsnap.checkpoint.progress import Progress, read_progress
from incsnap.errors import OffsetError, StoreFailed
from incsnap.events import BinlogPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.offset import Offset
from incsnap.tables import TableId


@dataclass(frozen=True, slots=True)
class Status:
    """The end of the newest planned batch, and the sums of the committed ones."""

    batch: int  #: number of the newest planned batch
    delivered: GtidSet  #: GTIDs of transactions that are wholly in batches
    position: BinlogPosition  #: binlog position of the batch's end
    reading: tuple[TableId, ...]  #: tables that are being read
    queue: tuple[TableId, ...]  #: tables that wait
    rows_read: int  #: rows of the tables being read, as selected, before overtaken rows are discarded
    windows_in_flight: int  #: number of windows that are planned and not wholly sent
    paused: bool  #: whether a signal has paused snapshots
    sent: Progress  #: sums of the committed batches
    prepared: tuple[str, ...]  #: ids of XA transactions whose rows wait for XA COMMIT


def read_status(checkpoint_location: str) -> Status | None:
    """Return the status of the job with this `checkpoint.location`, or None before its first batch.

    Raise OffsetError if the checkpoint is not one of incsnap, or is of a newer release.
    """
    root = checkpoint_location.rstrip("/")
    offset = newest_offset(root)
    if offset is None:
        return None
    context = offset.snapshot
    return Status(
        batch=offset.batch,
        delivered=offset.stream.delivered,
        position=offset.stream.at,
        reading=tuple(scan.table for scan in context.scans),
        queue=tuple(request.table for request in context.queue),
        rows_read=sum(scan.rows_read for scan in context.scans),
        windows_in_flight=len(context.in_flight),
        paused=context.paused,
        sent=read_progress(own_part(root)),
        prepared=tuple(each.xid for each in offset.prepared),
    )


def has_no_snapshot_left(checkpoint_location: str) -> bool:
    """Return True if the job with this `checkpoint.location` has sent all rows of all snapshots.

    With `snapshot.mode=initial_only` the job then need not start. Return False if the checkpoint cannot be read; the
    start reports that.
    """
    root = checkpoint_location.rstrip("/")
    try:
        newest, done = newest_offset(root), newest_offset(root, "commits")
    except (OSError, ValueError, OffsetError, StoreFailed):
        return False
    return newest is not None and newest == done and newest.has_no_snapshot_left


def newest_offset(checkpoint_location: str, log: str = "offsets") -> Offset | None:
    """Return the newest offset that Spark has logged, or None. With `log="commits"` return the newest committed offset.

    Spark writes a file for each batch: the version of the format, the batch's metadata, then one line for each source.
    Raise OffsetError if the offset cannot be loaded.
    """
    files = Files(checkpoint_location + "/spark")
    numbers = sorted((int(name) for name in files.names(log) if name.isdecimal()), reverse=True)
    # The newest file may be half written, or Spark's clean-up may just have removed it. The one before is nearly as
    # good.
    for number in numbers[:2]:
        content = files.read(f"offsets/{number}")
        lines = content.to_pybytes().decode("utf-8", "replace").splitlines() if content is not None else []
        try:
            saved = json.loads(lines[-1])
        except (IndexError, ValueError):
            continue
        return Offset.load(saved, QueueFiles(Files(own_part(checkpoint_location))))
    return None

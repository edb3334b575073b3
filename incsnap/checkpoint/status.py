"""How a job is doing, read from the two things it leaves on disk: its last offset and its counters.

Needs neither Spark nor the job. Both change while it runs; what is torn or gone for a moment is passed over.
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
    """The end of the newest planned batch, and the sums of the committed ones (``sent``).

    ``reading``: the tables being read, ``queue``: those that wait. ``rows_read``: of the tables being read, as
    selected, before overtaken rows are discarded. ``prepared``: XA transactions whose rows wait for XA COMMIT.
    """

    batch: int
    delivered: GtidSet
    position: BinlogPosition
    reading: tuple[TableId, ...]
    queue: tuple[TableId, ...]
    rows_read: int
    windows_in_flight: int
    paused: bool
    sent: Progress
    prepared: tuple[str, ...]


def read_status(checkpoint_location: str) -> Status | None:
    """The status of the job with this ``checkpoint.location``; None before its first batch.

    Raises ``OffsetError`` when the checkpoint is of something else or of a newer release.
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
    """Has the job with this ``checkpoint.location`` sent all rows of all snapshots? False too where that cannot be
    read, which the start will tell."""
    root = checkpoint_location.rstrip("/")
    try:
        newest, done = newest_offset(root), newest_offset(root, "commits")
    except (OSError, ValueError, OffsetError, StoreFailed):
        return False
    return newest is not None and newest == done and newest.has_no_snapshot_left


def newest_offset(checkpoint_location: str, log: str = "offsets") -> Offset | None:
    """The newest offset that Spark has written ahead, or with ``log="commits"`` the newest committed one.

    A file for each batch: the version of Spark's format, the batch's metadata, then one line for each source.
    """
    files = Files(checkpoint_location + "/spark")
    numbers = sorted((int(name) for name in files.names(log) if name.isdecimal()), reverse=True)
    # The newest may be half written or just removed by Spark's clean-up; the one before it is nearly as good.
    for number in numbers[:2]:
        content = files.read(f"offsets/{number}")
        lines = content.to_pybytes().decode("utf-8", "replace").splitlines() if content is not None else []
        try:
            saved = json.loads(lines[-1])
        except (IndexError, ValueError):
            continue
        return Offset.load(saved, QueueFiles(Files(own_part(checkpoint_location))))
    return None

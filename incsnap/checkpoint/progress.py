"""What the job has sent so far, as numbers in one small file that ``incsnap status`` and the progress bar read.

Each Spark batch is added exactly once: the file carries the number of the last one it holds, and a batch that is
committed again changes nothing. Counts are those of the blocks, not of one attempt: a replay that Kafka lets us skip
counts the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

from incsnap.checkpoint.files import Files
from incsnap.monitoring.status import Sums

_NAME = "progress.json"
#: What this process has written last, by folder and job: one process commits all batches of a query, and in a bucket to
#: read the file again is a request in each.
_written: dict[tuple[str, str], Progress] = {}


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """What one bucket has sent of a batch: change events, rows of windows, rows that an event has overtaken, bytes of
    keys and values; ``skipped`` is 1 when the batch had been committed to Kafka before."""

    events: int = 0
    reads: int = 0
    discarded: int = 0
    skipped: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Progress(Sums):
    """The sums of the status, that of ``BucketCounts.skipped``, and Spark's number of the last batch (-1: none yet)."""

    skipped: int = 0
    last_batch: int = -1


def read_progress(root: str) -> Progress:
    """The counters in ``checkpoint.location/incsnap``; zeros when there is no file yet, or a torn one."""
    content = Files(root).read(_NAME)
    try:
        return Progress(**json.loads(content.to_pybytes())) if content is not None else Progress()
    except (ValueError, TypeError):
        return Progress()


def forget_progress(files: Files) -> None:
    """Forgets the counters of a job whose place another takes: Spark numbers its batches from 0 again."""
    files.delete(_NAME)


def add_batch(root: str, job_id: str, batch: int, counts: Iterable[BucketCounts]) -> Progress:
    """Adds a batch, once; called by one thread of the driver."""
    progress = _written.get((root, job_id))
    # Behind any other batch than the one before this, another process was the last to write.
    if progress is None or progress.last_batch != batch - 1:
        progress = read_progress(root)
    if batch <= progress.last_batch:
        return progress
    sums = asdict(progress)
    for count in counts:
        for field in fields(count):
            sums[field.name] += getattr(count, field.name)
    progress = Progress(**{**sums, "batches": progress.batches + 1, "last_batch": batch})
    Files(root).write(_NAME, json.dumps(asdict(progress)).encode())
    _written[root, job_id] = progress
    return progress

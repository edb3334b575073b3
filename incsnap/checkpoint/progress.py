"""The counters of everything that a job has sent, in one small file for `incsnap status` and the progress bar.

Each Spark batch is added exactly once. The file has the number of the last batch, and a batch that is committed again
changes nothing. The counts are those of the blocks, not of an attempt. So a replayed batch that Kafka already has
counts the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass, fields
from operator import add, sub

from incsnap.checkpoint.files import Files
from incsnap.monitoring.status import Sums

_NAME = "progress.json"
#: The last values that this process has written, by folder and job. One process commits all batches of a query, and in
#: a bucket each reading of the file would be a request.
_written: dict[tuple[str, str], Progress] = {}


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """The counts of one bucket in one batch."""

    events: int = 0  #: change events
    reads: int = 0  #: rows of windows that were sent
    discarded: int = 0  #: rows of windows that an event had overtaken
    skipped: int = 0  #: 1 if Kafka already had the batch
    bytes: int = 0  #: keys and values
    creates: int = 0  #: change events of inserted rows
    updates: int = 0  #: change events of updated rows
    deletes: int = 0  #: change events of deleted rows

    def __add__(self, other: BucketCounts) -> BucketCounts:
        """Return the sum of both counts, field by field."""
        return BucketCounts(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: BucketCounts) -> BucketCounts:
        """Return these counts reduced by the other ones, field by field."""
        return BucketCounts(*map(sub, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class Progress(Sums):
    """The sums of all committed batches."""

    skipped: int = 0  #: buckets' batches that Kafka already had
    last_batch: int = -1  #: Spark's number of the last batch; -1: none yet


def read_progress(root: str) -> Progress:
    """Return the counters in the folder `root`; zeros if the file is missing or torn."""
    try:
        return Progress(**(Files(root).read_json(_NAME) or {}))
    except (ValueError, TypeError):
        return Progress()


def forget_progress(files: Files) -> None:
    """Delete the counters of a job that another job replaces. Spark numbers the new job's batches from 0 again."""
    files.delete(_NAME)


def add_batch(root: str, job_id: str, batch: int, counts: Iterable[BucketCounts]) -> Progress:
    """Add a batch to the counters, unless it was added before, and return them. One thread of the driver calls this."""
    progress = _written.get((root, job_id))
    # If the last batch is not the previous one, another process was the last to write.
    if progress is None or progress.last_batch != batch - 1:
        progress = read_progress(root)
    if batch <= progress.last_batch:
        return progress
    sums = asdict(progress)
    for count in counts:
        for field in fields(count):
            sums[field.name] += getattr(count, field.name)
    progress = Progress(**{**sums, "batches": progress.batches + 1, "last_batch": batch})
    Files(root).write_json(_NAME, asdict(progress))
    _written[root, job_id] = progress
    return progress

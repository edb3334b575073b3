"""Repair of Spark's logs of offsets and commits after a power cut.

Spark writes these logs without forcing them to the disk. After a power cut the newest files may be missing, empty or
torn. So before a batch is planned, the log files of the previous batch are forced to the disk, like the plan itself
(`planned`). A power cut can then only take what Spark has written for the newest batch. That is repaired before Spark
reads the logs: the batch is planned again with the same end, and what was sent of it is skipped.

All this is for a checkpoint on a local disk. Other file systems keep what they have accepted.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from pathlib import Path

from incsnap.checkpoint.file_systems import force
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import is_local, own_part
from incsnap.checkpoint.offsets import QueueFiles
from incsnap.checkpoint.planned_batch import planned_end
from incsnap.errors import OffsetError, shorten
from incsnap.snapshot.offset import Offset

_log = logging.getLogger(__name__)
_HINT = (
    "The disk has lost more than a power cut should take. Put the whole checkpoint.location back as it was last, or"
    " start with a new one and signal execute-snapshot for the tables."
)


class SparkLog:
    """Spark's logs below `checkpoint.location`."""

    def __init__(self, checkpoint_location: str) -> None:
        self._root = checkpoint_location.rstrip("/")
        self._local = is_local(checkpoint_location)
        self._spark = Path(Files(self._root).path("spark")) if self._local else Path()
        self._metadata_forced = False

    def force(self) -> None:
        """Force to the disk what Spark has written for the batch before the one that is being planned (two files, about
        5 ms)."""
        if not self._local:
            return
        for log in ("offsets", "commits"):
            for number in self._numbers(log)[-1:]:
                # There is also a checksum file if the user's own session writes the logs.
                for name in (str(number), f".{number}.crc"):
                    _force(self._spark / log / name)
            _force(self._spark / log)
        if not self._metadata_forced:
            self._metadata_forced = True
            _force(self._spark / "metadata")
            _force(self._spark)

    def mend(self) -> None:
        """Remove files that a power cut has torn. Call it before Spark starts.

        Raise OffsetError with a file's name if the job cannot continue from what is left.
        """
        if not self._local:
            return
        files = Files(own_part(self._root))
        plan = planned_end(files)
        offsets = self._whole_offsets(plan)
        newest = offsets[-1] if offsets else -1
        done = self._batch_of(newest)
        # Spark also reads the offset before the newest: the newest batch begins there.
        if newest > 0 and self._offset(newest - 1) is None:
            raise OffsetError(f"{self._file('offsets', newest - 1)} is gone, empty or torn", _HINT)
        if plan is not None and plan.batch > done + 1:
            raise OffsetError(
                f"{self._spark / 'offsets'} lacks the files of batches {done + 1} to {plan.batch - 1},"
                f" which {files.path('planned-offset.json')} comes after",
                _HINT,
            )
        self._mend_commits(newest, lost=plan is not None and plan.batch == done + 1)
        self._mend_metadata(has_batches=bool(offsets))

    def _whole_offsets(self, plan: Offset | None) -> list[int]:
        """Return the numbers of the offset log's files, without a torn newest one.

        A torn newest file is removed if `plan` is the end of its batch, because the batch is then planned again. Raise
        OffsetError if `plan` is not.
        """
        offsets = self._numbers("offsets")
        if not offsets or self._offset(offsets[-1]) is not None:
            return offsets
        torn = offsets.pop()
        before = self._offset(offsets[-1]) if offsets else None
        batch = before.batch + 1 if before is not None else 1
        if plan is None or plan.batch != batch or (before is not None and plan.job_id != before.job_id):
            raise OffsetError(f"{self._file('offsets', torn)} is empty or torn", _HINT)
        self._drop("offsets", torn)
        return offsets

    def _batch_of(self, number: int) -> int:
        """Return the batch that ends at the offset `number`, or 0 if there is no such offset."""
        offset = self._offset(number) if number >= 0 else None
        return offset.batch if offset is not None else 0

    def _mend_metadata(self, *, has_batches: bool) -> None:
        """Remove a torn file with the query's id if there is no batch yet. Spark then makes a new id.

        Raise OffsetError if there are batches.
        """
        metadata = self._spark / "metadata"
        if metadata.exists() and not _whole(metadata):
            if has_batches:
                raise OffsetError(f"{metadata} is empty or torn", _HINT)
            metadata.unlink()

    def _mend_commits(self, newest: int, *, lost: bool) -> None:
        """Remove torn commits and those after the offset `newest`.

        With `lost` the batch after `newest` was planned and may have been sent, so `newest` is done. Raise OffsetError
        if its commit is missing then.
        """
        commits = self._numbers("commits")
        while commits and (commits[-1] > newest or not self._committed(commits[-1])):
            self._drop("commits", commits.pop())
        if lost and newest >= 0 and (not commits or commits[-1] < newest):
            raise OffsetError(
                f"{self._file('commits', newest)} is gone or torn, and a later batch has been planned", _HINT
            )

    def _numbers(self, log: str) -> list[int]:
        """Return the numbers of the log's files in ascending order."""
        with suppress(FileNotFoundError):
            return sorted(int(name) for name in os.listdir(self._spark / log) if name.isdecimal())
        return []

    def _offset(self, number: int) -> Offset | None:
        """Return the offset in a file of the log, or None if the file is missing or torn.

        Raise OffsetError if the file is whole but its offset cannot be loaded.
        """
        path = self._file("offsets", number)
        try:
            lines = path.read_text("utf-8", "replace").splitlines()
            json.loads(lines[1])
            saved = json.loads(lines[2])
        except (FileNotFoundError, IndexError, ValueError):
            return None
        try:
            return Offset.load(saved, QueueFiles(Files(own_part(self._root))))
        except OffsetError as error:
            raise OffsetError(f"{path}: {shorten(error.message)}", error.hint) from None

    def _committed(self, number: int) -> bool:
        return _whole(self._file("commits", number), behind=1)

    def _file(self, log: str, number: int) -> Path:
        return self._spark / log / str(number)

    def _drop(self, log: str, number: int) -> None:
        _log.warning(
            "%s was cut short by a crash of the machine: removed, its batch is repeated as planned",
            self._file(log, number),
        )
        for name in (f".{number}.crc", str(number)):
            with suppress(FileNotFoundError):
                (self._spark / log / name).unlink()


def _whole(path: Path, behind: int = 0) -> bool:
    """Return True if the file has JSON after `behind` lines."""
    try:
        json.loads("\n".join(path.read_text("utf-8", "replace").splitlines()[behind:]))
    except ValueError:
        return False
    return True


def _force(path: Path) -> None:
    with suppress(FileNotFoundError):
        force(path)

"""Spark's logs of offsets and commits, which Spark writes but does not force to the disk.

After a power cut the newest files may be gone, empty or torn. So before a batch is planned the logs of the batch before
it are forced to the disk, as the plan itself is (``planned``). What a power cut can then take is what Spark has written
of the newest batch, and this is mended before Spark looks: its end is planned again as it was, and what has been sent
of it is skipped. Only for a checkpoint on a local disk; other file systems keep what they have accepted.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from pathlib import Path

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import is_local, own_part
from incsnap.checkpoint.offsets import QueueFiles
from incsnap.checkpoint.planned import planned
from incsnap.errors import OffsetError, shorten
from incsnap.snapshot.offset import Offset

_log = logging.getLogger(__name__)
_HINT = (
    "The disk has lost more than a power cut should take. Put the whole checkpoint.location back as it was last, or"
    " start with a new one and signal execute-snapshot for the tables."
)


class SparkLog:
    """The logs beneath ``checkpoint.location``."""

    def __init__(self, checkpoint_location: str) -> None:
        self._root = checkpoint_location.rstrip("/")
        self._local = is_local(checkpoint_location)
        self._spark = Path(Files(self._root).path("spark")) if self._local else Path()
        self._metadata_forced = False

    def force(self) -> None:
        """Forces what Spark has written of the batch before the one that is being planned (two files: some 5 ms)."""
        if not self._local:
            return
        for log in ("offsets", "commits"):
            for number in self._numbers(log)[-1:]:
                # Beside it lies a checksum where Spark's settings are the user's own.
                for name in (str(number), f".{number}.crc"):
                    _force(self._spark / log / name)
            _force(self._spark / log)
        if not self._metadata_forced:
            self._metadata_forced = True
            _force(self._spark / "metadata")
            _force(self._spark)

    def mend(self) -> None:
        """Removes what a power cut has torn; to be called before Spark starts. Raises ``OffsetError`` with a file's
        name where the job cannot go on from what is left."""
        if not self._local:
            return
        files = Files(own_part(self._root))
        plan = planned(files)
        offsets = self._whole_offsets(plan)
        newest = offsets[-1] if offsets else -1
        done = self._batch_of(newest)
        # Spark reads the one before the newest too: the newest batch begins there.
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
        """The numbers of the offset log's files. The newest is removed where it is torn and ``plan`` says how its batch
        ends: that batch is planned again then. Raises ``OffsetError``."""
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
        """The batch at whose end that offset is; 0 where there is none."""
        offset = self._offset(number) if number >= 0 else None
        return offset.batch if offset is not None else 0

    def _mend_metadata(self, *, has_batches: bool) -> None:
        """The query's id, which Spark makes anew where the file is not there and no batch has it yet."""
        metadata = self._spark / "metadata"
        if metadata.exists() and not _whole(metadata):
            if has_batches:
                raise OffsetError(f"{metadata} is empty or torn", _HINT)
            metadata.unlink()

    def _mend_commits(self, newest: int, *, lost: bool) -> None:
        """``lost``: the batch behind ``newest`` was planned and may have been sent, so ``newest`` is done."""
        commits = self._numbers("commits")
        while commits and (commits[-1] > newest or not self._committed(commits[-1])):
            self._drop("commits", commits.pop())
        if lost and newest >= 0 and (not commits or commits[-1] < newest):
            raise OffsetError(
                f"{self._file('commits', newest)} is gone or torn, and a later batch has been planned", _HINT
            )

    def _numbers(self, log: str) -> list[int]:
        with suppress(FileNotFoundError):
            return sorted(int(name) for name in os.listdir(self._spark / log) if name.isdecimal())
        return []

    def _offset(self, number: int) -> Offset | None:
        """The offset in a file of the log; ``None`` when it is not whole. Raises ``OffsetError`` when it is whole and
        not ours."""
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
    """Is there JSON behind so many lines?"""
    try:
        json.loads("\n".join(path.read_text("utf-8", "replace").splitlines()[behind:]))
    except ValueError:
        return False
    return True


def _force(path: Path) -> None:
    with suppress(FileNotFoundError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

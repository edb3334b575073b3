"""The folder in which a comparison keeps what it has read of both sides.

`plan.json` says what is read, and each part that was read has a file. A file is there only if it is whole, so another
process can go on where this one ends. The folder has keys of rows, so only its user may read it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from filelock import FileLock, Timeout
from pydantic_core import from_json as parsed
from pydantic_core import to_json as written

from incsnap.columns.arrow import RecordBatch
from incsnap.config.settings import Settings
from incsnap.config.user_folders import cache_folder
from incsnap.errors import ConfigError
from incsnap.gtid import GtidSet
from incsnap.planner.key_ranges import RangePart
from incsnap.snapshot.dataclass_json import from_json, to_json
from incsnap.snapshot.keys import Key
from incsnap.snapshot.questions import KeyOrder
from incsnap.verify.proof import Low, RowPlace
from incsnap.verify.side_blocks import BlockFacts, read_block

ROWS, RECORDS = "rows", "records"  #: the sides, as files are named
_PLAN, _LOCK = "plan.json", ".lock"
_AGAIN = "Run the command without --resume to begin again."


class FolderNotWritten(ConfigError):
    """An error: the disk is full, or the folder may not be written."""


@dataclass(frozen=True, slots=True)
class KeptRange:
    """A range of a table's key."""

    table: int  #: number of the table in the order of all tables
    order: KeyOrder | None = None  #: as in `RangePart`
    lower: Key | None = None  #: as in `RangePart`
    upper: Key | None = None  #: as in `RangePart`

    @property
    def part(self) -> RangePart:
        """The range as a part of tasks."""
        return RangePart(self.order, self.lower, self.upper)


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """The parts that a comparison reads, and its low watermark."""

    compared: str  #: text that is another one for other tables, settings or samples
    seed: int  #: seed of the hashes
    executed: str | None = None  #: GTID set of the low watermark; None: not noted yet
    end: tuple[int, int, int] = (0, 0, 0)  #: end of the binlog behind it
    ranges: tuple[KeptRange, ...] | None = None  #: parts of the tables; None: not divided yet
    #: topic, partition, begin and end of what is read of the topics; None: not noted yet
    topics: tuple[tuple[str, int, int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class BlockPlaces:
    """The files of a comparison's parts. A task on the same machine may write them.

    The seed is part of their names. So a task that outlives its comparison spoils no later one in the same folder.
    """

    folder: str  #: absolute path of the folder
    seed: int  #: seed of the hashes

    def path(self, side: str, number: int) -> Path:
        """Return the path of a part's file."""
        return Path(self.folder, f"{side}-{self.seed:016x}-{number:06d}.arrow")

    def write(self, side: str, number: int, block: bytes) -> None:
        """Keep the block of a part. Raise ConfigError if the file cannot be written."""
        _write(self.path(side, number), block)


class KeptSides:
    """The two sides of a comparison in a folder."""

    def __init__(self, folder: Path, plan: KeptPlan) -> None:
        self.folder, self._plan = folder, plan
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @classmethod
    def new(cls, folder: Path, compared: str) -> KeptSides:
        """Return empty sides. The files of an earlier comparison are removed."""
        _clear(folder)
        sides = cls(folder, KeptPlan(compared, secrets.randbits(63)))
        sides._write()
        return sides

    @classmethod
    def resumed(cls, folder: Path, compared: str) -> KeptSides:
        """Return the sides that an earlier process has kept. Raise ConfigError if they are not of this comparison."""
        try:
            plan = from_json(KeptPlan, parsed((folder / _PLAN).read_bytes()))
        except (OSError, ValueError):
            raise ConfigError(f"{folder} has no comparison that was interrupted", _AGAIN) from None
        if plan.compared != compared:
            raise ConfigError(
                "FILE, its tables or the options are not those of the comparison that was interrupted", _AGAIN
            )
        return cls(folder, plan)

    def remove(self) -> None:
        """Remove the files."""
        _clear(self.folder)

    # -- the plan

    @property
    def seed(self) -> int:
        """The seed of the hashes."""
        return self._plan.seed

    @property
    def low(self) -> Low | None:
        """The low watermark; None before `note_low`."""
        executed = self._plan.executed
        return None if executed is None else Low(GtidSet.parse(executed), RowPlace(*self._plan.end))

    def note_low(self, low: Low) -> None:
        """Keep the low watermark."""
        self._change(replace(self._plan, executed=str(low.executed), end=(low.end.file, low.end.pos, low.end.row)))

    @property
    def ranges(self) -> Sequence[KeptRange] | None:
        """The parts of the tables; None before `note_ranges`."""
        return self._plan.ranges

    def note_ranges(self, ranges: Sequence[KeptRange]) -> None:
        """Keep how the tables are divided."""
        self._change(replace(self._plan, ranges=tuple(ranges)))

    @property
    def topics(self) -> Sequence[tuple[str, int, int, int]] | None:
        """Topic, partition, begin and end of what is read of the topics; None before `note_topics`."""
        return self._plan.topics

    def note_topics(self, begins: Mapping[tuple[str, int], int], ends: Mapping[tuple[str, int], int]) -> None:
        """Keep what is read of the topics."""
        self._change(replace(self._plan, topics=tuple((*each, begins[each], end) for each, end in ends.items())))

    def _change(self, plan: KeptPlan) -> None:
        self._plan = plan
        self._write()

    def _write(self) -> None:
        _write(self.folder / _PLAN, written(to_json(KeptPlan, self._plan)))

    # -- the parts

    @property
    def places(self) -> BlockPlaces:
        """The files of the parts."""
        return BlockPlaces(str(self.folder.absolute()), self.seed)

    def left(self, side: str, count: int) -> list[int]:
        """Return the numbers below `count` of parts that have no file yet."""
        return [number for number in range(count) if not self.places.path(side, number).exists()]

    @contextmanager
    def block(self, side: str, number: int) -> Iterator[tuple[RecordBatch, BlockFacts]]:
        """Return the columns and the facts of a part. The columns are gone behind the block."""
        with pa.memory_map(str(self.places.path(side, number))) as mapped:
            yield read_block(mapped)


def kept_folder(settings: Settings, tables: Sequence[str], sample: str) -> Path:
    """Return the folder for a comparison of these tables and this sample, in the user's cache folder."""
    servers = [settings.kafka.bootstrap_servers, settings.mysql.address]
    named = compared_text([settings.topic_prefix, *servers, *tables, sample])
    return cache_folder() / "verify" / named


def can_resume(folder: Path) -> bool:
    """Return True if the folder has the sides of a comparison that was interrupted."""
    return (folder / _PLAN).exists()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the folder for this process. Raise ConfigError if another one holds it, or if it cannot be written."""
    lock = FileLock(folder / _LOCK, timeout=0, fallback_to_soft=False)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise ConfigError(
            f"Another process compares these tables with their topics, in {folder}", "Wait until it has ended."
        ) from None
    except OSError as error:
        raise _not_written(folder, error) from None
    try:
        yield
    finally:
        lock.release()


def compared_text(parts: Collection[str]) -> str:
    """Return a short text that is another one for other parts."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _write(path: Path, content: bytes) -> None:
    beside = path.with_suffix(f".{os.getpid()}.part")
    try:
        with open(beside, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(content)
        beside.replace(path)
    except OSError as error:
        raise _not_written(path.parent, error) from None


def _not_written(folder: Path, error: OSError) -> FolderNotWritten:
    return FolderNotWritten(
        f"{folder} cannot be written: {error.strerror or error}",
        "Set the environment variable INCSNAP_CACHE to a folder on a disk with room. In a running job it is TMPDIR.",
    )


def _clear(folder: Path) -> None:
    for path in folder.glob("*") if folder.is_dir() else ():
        if path.name != _LOCK:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

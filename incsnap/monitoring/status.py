"""How a job is doing, as one value: what the status file, ``incsnap status``, the metrics and the page all show.

The driver writes it beside the checkpoint as versioned JSON, with every field; times are milliseconds since 1970 by the
clock of the driver's machine, sizes are bytes, durations say their unit. Pure values; nothing here reads or writes.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from incsnap.errors import OffsetError, shorten
from incsnap.snapshot.dataclass_json import from_json

#: Another version is refused and not migrated: the file is renewed every second by the release that runs the job.
FORMAT, VERSION = "incsnap-status", 1

STARTING, RUNNING, RETRYING, STOPPING, STOPPED, FAILED = (
    "starting",
    "running",
    "retrying",
    "stopping",
    "stopped",
    "failed",
)
#: States in which the job has ended and says so; in any other one a job that is silent is dead.
ENDED = frozenset({STOPPED, FAILED})

#: An hour: long enough for the person on call to give the binlog more time.
_SOON_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys above ``lower`` up to ``upper``, shortened as in notifications."""

    lower: str
    upper: str


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table that is being read.

    ``rows_done``: rows of released windows, before those that events have overtaken are discarded. ``rows_expected``
    lies in ``rows_low`` to ``rows_high`` and is None where nothing is known of it. ``rows_per_second`` and the three
    ``seconds`` are None until rows were released for a while. ``read_again``: ranges that wait to be read once more,
    ``readings``: how often the one among them that was read most often was. ``planned_key``: all keys up to it are
    read or being read. ``lost_readings``: readings that came to no end and were repeated.
    """

    number: int
    table: str
    signal: str
    condition: str = ""
    rows_done: int = 0
    rows_expected: int | None = None
    rows_low: int | None = None
    rows_high: int | None = None
    rows_per_second: float | None = None
    seconds_left: float | None = None
    seconds_low: float | None = None
    seconds_high: float | None = None
    chunk_rows: int = 0
    windows: int = 0
    planned_key: str = ""
    maximum_key: str = ""
    read_again: int = 0
    readings: int = 0
    not_before_ms: int = 0
    quarantined: tuple[KeyRange, ...] = ()
    lost_readings: int = 0


@dataclass(frozen=True, slots=True)
class WindowStatus:
    """A window in flight. ``state``: ``reading``, ``read`` (it waits until the stream has passed its high watermark,
    which is at ``file`` and ``pos``) or ``releasing``. ``rows``: that were read, or that it was cut for."""

    id: str
    table: str
    state: str
    rows: int
    planned_ms: int
    bytes: int = 0
    file: str = ""
    pos: int = 0
    parts: int = 1
    sent: int = 0
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class FinishedTable:
    """``status`` and ``missing_keys`` are those of Debezium's TABLE_SCAN_COMPLETED."""

    table: str
    signal: str
    status: str
    rows: int
    ended_ms: int
    reason: str = ""
    missing_keys: str = ""


@dataclass(frozen=True, slots=True)
class LimitStatus:
    """A limit of reading that is in force: its name as signals have it, the most that it may be, the signal that has
    set it ("" for the settings), and the worst of what was measured, None where nothing was."""

    name: str
    most: int
    signal: str = ""
    measured: int | None = None


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """``waits_for``: why no chunk is planned at the moment, "" where nothing is in the way. ``limits`` of reading are
    in force, and ``held_back_by`` names the one that chunks wait for. ``waiting``: tables that are not begun, the first
    of them by name in ``waiting_first``. ``rows_held``: of windows that are read and not sent. ``windows`` are listed
    up to a bound, ``windows_in_flight`` counts all. ``retried``: readings of chunks that failed or were lost since the
    job's start. ``finished``: the last tables that ended since then."""

    paused: bool = False
    waits_for: str = ""
    limits: tuple[LimitStatus, ...] = ()
    held_back_by: str = ""
    waiting: int = 0
    waiting_first: tuple[str, ...] = ()
    tables: tuple[TableStatus, ...] = ()
    windows_in_flight: int = 0
    windows: tuple[WindowStatus, ...] = ()
    rows_held: int = 0
    retried: int = 0
    finished: tuple[FinishedTable, ...] = ()

    @property
    def active(self) -> bool:
        """Is anything asked for and not finished?"""
        return bool(self.tables or self.waiting)


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """How far the stream of changes is.

    ``lag_ms``: from the commit of a change to its being in Kafka, the longest of the last second; it grows while
    nothing arrives, and is 0 where nothing is to come. ``lag_bytes``: of binlog between the stream and the server's end
    of it (``end_file``, ``end_pos``), None where that is not known. ``buffered_bytes`` of ``buffer_bytes`` are read
    ahead. ``needs_file``: the oldest file of the binlog that a restart reads; the server does not purge it before
    ``purge_not_before_ms`` (None: not known, 0: not by itself). ``prepared``: XA transactions whose rows wait for their
    XA COMMIT.
    """

    batch: int
    file: str
    pos: int
    delivered: str
    server_uuid: str = ""
    lag_ms: int = 0
    lag_bytes: int | None = None
    end_file: str = ""
    end_pos: int = 0
    last_change_ms: int = 0
    batch_ms: int = 0
    buffered_bytes: int = 0
    buffer_bytes: int = 0
    connected: bool = True
    disconnects: int = 0
    needs_file: str = ""
    purge_not_before_ms: int | None = None
    prepared: tuple[str, ...] = ()

    def is_purged_soon(self, now_ms: int) -> bool:
        """Return True if the server may purge ``needs_file`` within the next hour."""
        return bool(self.purge_not_before_ms) and (self.purge_not_before_ms or 0) - now_ms < _SOON_MS


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over all committed batches, since the job's first start. ``reads``: rows of windows that were sent,
    ``discarded``: those that an event had overtaken."""

    batches: int = 0
    events: int = 0
    reads: int = 0
    discarded: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Rates:
    """Each second, over the last ten; ``rows``: of windows, sent or discarded."""

    events: float = 0.0
    rows: float = 0.0
    bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """The last error that ended a run of the query. ``count``: failures in a row; 0 once a run has lasted."""

    message: str
    hint: str
    at_ms: int
    count: int = 0
    next_try_ms: int = 0


@dataclass(frozen=True, slots=True)
class NotificationStatus:
    """A notification that was sent, as Debezium writes it; IN_PROGRESS is left out, the tables themselves tell more."""

    id: str
    type: str
    timestamp_ms: int
    fields: dict[str, str]


@dataclass(frozen=True, slots=True)
class JobStatus:
    """``state`` is one of the names above, since ``since_ms``. ``written_ms``: when this was true; a job that lives
    writes it anew every ``every_ms``. ``asked_ms``: when Spark last asked the planner for a batch: several times a
    second, or at the end of each batch. ``stream`` is None before the first planning of a life."""

    release: str
    topic_prefix: str
    host: str
    pid: int
    started_ms: int
    state: str
    since_ms: int
    written_ms: int
    every_ms: int
    asked_ms: int = 0
    stream: StreamStatus | None = None
    snapshot: SnapshotStatus = SnapshotStatus()
    sums: Sums = Sums()
    rates: Rates = Rates()
    failure: Failure | None = None
    notifications: tuple[NotificationStatus, ...] = ()


def clock_ms() -> int:
    """Now, as all times of a status are: milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def dump(status: JobStatus) -> dict[str, Any]:
    """A dict of JSON primitives with every field."""
    return {"format": FORMAT, "version": VERSION, **asdict(status)}


def load(content: Any) -> JobStatus:
    """What ``dump`` wrote and JSON has carried. Raises ``OffsetError`` for anything else."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise OffsetError(f"this is not a status of incsnap: {shorten(content)}")
    if content.get("version") != VERSION:
        raise OffsetError(
            f"the status has version {shorten(content.get('version'))}; this release reads {VERSION}",
            "Run the release of incsnap that runs the job.",
        )
    try:
        return from_json(
            JobStatus, {name: value for name, value in content.items() if name not in ("format", "version")}
        )
    except ValueError as error:
        raise OffsetError(f"the status is damaged: {shorten(error)}") from error

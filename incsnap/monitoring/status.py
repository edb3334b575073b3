"""The status of a job as one value: the status file, `incsnap status`, the metrics and the page all show it.

The driver writes the status beside the checkpoint as versioned JSON with all fields. Times are milliseconds since 1970
by the clock of the driver's machine. Sizes are bytes. Durations have their unit in the name. The classes hold values
only; nothing here reads or writes a file.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from incsnap.errors import OffsetError, shorten
from incsnap.monitoring.gap_status import GapStatus
from incsnap.monitoring.lag_statistics import LagStatistics
from incsnap.monitoring.verification_status import VerificationStatus
from incsnap.snapshot.dataclass_json import from_json
from incsnap.snapshot.notifications import EMPTY, SUCCEEDED

#: Other versions are refused, not migrated: the release that runs the job renews the file every second.
FORMAT, VERSION = "incsnap-status", 1

#: The states of a job.
STATES = ("starting", "running", "retrying", "stopping", "stopped", "failed")
STARTING, RUNNING, RETRYING, STOPPING, STOPPED, FAILED = STATES
#: States of a job that has ended and recorded its end. A silent job in another state is dead.
ENDED = frozenset({STOPPED, FAILED})

#: One hour: time enough for the person on call to raise the expiry of the binlog.
_SOON_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A range of keys, `lower < key <= upper`. Long keys are shortened, as in notifications."""

    lower: str  #: not in the range
    upper: str  #: in the range


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table that is being read for a snapshot."""

    number: int  #: number of the scan, unique in this job
    table: str  #: `db.table`
    signal: str  #: id of the signal that asked for the table
    condition: str = ""  #: additional condition of the SELECT; "" for none
    rows_done: int = 0  #: rows of released windows, including rows that were then discarded
    rows_expected: int | None = None  #: likely number of rows in all; None: unknown
    rows_low: int | None = None  #: lower bound of `rows_expected`
    rows_high: int | None = None  #: upper bound of `rows_expected`
    rows_per_second: float | None = None  #: None until rows were released for a while
    seconds_left: float | None = None  #: likely time to the end; None: unknown
    seconds_low: float | None = None  #: lower bound of `seconds_left`
    seconds_high: float | None = None  #: upper bound of `seconds_left`
    chunk_rows: int = 0  #: rows of the next chunk
    windows: int = 0  #: windows in flight
    planned_key: str = ""  #: all keys up to this one are read or being read; "" at the beginning
    maximum_key: str = ""  #: last key of the snapshot; "" until it is known
    read_again: int = 0  #: key ranges that wait to be read again
    readings: int = 0  #: most attempts of a range in `read_again`
    not_before_ms: int = 0  #: when a failed question about the table is asked again
    quarantined: tuple[KeyRange, ...] = ()  #: key ranges that were given up
    lost_readings: int = 0  #: readings that never reported a result and were repeated


@dataclass(frozen=True, slots=True)
class WindowStatus:
    """A window in flight."""

    id: str  #: also in the names of the window's files
    table: str  #: `db.table`
    state: str  #: `reading`; `read`: the stream has not passed its high watermark yet; or `releasing`
    rows: int  #: rows that were read; before, the rows that it was planned for
    planned_ms: int  #: when the window was planned
    bytes: int = 0  #: keys and values of its records; 0 until read
    file: str = ""  #: binlog file of its high watermark; "" until read
    pos: int = 0  #: byte of its high watermark in `file`
    parts: int = 1  #: parts that are sent one by one
    sent: int = 0  #: parts that were sent
    attempt: int = 0  #: failed or dropped readings before this one


@dataclass(frozen=True, slots=True)
class FinishedTable:
    """A table whose snapshot has ended."""

    table: str  #: `db.table`
    signal: str  #: id of the signal that asked for the table
    status: str  #: `status` of Debezium's TABLE_SCAN_COMPLETED
    rows: int  #: rows that were read
    ended_ms: int  #: time of the notification
    reason: str = ""  #: why the table was not read to its end; "" if it was
    missing_keys: str = ""  #: key ranges in quarantine, as in TABLE_SCAN_COMPLETED

    @property
    def is_whole(self) -> bool:
        """Whether the table was read completely."""
        return self.status in (SUCCEEDED, EMPTY)


@dataclass(frozen=True, slots=True)
class LimitStatus:
    """A limit on reading that is in force."""

    name: str  #: the name that signals use
    most: int  #: greatest value that lets chunks be read
    signal: str = ""  #: id of the signal that set the limit; "": the settings
    measured: int | None = None  #: worst measured value; None: not measured


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """The snapshots that are asked for and not finished."""

    paused: bool = False  #: whether a signal has paused all snapshots
    waits_for: str = ""  #: why no chunk is planned now; "" if nothing prevents it
    limits: tuple[LimitStatus, ...] = ()  #: limits on reading that are in force
    held_back_by: str = ""  #: name of the limit that chunks wait for; "" for none
    waiting: int = 0  #: tables in the queue
    waiting_first: tuple[str, ...] = ()  #: names of the first tables in the queue
    tables: tuple[TableStatus, ...] = ()  #: tables that are being read, at most 64
    windows_in_flight: int = 0  #: number of all windows in flight
    windows: tuple[WindowStatus, ...] = ()  #: the first 64 windows in flight
    rows_held: int = 0  #: rows that were read and not sent
    retried: int = 0  #: readings of chunks that failed or were lost since the query's start
    finished: tuple[FinishedTable, ...] = ()  #: tables that ended since the process's start, see `kept_tables`

    @property
    def active(self) -> bool:
        """Whether a table is being read or waits in the queue."""
        return bool(self.tables or self.waiting)


@dataclass(frozen=True, slots=True)
class LastSnapshot:
    """The newest snapshot since the process's start. Signals of the same time count as one snapshot."""

    started_ms: int = 0  #: when it began; 0: there was none
    ended_ms: int = 0  #: when it ended; 0: it runs
    aborted: bool = False  #: whether it ended because a signal stopped it
    tables: int = 0  #: tables that it has read, reads or will read
    paused_at_ms: int = 0  #: since when it is paused; 0: it is not
    paused_ms: int = 0  #: how long earlier pauses took


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """The position and the lag of the stream of changes."""

    batch: int  #: number of the last planned batch
    file: str  #: binlog file that the stream has reached
    pos: int  #: byte of `file` that the stream has reached
    delivered: str  #: GTID set of transactions that are wholly in batches, cut to 2,000 characters
    server_uuid: str = ""  #: server whose binlog `file` belongs to
    #: Time from a commit in MySQL to its arrival in Kafka: the longest of the last second. The lag grows while nothing
    #: arrives. 0 if nothing is left to send.
    lag_ms: int = 0
    lag_bytes: int | None = None  #: binlog between the stream and its end; None: unknown
    end_file: str = ""  #: last binlog file of the server
    end_pos: int = 0  #: byte of `end_file` where the binlog ends
    last_change_ms: int = 0  #: commit time of the last transaction; 0: none yet
    batch_ms: int = 0  #: how long the last batch took
    buffered_bytes: int = 0  #: binlog that is read ahead now
    buffer_bytes: int = 0  #: most binlog that may be read ahead
    connected: bool = True  #: whether the server sends its binlog
    disconnects: int = 0  #: binlog connections that ended since the process's start
    needs_file: str = ""  #: binlog file that a restart reads first: about the file that the stream has reached
    #: The server does not purge `needs_file` before this time. None: unknown; 0: the server does not purge by itself.
    purge_not_before_ms: int | None = None
    transactions: int = 0  #: transactions that are wholly in batches since the process's start
    prepared: tuple[str, ...] = ()  #: ids of XA transactions whose rows wait for XA COMMIT
    #: of batches with changes since the query's start; None before the first one
    lags: LagStatistics | None = None

    def is_purged_soon(self, now_ms: int) -> bool:
        """Return True if the server may purge `needs_file` within the next hour."""
        return bool(self.purge_not_before_ms) and (self.purge_not_before_ms or 0) - now_ms < _SOON_MS


@dataclass(frozen=True, slots=True)
class Sums:
    """Counters over all committed batches since the job's first start."""

    batches: int = 0  #: committed batches
    events: int = 0  #: change events
    reads: int = 0  #: rows of windows that were sent
    discarded: int = 0  #: rows of windows that were not sent, because a newer event of their key came first
    bytes: int = 0  #: keys and values
    creates: int = 0  #: change events of inserted rows
    updates: int = 0  #: change events of updated rows
    deletes: int = 0  #: change events of deleted rows


@dataclass(frozen=True, slots=True)
class Rates:
    """Amounts a second, averaged over the last ten seconds."""

    events: float = 0.0  #: change events
    rows: float = 0.0  #: rows of windows, sent or discarded
    bytes: float = 0.0  #: keys and values


@dataclass(frozen=True, slots=True)
class Failure:
    """The last error that ended a run of the query."""

    message: str  #: the error in one sentence, at most 2,000 characters
    hint: str  #: what to do about the error
    at_ms: int  #: when the run ended
    count: int = 0  #: failures in a row; 0 once a run has lasted
    next_try_ms: int = 0  #: when the query is started again; 0: not planned


@dataclass(frozen=True, slots=True)
class Outage:
    """A server that does not answer now."""

    server: str  #: `MySQL`, `Kafka` or `Schema registry`
    address: str  #: `host:port`; of Kafka the bootstrap servers, of a registry its URL
    since_ms: int  #: when the server answered last, or when the job first asked in vain
    reason: str = ""  #: the error of the last question


@dataclass(frozen=True, slots=True)
class NotificationStatus:
    """A notification that was sent, with Debezium's fields. IN_PROGRESS is left out, because the tables say more."""

    id: str  #: id of the signal
    type: str  #: for example STARTED or TABLE_SCAN_COMPLETED
    timestamp_ms: int  #: when the batch was planned, in ms since 1970
    fields: dict[str, str]  #: `additional_data` of the notification


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The whole status of a job."""

    release: str  #: version of incsnap
    topic_prefix: str  #: `topic.prefix` of the job
    host: str  #: name of the driver's machine
    pid: int  #: process id of the driver
    started_ms: int  #: when the driver's process started the job
    state: str  #: `STARTING`, `RUNNING`, ... of this module
    since_ms: int  #: when the job entered `state`
    written_ms: int  #: when this status was made
    every_ms: int  #: how often a living job writes its status file
    asked_ms: int = 0  #: when Spark last asked the planner for a batch; 0 before the first time
    stream: StreamStatus | None = None  #: None before the first planning of this process
    snapshot: SnapshotStatus = SnapshotStatus()  #: snapshots that are not finished
    sums: Sums = Sums()  #: amounts since the job's first start
    rates: Rates = Rates()  #: amounts per second now
    mysql: str = ""  #: `host:port` of the MySQL server
    kafka: str = ""  #: bootstrap servers of Kafka
    last_snapshot: LastSnapshot = LastSnapshot()  #: the newest snapshot, running or ended
    failure: Failure | None = None  #: None until a run of the query has failed
    verification: VerificationStatus | None = None  #: None without `incsnap.verify.interval`
    gap: GapStatus | None = None  #: None unless the job has begun again behind a gap, and compares
    outages: tuple[Outage, ...] = ()  #: servers that do not answer now
    notifications: tuple[NotificationStatus, ...] = ()  #: the last 50, oldest first


def clock_ms() -> int:
    """Return the present time in milliseconds since 1970, the unit of all times in a status."""
    return time.time_ns() // 1_000_000


def dump(status: JobStatus) -> dict[str, Any]:
    """Return the status as a dict of JSON primitives with all fields, format and version."""
    return {"format": FORMAT, "version": VERSION, **asdict(status)}


def load(content: Any) -> JobStatus:
    """Return the status that `dump` wrote, after parsing the JSON.

    Raise OffsetError if the content is not a status, is damaged or has another version.
    """
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise OffsetError(f"this is not a status of incsnap: {shorten(content)}")
    if content.get("version") != VERSION:
        raise OffsetError(
            f"the status has version {shorten(content.get('version'))}; this release reads {VERSION}",
            "Use the same release of incsnap as the job.",
        )
    try:
        return from_json(
            JobStatus, {name: value for name, value in content.items() if name not in ("format", "version")}
        )
    except ValueError as error:
        raise OffsetError(f"the status is damaged: {shorten(error)}") from error

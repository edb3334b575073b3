"""The job's status as Prometheus metrics, built again for each scrape.

`debezium_metrics_*` have the names and labels (`plugin`, `name`, `context`) that the common rules for the JMX exporter
give to Debezium's beans. So dashboards and alerts for Debezium keep working. Each of these metrics means what it means
in Debezium; beans without an equivalent are left out. `incsnap_*` metrics have no such bean. They follow Prometheus'
rules for names and units. https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-monitoring
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from incsnap.monitoring.gap_status import GapStatus
from incsnap.monitoring.lag_statistics import LagStatistics
from incsnap.monitoring.liveness import stalled
from incsnap.monitoring.status import STATES, JobStatus, SnapshotStatus, StreamStatus, Sums, clock_ms
from incsnap.monitoring.verification_status import VerificationStatus

_OURS, _DEBEZIUMS = "incsnap_", "debezium_metrics_"
_RETRIED = "Attempts to read a chunk that failed or were lost, in this run."

#: Names and texts of labels.
_Labels = dict[str, str]


class JobCollector(Collector):
    """A collector for prometheus_client. `status` returns the present status of the job."""

    def __init__(self, status: Callable[[], JobStatus]) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics of the present status."""
        status = self._status()
        name = {"name": status.topic_prefix}
        bean = {"plugin": "mysql", **name}
        yield from _job(name, status)
        if status.stream is not None:
            yield from _streaming({**bean, "context": "streaming"}, status, status.stream)
            yield from _stream(name, status.stream)
        yield from _snapshots({**bean, "context": "snapshot"}, status)
        yield from _schema_history({**bean, "context": "schema-history"})
        yield from _windows_and_tables(name, status.snapshot)
        if status.verification is not None:
            yield from _verification(name, status.verification)
        if status.gap is not None:
            yield from _gap(name, status.gap)


def exposition(status: Callable[[], JobStatus]) -> Callable[[], bytes]:
    """Return a function that returns the text of a scrape: metrics of the job and of the driver's process."""
    registry = CollectorRegistry()
    registry.register(JobCollector(status))
    ProcessCollector(registry=registry)
    return lambda: generate_latest(registry)


def _job(name: _Labels, status: JobStatus) -> Iterator[Metric]:
    release = [(status.release, 1)]
    yield _by("info", "Release of the running job, as a label; always 1.", name, "release", release)
    states = [(state, status.state == state) for state in STATES]
    yield _by("state", "1 for the present state of the job, 0 for the others.", name, "state", states)
    failures, sums = _failures(status), status.sums
    yield from _gauges(
        _OURS,
        name,
        ("stalled", "1 if no batch has ended for two minutes, else 0.", stalled(status, clock_ms())),
        ("start_time_seconds", "Start of the job, in seconds since 1970.", status.started_ms / 1000),
        ("failures_in_a_row", "Failed runs of the query since one lasted.", failures),
    )
    overtaken = "Snapshot rows that were not sent, because an event of their key came first."
    for counter, help_, value in (
        ("batches", "Committed batches.", sums.batches),
        ("change_events", "Change events in committed batches.", sums.events),
        ("snapshot_rows_sent", "Snapshot rows in committed batches.", sums.reads),
        ("snapshot_rows_discarded", overtaken, sums.discarded),
        ("sent_bytes", "Bytes of keys and values in committed batches.", sums.bytes),
    ):
        family = CounterMetricFamily(_OURS + counter, help_, labels=list(name))
        family.add_metric(list(name.values()), value)
        yield family


def _streaming(bean: _Labels, status: JobStatus, stream: StreamStatus) -> Iterator[Metric]:
    behind = "Milliseconds from the commit of a change to its arrival in Kafka. Grows while nothing arrives."
    idle = "Milliseconds since the last transaction; -1 before the first one."
    idle_ms = status.written_ms - stream.last_change_ms if stream.last_change_ms else -1
    seen = "Change events in committed batches, since the job's first start."
    transactions = "Transactions that are wholly in batches, since the process's start."
    filtered = "Always 0: changes of tables that are not captured never become events."
    erroneous = "Failed runs of the query in a row, without those of an outage."
    rolled_back = "Always 0: rows that are rolled back are not in the binlog."
    yield from _queue(bean, stream)
    yield from _operations(bean, status.sums)
    yield from _lags(bean, stream.lags)
    yield from _gauges(
        _DEBEZIUMS,
        bean,
        ("NumberOfCommittedTransactions", transactions, stream.transactions),
        ("NumberOfEventsFiltered", filtered, 0),
        ("NumberOfErroneousEvents", erroneous, 0 if status.outages else _failures(status)),
        ("NumberOfLargeTransactions", "Always 0: no transaction is too large for the buffer.", 0),
        ("NumberOfRolledBackTransactions", rolled_back, 0),
        ("NumberOfSkippedEvents", "Always 0: an event that cannot be decoded ends the run.", 0),
        ("NumberOfNotWellFormedTransactions", "Always 0: the job fails at such a transaction.", 0),
        ("Connected", "1 while the server sends the binlog, else 0.", stream.connected),
        ("MilliSecondsBehindSource", behind, stream.lag_ms),
        ("MilliSecondsSinceLastEvent", idle, idle_ms),
        ("TotalNumberOfEventsSeen", seen, status.sums.events),
        ("NumberOfDisconnects", "Binlog connections that ended since the process's start.", stream.disconnects),
        ("BinlogPosition", "Position in the present binlog file, in bytes.", stream.pos),
        ("IsGtidModeEnabled", "Whether GTIDs are used; always 1.", 1),
    )


def _operations(bean: _Labels, sums: Sums) -> Iterator[Metric]:
    """Yield the counts of change events by operation. They count from the job's first start, as the count of all."""
    of_one = "Change events of {} rows in committed batches, since the job's first start."
    return _gauges(
        _DEBEZIUMS,
        bean,
        ("TotalNumberOfCreateEventsSeen", of_one.format("inserted"), sums.creates),
        ("TotalNumberOfUpdateEventsSeen", of_one.format("updated"), sums.updates),
        ("TotalNumberOfDeleteEventsSeen", of_one.format("deleted"), sums.deletes),
    )


def _lags(bean: _Labels, lags: LagStatistics | None) -> Iterator[Metric]:
    """Yield the statistics of the lags; nothing before the first batch, as a bean without values has no metric."""
    if lags is None:
        return
    of_batches = "of batches with changes since the query's start, in milliseconds."
    percentile = "Lag that {} % of the lags do not exceed, " + of_batches
    yield from _gauges(
        _DEBEZIUMS,
        bean,
        ("MilliSecondsBehindSourceMinValue", f"Smallest lag {of_batches}", lags.min_ms),
        ("MilliSecondsBehindSourceMaxValue", f"Largest lag {of_batches}", lags.max_ms),
        ("MilliSecondsBehindSourceAverageValue", f"Mean of the lags {of_batches}", lags.average_ms),
        ("MilliSecondsBehindSourceP50", percentile.format(50), lags.p50_ms),
        ("MilliSecondsBehindSourceP95", percentile.format(95), lags.p95_ms),
        ("MilliSecondsBehindSourceP99", percentile.format(99), lags.p99_ms),
    )


def _queue(bean: _Labels, stream: StreamStatus) -> Iterator[Metric]:
    """Yield the metrics of the buffer. Debezium counts events where the unit here is bytes."""
    free = max(0, stream.buffer_bytes - stream.buffered_bytes)
    return _gauges(
        _DEBEZIUMS,
        bean,
        ("QueueTotalCapacity", "Bytes of binlog that may be read ahead.", stream.buffer_bytes),
        ("QueueRemainingCapacity", "Bytes of binlog that may be read ahead from now on.", free),
        ("MaxQueueSizeInBytes", "Most bytes of binlog that may be read ahead.", stream.buffer_bytes),
        ("CurrentQueueSizeInBytes", "Bytes of binlog read ahead now.", stream.buffered_bytes),
    )


def _stream(name: _Labels, stream: StreamStatus) -> Iterator[Metric]:
    yield _by("binlog_file", "Present binlog file, as a label; always 1.", name, "file", [(stream.file, 1)])
    earliest = "Earliest purge of the oldest binlog file that the job needs, in seconds since 1970."
    purge_seconds = stream.purge_not_before_ms / 1000 if stream.purge_not_before_ms else None
    yield from _gauges(
        _OURS,
        name,
        ("binlog_behind_bytes", "Bytes from the stream's position to the end of the binlog.", stream.lag_bytes),
        ("binlog_purge_time_seconds", earliest, purge_seconds),
        ("last_batch_seconds", "Duration of the last batch, in seconds.", stream.batch_ms / 1000),
        ("prepared_xa_transactions", "Prepared XA transactions that have not ended.", len(stream.prepared)),
    )


def _failures(status: JobStatus) -> int:
    return status.failure.count if status.failure is not None else 0


def _snapshots(bean: _Labels, status: JobStatus) -> Iterator[Metric]:
    """Yield the metrics of Debezium's snapshot bean. They describe the newest snapshot since the process's start."""
    snapshot, last = status.snapshot, status.last_snapshot
    remaining = len(snapshot.tables) + snapshot.waiting
    until_ms = last.ended_ms or status.written_ms
    paused_ms = last.paused_ms + (until_ms - last.paused_at_ms if last.paused_at_ms else 0)
    duration = (until_ms - last.started_ms) / 1000 if last.started_ms else 0
    has_ended = bool(last.ended_ms) and not snapshot.active
    idle = "Milliseconds since the newest snapshot's end; 0 before the end, -1 before the first snapshot."
    idle_ms = -1 if not last.started_ms else status.written_ms - last.ended_ms if has_ended else 0
    not_a_change = "Always 0: a snapshot row is neither a creation nor an update nor a deletion."
    if status.stream is not None:
        yield from _queue(bean, status.stream)
    yield from _gauges(
        _DEBEZIUMS,
        bean,
        ("SnapshotRunning", "1 while a snapshot runs or waits, else 0.", snapshot.active),
        ("SnapshotPaused", "1 while snapshots are paused, else 0.", snapshot.paused),
        ("SnapshotCompleted", "1 if the newest snapshot was read to its end, else 0.", has_ended and not last.aborted),
        ("SnapshotAborted", "1 if a signal stopped the newest snapshot, else 0.", has_ended and last.aborted),
        ("SnapshotSkipped", "1 if there was no snapshot since the process's start, else 0.", not last.started_ms),
        ("SnapshotDurationInSeconds", "Seconds from the newest snapshot's begin to its end, or to now.", duration),
        ("SnapshotPausedDurationInSeconds", "Seconds of these that it was paused.", paused_ms / 1000),
        ("TotalTableCount", "Tables of the newest snapshot: read, being read or waiting.", last.tables),
        ("RemainingTableCount", "Tables that are being read or wait.", remaining),
        ("HoldingGlobalLock", "Always 0: nothing is locked.", 0),
        ("MilliSecondsSinceLastEvent", idle, idle_ms),
        (
            "TotalNumberOfEventsSeen",
            "Snapshot rows in committed batches, since the job's first start.",
            status.sums.reads,
        ),
        ("TotalNumberOfCreateEventsSeen", not_a_change, 0),
        ("TotalNumberOfUpdateEventsSeen", not_a_change, 0),
        ("TotalNumberOfDeleteEventsSeen", not_a_change, 0),
        ("NumberOfEventsFiltered", "Always 0: rows that a condition leaves out are not read.", 0),
        ("NumberOfErroneousEvents", _RETRIED, snapshot.retried),
    )
    rows = _of_tables(((each.table, each.rows_done) for each in snapshot.tables), sum)
    yield _by("RowsScanned", "Rows read so far of each table that is being read.", bean, "table", rows, _DEBEZIUMS)


def _schema_history(bean: _Labels) -> Iterator[Metric]:
    """Yield the metrics of Debezium's bean of the schema history, which a job does not have."""
    none = "there is no schema history. The binlog and the server describe the tables."
    return _gauges(
        _DEBEZIUMS,
        bean,
        ("ChangesApplied", f"Always 0: {none}", 0),
        ("ChangesRecovered", f"Always 0: {none}", 0),
        ("RecoveryStartTime", f"Always -1: {none}", -1),
        ("MilliSecondsSinceLastAppliedChange", f"Always -1: {none}", -1),
        ("MilliSecondsSinceLastRecoveredChange", f"Always -1: {none}", -1),
    )


def _windows_and_tables(name: _Labels, snapshot: SnapshotStatus) -> Iterator[Metric]:
    """Yield the metrics of windows, of tables, and of limits on reading by the names that signals use."""
    yield from _gauges(
        f"{_OURS}snapshot_",
        name,
        ("windows_in_flight", "Chunks that are read and not completely sent.", snapshot.windows_in_flight),
        ("rows_held", "Rows that are read and not sent.", snapshot.rows_held),
        ("chunks_retried", _RETRIED, snapshot.retried),
    )
    limits, tables = snapshot.limits, snapshot.tables
    most = [(each.name, each.most) for each in limits]
    yield _by("snapshot_limit", "Highest value of a load at which chunks are read.", name, "limit", most)
    measured = [(each.name, each.measured) for each in limits]
    yield _by("snapshot_load", "Measured value of the load.", name, "limit", measured)
    held = [(each.name, each.name == snapshot.held_back_by) for each in limits]
    yield _by("snapshot_held_back", "1 while chunks wait because of this limit, else 0.", name, "limit", held)
    rows = _of_tables(((each.table, each.rows_expected) for each in tables), sum)
    yield _by("snapshot_rows_expected", "Estimated rows of each table that is being read.", name, "table", rows)
    left = _of_tables(((each.table, each.seconds_left) for each in tables), max)
    yield _by("snapshot_seconds_left", "Estimated seconds until each table is complete.", name, "table", left)
    lost = _of_tables(((each.table, len(each.quarantined)) for each in tables), sum)
    yield _by("snapshot_keys_quarantined", "Ranges of keys of each table that were given up.", name, "table", lost)


def _of_tables(
    values: Iterable[tuple[str, float | None]], joined: Callable[[list[float]], float]
) -> list[tuple[str, float | None]]:
    """Return one value for each table: `joined` of its values, or None if one of them is None.

    Two signals may read one table at the same time. Prometheus refuses two values with the same labels.
    """
    of_table: dict[str, list[float | None]] = {}
    for table, value in values:
        of_table.setdefault(table, []).append(value)
    known = {table: [each for each in several if each is not None] for table, several in of_table.items()}
    return [
        (table, joined(known[table]) if len(known[table]) == len(several) else None)
        for table, several in of_table.items()
    ]


def _verification(name: _Labels, shown: VerificationStatus) -> Iterator[Metric]:
    """Yield the metrics of the comparisons of tables with topics."""
    for counter, help_, value in (
        ("rounds", "Comparisons of tables with topics that came to an end, since the process's start.", shown.rounds),
        ("failures", "Comparisons that failed, since the process's start.", shown.failures),
    ):
        family = CounterMetricFamily(f"{_OURS}verify_{counter}", help_, labels=list(name))
        family.add_metric(list(name.values()), value)
        yield family
    ended = shown.ended_ms / 1000 if shown.ended_ms else None
    last = "End of the last comparison that came to an end, in seconds since 1970."
    yield from _gauges(f"{_OURS}verify_", name, ("last_round_time_seconds", last, ended))
    differ = "Keys of each table that differed when they were compared last."
    differing = [(each.table, each.differing) for each in shown.tables]
    yield _by("verify_differing_keys", differ, name, "table", differing)
    unproved = "Keys of each table about which the last comparison proved nothing."
    open_ = [(each.table, each.unverifiable) for each in shown.tables]
    yield _by("verify_unverifiable_keys", unproved, name, "table", open_)
    refused = "1 for a table that cannot be compared, else 0."
    yield _by("verify_refused", refused, name, "table", [(each.table, bool(each.refused)) for each in shown.tables])


def _gap(name: _Labels, shown: GapStatus) -> Iterator[Metric]:
    """Yield the metrics of the comparison behind a gap in the binlog."""
    yield from _gauges(
        f"{_OURS}gap_",
        name,
        ("tables_left", "Tables that are not compared with their topics yet, behind a gap in the binlog.", shown.left),
        ("tables_whole", "Tables that are read whole behind a gap.", shown.whole),
        ("keys_sent", "Keys that differ behind a gap and are sent again.", shown.keys),
        ("failures", "Attempts to compare behind a gap that failed, since the process's start.", shown.failures),
    )


def _gauges(prefix: str, labels: _Labels, *gauges: tuple[str, str, float | None]) -> Iterator[Metric]:
    """Yield a gauge for each of `gauges` (name after `prefix`, help, value). Leave out values that are None."""
    for name, help_, value in gauges:
        if value is not None:
            family = GaugeMetricFamily(prefix + name, help_, labels=list(labels))
            family.add_metric(list(labels.values()), value)
            yield family


def _by(
    name: str,
    help_: str,
    labels: _Labels,
    label: str,
    values: Iterable[tuple[str, float | None]],
    prefix: str = _OURS,
) -> Metric:
    """Return a gauge with one value for each text of the label `label`. Leave out values that are None."""
    family = GaugeMetricFamily(prefix + name, help_, labels=[*labels, label])
    for text, value in values:
        if value is not None:
            family.add_metric([*labels.values(), text], value)
    return family

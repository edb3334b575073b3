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

from incsnap.monitoring.liveness import stalled
from incsnap.monitoring.status import (
    FAILED,
    RETRYING,
    RUNNING,
    STARTING,
    STOPPED,
    STOPPING,
    JobStatus,
    SnapshotStatus,
    StreamStatus,
    clock_ms,
)

_STATES = (STARTING, RUNNING, RETRYING, STOPPING, STOPPED, FAILED)
_STREAMING, _SNAPSHOT = "streaming", "snapshot"


class JobCollector(Collector):
    """A collector for prometheus_client. `status` returns the present status of the job."""

    def __init__(self, status: Callable[[], JobStatus]) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics of the present status."""
        status = self._status()
        bean = JmxNames(status.topic_prefix)
        yield from _job(status)
        if status.stream is not None:
            yield from _stream(bean, status, status.stream)
        yield from _snapshot(bean, status.snapshot)
        yield from _windows_and_tables({"name": status.topic_prefix}, status.snapshot)


class JmxNames:
    """A factory for metrics that are named after attributes of Debezium's JMX beans."""

    def __init__(self, prefix: str) -> None:
        self._labels = {"plugin": "mysql", "name": prefix}

    def gauge(self, context: str, attribute: str, help_: str, value: float) -> Metric:
        """Return a gauge with one value. `context` is `streaming` or `snapshot`."""
        labels = {**self._labels, "context": context}
        family = GaugeMetricFamily(f"debezium_metrics_{attribute}", help_, labels=list(labels))
        family.add_metric(list(labels.values()), value)
        return family

    def by_table(self, attribute: str, help_: str, values: Iterable[tuple[str, float]]) -> Metric:
        """Return a gauge of the context `snapshot` with one value for each table."""
        labels = {**self._labels, "context": _SNAPSHOT}
        family = GaugeMetricFamily(f"debezium_metrics_{attribute}", help_, labels=[*labels, "table"])
        for table, value in values:
            family.add_metric([*labels.values(), table], value)
        return family


def exposition(status: Callable[[], JobStatus]) -> Callable[[], bytes]:
    """Return a function that returns the text of a scrape: metrics of the job and of the driver's process."""
    registry = CollectorRegistry()
    registry.register(JobCollector(status))
    ProcessCollector(registry=registry)
    return lambda: generate_latest(registry)


def _job(status: JobStatus) -> Iterator[Metric]:
    name = {"name": status.topic_prefix}
    info = GaugeMetricFamily(
        "incsnap_info", "Release of the running job, as a label; always 1.", labels=["name", "release"]
    )
    info.add_metric([status.topic_prefix, status.release], 1)
    yield info
    states = GaugeMetricFamily(
        "incsnap_state", "1 for the present state of the job, 0 for the others.", labels=["name", "state"]
    )
    for state in _STATES:
        states.add_metric([status.topic_prefix, state], status.state == state)
    yield states
    now_ms = clock_ms()
    yield _gauge("stalled", "1 if no batch has ended for two minutes, else 0.", name, stalled(status, now_ms))
    yield _gauge("start_time_seconds", "Start of the job, in seconds since 1970.", name, status.started_ms / 1000)
    failures = status.failure.count if status.failure is not None else 0
    yield _gauge("failures_in_a_row", "Failed runs of the query since one lasted.", name, failures)
    sums = status.sums
    yield _counter("batches", "Committed batches.", name, sums.batches)
    yield _counter("change_events", "Change events in committed batches.", name, sums.events)
    yield _counter("snapshot_rows_sent", "Snapshot rows in committed batches.", name, sums.reads)
    overtaken = "Snapshot rows that were not sent, because an event of their key came first."
    yield _counter("snapshot_rows_discarded", overtaken, name, sums.discarded)
    yield _counter("sent_bytes", "Bytes of keys and values in committed batches.", name, sums.bytes)


def _stream(bean: JmxNames, status: JobStatus, stream: StreamStatus) -> Iterator[Metric]:
    name = {"name": status.topic_prefix}
    yield bean.gauge(_STREAMING, "Connected", "1 while the server sends the binlog, else 0.", stream.connected)
    behind = "Milliseconds from the commit of a change to its arrival in Kafka. Grows while nothing arrives."
    yield bean.gauge(_STREAMING, "MilliSecondsBehindSource", behind, stream.lag_ms)
    since = status.written_ms - stream.last_change_ms if stream.last_change_ms else -1
    yield bean.gauge(
        _STREAMING,
        "MilliSecondsSinceLastEvent",
        "Milliseconds since the last transaction; -1 before the first one.",
        since,
    )
    seen = "Change events in committed batches, since the job's first start."
    yield bean.gauge(_STREAMING, "TotalNumberOfEventsSeen", seen, status.sums.events)
    yield bean.gauge(
        _STREAMING, "NumberOfDisconnects", "Binlog connections that this run has lost.", stream.disconnects
    )
    yield bean.gauge(_STREAMING, "BinlogPosition", "Position in the present binlog file, in bytes.", stream.pos)
    yield bean.gauge(_STREAMING, "IsGtidModeEnabled", "Whether GTIDs are used; always 1.", 1)
    yield bean.gauge(
        _STREAMING, "MaxQueueSizeInBytes", "Most bytes of binlog that may be read ahead.", stream.buffer_bytes
    )
    yield bean.gauge(_STREAMING, "CurrentQueueSizeInBytes", "Bytes of binlog read ahead now.", stream.buffered_bytes)
    yield _gauge("binlog_file", "Present binlog file, as a label; always 1.", {**name, "file": stream.file}, 1)
    if stream.lag_bytes is not None:
        yield _gauge(
            "binlog_behind_bytes", "Bytes from the stream's position to the end of the binlog.", name, stream.lag_bytes
        )
    if stream.purge_not_before_ms:
        earliest = "Earliest purge of the oldest binlog file that the job needs, in seconds since 1970."
        yield _gauge("binlog_purge_time_seconds", earliest, name, stream.purge_not_before_ms / 1000)
    yield _gauge("last_batch_seconds", "Duration of the last batch, in seconds.", name, stream.batch_ms / 1000)
    yield _gauge(
        "prepared_xa_transactions", "Prepared XA transactions that have not ended.", name, len(stream.prepared)
    )


def _snapshot(bean: JmxNames, snapshot: SnapshotStatus) -> Iterator[Metric]:
    tables = snapshot.tables
    yield bean.gauge(_SNAPSHOT, "SnapshotRunning", "1 while a snapshot runs or waits, else 0.", snapshot.active)
    yield bean.gauge(_SNAPSHOT, "SnapshotPaused", "1 while snapshots are paused, else 0.", snapshot.paused)
    remaining = "Tables that are being read or wait."
    yield bean.gauge(_SNAPSHOT, "RemainingTableCount", remaining, len(tables) + snapshot.waiting)
    yield bean.by_table(
        "RowsScanned",
        "Rows read so far of each table that is being read.",
        ((each.table, each.rows_done) for each in tables),
    )


def _windows_and_tables(labels: dict[str, str], snapshot: SnapshotStatus) -> Iterator[Metric]:
    for attribute, help_, value in (
        ("windows_in_flight", "Chunks that are read and not completely sent.", snapshot.windows_in_flight),
        ("rows_held", "Rows that are read and not sent.", snapshot.rows_held),
        ("chunks_retried", "Attempts to read a chunk that failed or were lost, in this run.", snapshot.retried),
    ):
        yield _gauge(f"snapshot_{attribute}", help_, labels, value)
    yield from _limits(labels, snapshot)
    for attribute, help_, values in (
        (
            "rows_expected",
            "Estimated rows of each table that is being read.",
            [(t.table, t.rows_expected) for t in snapshot.tables],
        ),
        (
            "seconds_left",
            "Estimated seconds until each table is complete.",
            [(t.table, t.seconds_left) for t in snapshot.tables],
        ),
        (
            "keys_quarantined",
            "Ranges of keys of each table that were given up.",
            [(t.table, len(t.quarantined)) for t in snapshot.tables],
        ),
    ):
        family = GaugeMetricFamily(f"incsnap_snapshot_{attribute}", help_, labels=[*labels, "table"])
        for table, number in values:
            if number is not None:
                family.add_metric([*labels.values(), table], number)
        yield family


def _limits(labels: dict[str, str], snapshot: SnapshotStatus) -> Iterator[Metric]:
    """Yield the metrics of the limits on reading, labelled by the names that signals use."""
    for attribute, help_, values in (
        ("limit", "Highest value of a load at which chunks are read.", [(e.name, e.most) for e in snapshot.limits]),
        ("load", "Measured value of the load.", [(e.name, e.measured) for e in snapshot.limits]),
        (
            "held_back",
            "1 while chunks wait because of this limit, else 0.",
            [(e.name, e.name == snapshot.held_back_by) for e in snapshot.limits],
        ),
    ):
        family = GaugeMetricFamily(f"incsnap_snapshot_{attribute}", help_, labels=[*labels, "limit"])
        for limit, value in values:
            if value is not None:
                family.add_metric([*labels.values(), limit], value)
        yield family


def _gauge(name: str, help_: str, labels: dict[str, str], value: float) -> Metric:
    family = GaugeMetricFamily(f"incsnap_{name}", help_, labels=list(labels))
    family.add_metric(list(labels.values()), value)
    return family


def _counter(name: str, help_: str, labels: dict[str, str], value: float) -> Metric:
    family = CounterMetricFamily(f"incsnap_{name}", help_, labels=list(labels))
    family.add_metric(list(labels.values()), value)
    return family

"""The status as metrics of Prometheus, made anew for each scrape.

``debezium_metrics_*`` are named and labelled as the rules that nearly everyone gives to the JMX exporter name
Debezium's beans (``plugin``, ``name``, ``context``), so that dashboards and alerts go on; each has Debezium's meaning,
or is left out. ``incsnap_*`` have no bean there; they follow Prometheus' own rules of names and units.
https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-monitoring
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
    """``status``: of now."""

    def __init__(self, status: Callable[[], JobStatus]) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        status = self._status()
        bean = Beans(status.topic_prefix)
        yield from _job(status)
        if status.stream is not None:
            yield from _stream(bean, status, status.stream)
        yield from _snapshot(bean, status.snapshot)
        yield from _windows_and_tables({"name": status.topic_prefix}, status.snapshot)


class Beans:
    """Makes metrics that are called as an attribute of Debezium's bean is."""

    def __init__(self, prefix: str) -> None:
        self._labels = {"plugin": "mysql", "name": prefix}

    def gauge(self, context: str, attribute: str, help_: str, value: float) -> Metric:
        labels = {**self._labels, "context": context}
        family = GaugeMetricFamily(f"debezium_metrics_{attribute}", help_, labels=list(labels))
        family.add_metric(list(labels.values()), value)
        return family

    def by_table(self, attribute: str, help_: str, values: Iterable[tuple[str, float]]) -> Metric:
        labels = {**self._labels, "context": _SNAPSHOT}
        family = GaugeMetricFamily(f"debezium_metrics_{attribute}", help_, labels=[*labels, "table"])
        for table, value in values:
            family.add_metric([*labels.values(), table], value)
        return family


def exposition(status: Callable[[], JobStatus]) -> Callable[[], bytes]:
    """A function that gives the text of a scrape: of the job, and of the driver's process."""
    registry = CollectorRegistry()
    registry.register(JobCollector(status))
    ProcessCollector(registry=registry)
    return lambda: generate_latest(registry)


def _job(status: JobStatus) -> Iterator[Metric]:
    name = {"name": status.topic_prefix}
    info = GaugeMetricFamily("incsnap_info", "The release; always 1.", labels=["name", "release"])
    info.add_metric([status.topic_prefix, status.release], 1)
    yield info
    states = GaugeMetricFamily("incsnap_state", "1 for the state the job is in.", labels=["name", "state"])
    for state in _STATES:
        states.add_metric([status.topic_prefix, state], status.state == state)
    yield states
    now_ms = clock_ms()
    yield _gauge("stalled", "1 where no batch has ended for two minutes.", name, stalled(status, now_ms))
    yield _gauge("start_time_seconds", "When the job began.", name, status.started_ms / 1000)
    failures = status.failure.count if status.failure is not None else 0
    yield _gauge("failures_in_a_row", "Runs of the query that ended with an error since one lasted.", name, failures)
    sums = status.sums
    yield _counter("batches", "Committed batches.", name, sums.batches)
    yield _counter("change_events", "Change events in committed batches.", name, sums.events)
    yield _counter("snapshot_rows_sent", "Rows of windows in committed batches.", name, sums.reads)
    overtaken = "Rows of windows that were not sent, because an event of their key came first."
    yield _counter("snapshot_rows_discarded", overtaken, name, sums.discarded)
    yield _counter("sent_bytes", "Of keys and values in committed batches.", name, sums.bytes)


def _stream(bean: Beans, status: JobStatus, stream: StreamStatus) -> Iterator[Metric]:
    name = {"name": status.topic_prefix}
    yield bean.gauge(_STREAMING, "Connected", "1 while the server sends the binlog.", stream.connected)
    behind = "From the commit of a change to its being in Kafka; it grows while nothing arrives."
    yield bean.gauge(_STREAMING, "MilliSecondsBehindSource", behind, stream.lag_ms)
    since = status.written_ms - stream.last_change_ms if stream.last_change_ms else -1
    yield bean.gauge(_STREAMING, "MilliSecondsSinceLastEvent", "-1 before the first transaction.", since)
    seen = "Change events in committed batches, since the job's first start."
    yield bean.gauge(_STREAMING, "TotalNumberOfEventsSeen", seen, status.sums.events)
    yield bean.gauge(_STREAMING, "NumberOfDisconnects", "Lost connections of this run.", stream.disconnects)
    yield bean.gauge(_STREAMING, "BinlogPosition", "Byte of the present binlog file.", stream.pos)
    yield bean.gauge(_STREAMING, "IsGtidModeEnabled", "Always 1.", 1)
    yield bean.gauge(_STREAMING, "MaxQueueSizeInBytes", "Of binlog that is read ahead.", stream.buffer_bytes)
    yield bean.gauge(_STREAMING, "CurrentQueueSizeInBytes", "Of binlog that is read ahead.", stream.buffered_bytes)
    yield _gauge("binlog_file", "The present binlog file; always 1.", {**name, "file": stream.file}, 1)
    if stream.lag_bytes is not None:
        yield _gauge("binlog_behind_bytes", "From the stream to the end of the binlog.", name, stream.lag_bytes)
    if stream.purge_not_before_ms:
        earliest = "When the server purges the oldest binlog file that the job needs, at the earliest."
        yield _gauge("binlog_purge_time_seconds", earliest, name, stream.purge_not_before_ms / 1000)
    yield _gauge("last_batch_seconds", "What the last batch took.", name, stream.batch_ms / 1000)
    yield _gauge("prepared_xa_transactions", "That wait for their XA COMMIT.", name, len(stream.prepared))


def _snapshot(bean: Beans, snapshot: SnapshotStatus) -> Iterator[Metric]:
    tables = snapshot.tables
    yield bean.gauge(_SNAPSHOT, "SnapshotRunning", "1 while anything is asked for.", snapshot.active)
    yield bean.gauge(_SNAPSHOT, "SnapshotPaused", "1 while it is paused.", snapshot.paused)
    remaining = "Tables that are read or wait."
    yield bean.gauge(_SNAPSHOT, "RemainingTableCount", remaining, len(tables) + snapshot.waiting)
    yield bean.by_table("RowsScanned", "Of tables being read.", ((each.table, each.rows_done) for each in tables))


def _windows_and_tables(labels: dict[str, str], snapshot: SnapshotStatus) -> Iterator[Metric]:
    for attribute, help_, value in (
        ("windows_in_flight", "Chunks that are read and not wholly sent.", snapshot.windows_in_flight),
        ("rows_held", "Rows of windows that are read and not sent.", snapshot.rows_held),
        ("chunks_retried", "Readings of chunks that failed or were lost, in this run.", snapshot.retried),
    ):
        yield _gauge(f"snapshot_{attribute}", help_, labels, value)
    yield from _limits(labels, snapshot)
    for attribute, help_, values in (
        ("rows_expected", "About how many there are.", [(t.table, t.rows_expected) for t in snapshot.tables]),
        ("seconds_left", "About how long it takes.", [(t.table, t.seconds_left) for t in snapshot.tables]),
        ("keys_quarantined", "Ranges of keys given up.", [(t.table, len(t.quarantined)) for t in snapshot.tables]),
    ):
        family = GaugeMetricFamily(f"incsnap_snapshot_{attribute}", help_, labels=[*labels, "table"])
        for table, number in values:
            if number is not None:
                family.add_metric([*labels.values(), table], number)
        yield family


def _limits(labels: dict[str, str], snapshot: SnapshotStatus) -> Iterator[Metric]:
    """What holds reading back, by the names that signals use."""
    for attribute, help_, values in (
        ("limit", "The most that a load may be while chunks are read.", [(e.name, e.most) for e in snapshot.limits]),
        ("load", "What was measured for a limit.", [(e.name, e.measured) for e in snapshot.limits]),
        (
            "held_back",
            "1 while chunks wait for this limit.",
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

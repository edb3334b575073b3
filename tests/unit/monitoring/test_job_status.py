"""The status of a job: its form, whether it tells a living job from a dead one, and what makes it up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from incsnap.errors import ConfigError, OffsetError, ServerUnreachable
from incsnap.monitoring.amounts import moment
from incsnap.monitoring.job_status import NAME, Watch, failure_of
from incsnap.monitoring.liveness import STALLED_MS, is_gone, liveness_of, silence_ms, stalled
from incsnap.monitoring.log_line import purge_warning
from incsnap.monitoring.planner_report import PlannerReport, read, write
from incsnap.monitoring.rates import JobRates, Meter
from incsnap.monitoring.snapshot_view import TableFacts, finished_table, snapshot_status, waits_for
from incsnap.monitoring.status import (
    FAILED,
    RETRYING,
    RUNNING,
    STOPPED,
    JobStatus,
    KeyRange,
    NotificationStatus,
    SnapshotStatus,
    StreamStatus,
    Sums,
    TableStatus,
    clock_ms,
    dump,
    load,
)
from incsnap.snapshot.commands import DataCollection
from incsnap.snapshot.context import Range, Request, Scan, SnapshotContext
from incsnap.snapshot.notifications import Notification
from incsnap.snapshot.window import ChunkResult, Window
from incsnap.tables import TableId
from tests.support.job_statuses import running
from tests.support.waiting import wait_until

ORDERS, LINES = TableId("shop", "orders"), TableId("shop", "lines")
STREAM = StreamStatus(7, "binlog.000002", 1234, "uuid:1-9", lag_ms=40)


def job_status(**changed: object) -> JobStatus:
    made = JobStatus("0.1.0", "shop", "elsewhere", 4711, 1_000, RUNNING, 2_000, 100_000, 1_000, asked_ms=99_900)
    return replace(made, **changed)  # type: ignore[arg-type]


# -- its form


def test_a_status_survives_dump_json_and_load() -> None:
    table = TableStatus(1, "shop.orders", "s", rows_expected=5, quarantined=(KeyRange("1", "2"),))
    snapshot = SnapshotStatus(paused=True, tables=(table,), waiting_first=("shop.lines",))
    notification = NotificationStatus("s", "STARTED", 5, {"data_collections": "shop.orders"})
    status = job_status(
        stream=STREAM, snapshot=snapshot, failure=failure_of(ValueError("x")), notifications=(notification,)
    )

    assert load(json.loads(json.dumps(dump(status)))) == status


def test_every_field_is_written_also_where_it_has_its_default() -> None:
    assert dump(job_status())["snapshot"]["windows"] == ()
    assert dump(job_status())["stream"] is None


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ([], "not a status"),
        ({"format": "incsnap"}, "not a status"),
        ({**dump(job_status()), "version": 99}, "version 99"),
        ({**dump(job_status()), "pid": "x"}, "damaged"),
        ({name: value for name, value in dump(job_status()).items() if name != "pid"}, "damaged"),
    ],
)
def test_a_status_file_of_another_form_is_refused(document: object, what: str) -> None:
    with pytest.raises(OffsetError, match=what):
        load(document)


# -- dead or alive


def test_a_job_is_dead_from_the_time_of_its_last_status() -> None:
    status = job_status()
    last = status.written_ms + silence_ms(status)

    assert liveness_of(status, last).alive
    liveness = liveness_of(status, last + 1)
    assert (liveness.alive, liveness.since_ms, liveness.has_ended) == (False, status.written_ms, False)


def test_a_job_whose_file_is_renewed_seldom_may_be_silent_for_longer() -> None:
    assert liveness_of(job_status(every_ms=10_000), 100_000 + 45_000).alive


@pytest.mark.parametrize("state", [STOPPED, FAILED])
def test_a_job_that_has_ended_says_so_itself(state: str) -> None:
    liveness = liveness_of(job_status(state=state), 101_000)

    assert (liveness.alive, liveness.since_ms, liveness.has_ended) == (False, 2_000, True)


def test_a_process_is_missed_on_its_own_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(pid: int, number: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", kill)
    assert not is_gone(job_status())
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    assert is_gone(job_status())


def test_a_run_in_which_nothing_ends_for_two_minutes_is_stalled() -> None:
    status = job_status()

    assert not stalled(status, status.asked_ms + STALLED_MS)
    assert stalled(status, status.asked_ms + STALLED_MS + 1)
    # It waits for its next try, which is not hanging.
    assert not stalled(replace(status, state=RETRYING), status.asked_ms + STALLED_MS + 1)
    # A run that has just begun was not asked for a batch yet.
    assert not stalled(replace(status, since_ms=status.asked_ms + 5), status.asked_ms + STALLED_MS + 1)


# -- rates


def test_a_rate_covers_the_last_seconds_and_restarts_when_the_sum_falls() -> None:
    meter = Meter(10.0)

    assert meter.see(0.0, 0) is None
    assert meter.see(1.0, 100) is None
    assert meter.see(4.0, 400) == 100
    assert meter.see(24.0, 400) == 0
    assert meter.see(25.0, 10) is None


def test_a_table_has_time_left_once_its_rows_go_up_and_none_while_it_is_paused() -> None:
    table = TableStatus(1, "shop.orders", "s", rows_done=0, rows_expected=1000, rows_low=800, rows_high=2000)
    rates = JobRates()
    rates.of_tables(0.0, SnapshotStatus(tables=(table,)))
    later = SnapshotStatus(tables=(replace(table, rows_done=400),))

    (going_on,) = rates.of_tables(4.0, later).tables
    (paused,) = rates.of_tables(4.0, replace(later, paused=True)).tables

    assert (going_on.rows_per_second, going_on.seconds_left) == (100, 6)
    assert (going_on.seconds_low, going_on.seconds_high) == (4, 16)
    assert paused.seconds_left is None


# -- the snapshot


def window(name: str, scan: int = 1, **more: object) -> Window:
    return Window(name, scan, ORDERS, "s", ("1",), ("9",), 100, 3, **more)  # type: ignore[arg-type]


def test_the_status_has_tables_and_windows_of_a_snapshot() -> None:
    read_ = ChunkResult(90, 900, 0.1, "binlog.000002", 500, record_bytes=9_000, parts=3)
    context = SnapshotContext(
        queue=(Request("s", DataCollection(LINES)),),
        scans=(
            Scan(
                1,
                Request("s", DataCollection(ORDERS)),
                100,
                columns=("id",),
                described=True,
                maximum=("1000",),
                boundary=("500",),
                again=(Range(("5",), ("7",), 10, attempt=4),),
                quarantine=(Range(("2",), ("3",), 1),),
                rows_read=200,
            ),
        ),
        held=(window("1-0", result=read_, passed=True, sent=1), window("2-0", result=read_)),
        planned=(window("3-0"),),
    )

    snapshot = snapshot_status(context, {ORDERS: TableFacts(1_000, "0")}, retried=6)

    (table,) = snapshot.tables
    assert (table.table, table.rows_done, table.windows) == ("shop.orders", 230, 3)
    assert table.rows_low is not None
    assert table.rows_expected is not None
    assert table.rows_high is not None
    assert table.rows_low <= table.rows_expected <= table.rows_high
    # Half of the keys are read or being read: 490 rows; so there are about 1,000.
    assert 900 <= table.rows_expected <= 1_000
    assert (table.read_again, table.readings, table.quarantined) == (1, 4, (KeyRange("2", "3"),))
    assert [each.state for each in snapshot.windows] == ["releasing", "read", "reading"]
    assert (snapshot.windows_in_flight, snapshot.rows_held, snapshot.waiting, snapshot.retried) == (3, 150, 1, 6)
    assert snapshot.waiting_first == ("shop.lines",)


def test_a_snapshot_with_a_condition_is_not_measured_by_the_size_of_its_table() -> None:
    request = Request("s", DataCollection(ORDERS, "a = 1"))
    scan = Scan(1, request, 100, columns=("id",), maximum=("9",), boundary=("6",), rows_read=5)

    (table,) = snapshot_status(SnapshotContext(scans=(scan,)), {ORDERS: TableFacts(1_000, "0")}).tables

    assert (table.rows_done, table.rows_expected) == (5, None)


@pytest.mark.parametrize(
    ("context", "behind", "reason"),
    [
        (SnapshotContext(), None, ""),
        (SnapshotContext(paused=True), None, ""),
        (SnapshotContext((Request("s", DataCollection(LINES)),), paused=True), None, "paused"),
        (SnapshotContext((Request("s", DataCollection(LINES)),)), 12.0, "the stream is 12 s behind"),
        (SnapshotContext((Request("s", DataCollection(LINES)),)), None, ""),
        (
            SnapshotContext(scans=(Scan(1, Request("s", DataCollection(LINES)), 9, not_before_ms=3_500),)),
            None,
            "next try in 2.5 s",
        ),
    ],
)
def test_the_status_says_why_no_chunk_is_planned(context: SnapshotContext, behind: float | None, reason: str) -> None:
    why = waits_for(context, 1_000, behind)

    assert reason in why
    assert bool(reason) == bool(why)


def test_the_end_of_a_table_is_taken_from_its_notification() -> None:
    fields = {"scanned_collection": "shop.orders", "status": "SUCCEEDED", "total_rows_scanned": "7"}
    table = finished_table(Notification("s", "TABLE_SCAN_COMPLETED", 5, tuple(fields.items())))

    assert table is not None
    assert (table.table, table.rows, table.status, table.ended_ms) == ("shop.orders", 7, "SUCCEEDED", 5)
    assert finished_table(Notification("s", "COMPLETED", 5)) is None


# -- the watch


class InMemory:
    def __init__(self) -> None:
        self.content = b""
        self.writes = 0
        self.fails = False

    def write(self, name: str, content: bytes) -> None:
        assert name == NAME
        self.writes += 1
        if self.fails:
            raise OSError("No space left on device")
        self.content = content

    @property
    def status(self) -> JobStatus:
        return load(json.loads(self.content))


def watch(store: InMemory, sums: Callable[[], Sums] = Sums) -> Watch:
    return Watch("shop", store, sums, file_seconds=0.01, every_seconds=0.01)


def test_the_watch_writes_what_the_planner_reports_and_how_the_job_ends(tmp_path: Path) -> None:
    store, report = InMemory(), tmp_path / "report.json"
    notification = NotificationStatus("s", "STARTED", 5, {})
    write(report, PlannerReport(10**13, 77, STREAM, SnapshotStatus(), (notification,)))
    watching = watch(store, lambda: Sums(events=3))
    watching.follow(report)
    wait_until(lambda: watching.status().stream is not None)

    assert (watching.status().state, watching.status().asked_ms) == (RUNNING, 77)
    assert watching.status().notifications == (notification,)

    watching.enter(RETRYING, failure_of(ServerUnreachable("gone", "start it"), 2))
    watching.close(STOPPED)
    watching.close(FAILED)

    assert (store.status.state, store.status.stream, store.status.sums.events) == (STOPPED, STREAM, 3)
    assert store.status.failure is not None
    assert (store.status.failure.message, store.status.failure.count) == ("gone", 2)


def test_notifications_of_the_runs_before_are_kept(tmp_path: Path) -> None:
    store, report = InMemory(), tmp_path / "report.json"
    first, second = NotificationStatus("s", "STARTED", 5, {}), NotificationStatus("s", "COMPLETED", 9, {})
    write(report, PlannerReport(10**13, 1, STREAM, SnapshotStatus(), (first,)))
    watching = watch(store)
    watching.follow(report)
    wait_until(lambda: watching.status().notifications == (first,))
    write(report, PlannerReport(10**13, 1, STREAM, SnapshotStatus(), (second,)))
    wait_until(lambda: watching.status().notifications == (first, second))
    watching.close(STOPPED)

    assert store.status.notifications == (first, second)


def test_the_lag_of_a_run_that_has_delivered_nothing_grows_from_what_it_was(tmp_path: Path) -> None:
    """Kafka is away: each run of the query ends before its first batch is done."""
    watching = watch(InMemory())
    lags: list[int] = []

    def lag_of(run: int, *, delivered: bool, more_than: int) -> None:
        def shown() -> bool:
            write(report, PlannerReport(clock_ms(), 1, stream, SnapshotStatus(), (), delivered))
            now = watching.status().stream
            return now is not None and now.batch == run and now.lag_ms > more_than

        report, stream = tmp_path / f"{run}.json", replace(STREAM, batch=run, lag_ms=0 if not delivered else 40)
        write(report, PlannerReport(clock_ms(), 1, stream, SnapshotStatus(), (), delivered))
        watching.follow(report)
        wait_until(shown)
        last = watching.status().stream
        assert last is not None
        lags.append(last.lag_ms)

    lag_of(1, delivered=False, more_than=100)
    lag_of(2, delivered=False, more_than=lags[0] + 100)
    lag_of(3, delivered=True, more_than=39)
    watching.close(STOPPED)

    assert lags[0] < lags[1]
    assert lags[2] == 40


def test_a_planner_that_is_silent_lets_the_lag_grow(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    write(report, PlannerReport(1, 1, STREAM, SnapshotStatus()))
    watching = watch(InMemory())
    watching.follow(report)
    wait_until(lambda: watching.status().stream is not None)
    watching.close(STOPPED)

    stream = watching.status().stream
    assert stream is not None
    assert stream.lag_ms > 10**9
    assert not stream.connected


def test_a_status_that_cannot_be_shared_does_not_end_the_watch() -> None:
    class Unshared(InMemory):
        def write(self, name: str, content: bytes) -> None:
            super().write(name, content)
            raise ConfigError("this machine has no group operators")

    store = Unshared()
    watching = watch(store)
    wait_until(lambda: store.writes > 3)
    watching.close(STOPPED)

    assert store.status.state == STOPPED


def test_a_full_disk_or_a_bad_look_does_not_end_the_watch(caplog: pytest.LogCaptureFixture) -> None:
    store = InMemory()
    store.fails = True
    looks = iter([ValueError("torn")])

    def sums() -> Sums:
        for problem in looks:
            raise problem
        return Sums()

    watching = watch(store, sums)
    wait_until(lambda: store.writes > 3)
    store.fails = False
    wait_until(lambda: bool(store.content))
    watching.close(STOPPED)

    assert store.status.state == STOPPED
    assert [record.message for record in caplog.records if "status file" in record.message] == [
        "Cannot write the status file, so `incsnap status` shows old figures: No space left on device"
    ]


def test_a_report_is_whole_or_absent(tmp_path: Path) -> None:
    report = PlannerReport(
        5, 1, STREAM, SnapshotStatus(finished=()), (NotificationStatus("s", "STARTED", 5, {"a": "b"}),)
    )

    assert read(tmp_path / "report.json") is None
    write(tmp_path / "report.json", report)
    assert read(tmp_path / "report.json") == report
    assert os.listdir(tmp_path) == ["report.json"]


def test_a_running_job_says_how_it_goes_now_and_then(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="incsnap")
    report = tmp_path / "report.json"
    write(report, PlannerReport(10**13, 1, replace(STREAM, lag_bytes=7), SnapshotStatus()))
    watching = Watch("shop", InMemory(), Sums, every_seconds=0.01, log_seconds=0.02)
    watching.follow(report)
    wait_until(lambda: len(caplog.records) > 2)
    watching.enter(RETRYING)
    watching.close(STOPPED)

    assert {record.message for record in caplog.records} == {
        "Lag 0.04 s, 7 B behind; 0 events/s, 0 snapshot rows/s, 0 B/s; at binlog.000002:1234, batch 7"
    }


def test_a_binlog_file_that_may_be_purged_within_the_hour_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    report = tmp_path / "report.json"
    in_40_minutes = clock_ms() + 2_400_000

    def tell(file: str, purge_ms: int | None) -> None:
        stream = replace(STREAM, needs_file=file, purge_not_before_ms=purge_ms)
        write(report, PlannerReport(10**13, 1, stream, SnapshotStatus()))

    tell("binlog.000002", in_40_minutes)
    watching = Watch("shop", InMemory(), Sums, every_seconds=0.01, log_seconds=0.02)
    watching.follow(report)
    wait_until(lambda: "binlog.000002" in caplog.text)
    tell("binlog.000003", in_40_minutes)
    wait_until(lambda: "binlog.000003" in caplog.text)
    watching.close(STOPPED)

    assert len(caplog.messages) == 2
    assert caplog.messages[0].startswith(f"MySQL may purge binlog.000002 from {moment(in_40_minutes)} on")
    assert "binlog_expire_logs_seconds" in caplog.messages[0]


@pytest.mark.parametrize("purge_ms", [None, 0, clock_ms() + 7_200_000], ids=["never", "unknown", "in two hours"])
def test_a_binlog_file_that_stays_is_not_warned_of(
    purge_ms: int | None,
) -> None:
    stream = replace(STREAM, needs_file="binlog.000002", purge_not_before_ms=purge_ms)
    assert purge_warning(running(stream=stream)) == ""

"""Tests of the planner's report: lag, batch and ended tables, also if the server does not answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from incsnap.binlog.buffer_position import TailCondition
from incsnap.checkpoint.files import Files
from incsnap.errors import ServerUnreachable
from incsnap.events import BinlogPosition, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.monitoring.job_status import Watch
from incsnap.monitoring.last_snapshot import SnapshotHistory
from incsnap.monitoring.planner_report import Planned, PlannerReport, Reporter, read
from incsnap.monitoring.server_facts import ServerFacts
from incsnap.monitoring.status import STOPPED, Sums, clock_ms
from incsnap.snapshot.notifications import Notification
from incsnap.snapshot.offset import Offset, TopicLayout
from tests.support.waiting import wait_until

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
POSITION = StreamPosition(GtidSet.parse(f"{UUID}:1-3"), "binlog.000001", 99, server_uuid=UUID)
OFFSET = Offset("job", 4, POSITION, TopicLayout(1))


def away() -> Any:
    raise ServerUnreachable("MySQL does not answer")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report.json"


@pytest.fixture
def reporter(path: Path) -> Iterator[Reporter]:
    made = Reporter(str(path), OFFSET, away, lambda: TailCondition(True, 2, 1_000), 64_000, every_seconds=0.01)
    yield made
    made.close()


def planned(last_ts_us: int = 0, *, more: bool = False, failed: int = 0) -> Planned:
    return Planned(OFFSET, POSITION, last_ts_us, more, "", failed)


def last(reporter: Reporter, path: Path) -> PlannerReport:
    reporter.close()
    status = read(path)
    assert status is not None
    return status


def test_the_report_has_the_start_before_the_first_batch(reporter: Reporter, path: Path) -> None:
    stream = last(reporter, path).stream

    assert (stream.batch, stream.pos, stream.lag_ms, stream.lags) == (4, 99, 0, None)


def test_a_run_has_delivered_something_once_a_batch_is_done_or_nothing_is_to_come(
    reporter: Reporter, path: Path
) -> None:
    def has_delivered() -> bool:
        return reporter._report().has_delivered

    assert not has_delivered()
    reporter.batch_asked()
    reporter.planned(planned(time.time_ns() // 1000, more=True), is_batch=True, notifications=())
    assert not has_delivered()
    reporter.batch_asked()
    assert has_delivered()


def test_a_run_that_has_nothing_to_deliver_lacks_nothing(reporter: Reporter, path: Path) -> None:
    reporter.batch_asked()
    reporter.planned(planned(), is_batch=False, notifications=())

    assert last(reporter, path).has_delivered


def test_a_planner_that_reads_again_what_it_had_is_not_hung(path: Path) -> None:
    reporter = Reporter(
        str(path), OFFSET, away, lambda: TailCondition(True, 0, 0, replaying=True), 1, every_seconds=0.01
    )
    reporter._batch_asked_ms = 1
    wait_until(lambda: reporter._batch_asked_ms > 1)

    assert last(reporter, path).asked_ms > 1


def test_an_idle_stream_has_no_lag_though_the_server_does_not_answer(reporter: Reporter, path: Path) -> None:
    reporter.batch_asked()
    reporter.planned(planned(), is_batch=False, notifications=())

    stream = last(reporter, path).stream

    assert (stream.lag_ms, stream.lag_bytes, stream.purge_not_before_ms) == (0, None, None)
    assert (stream.batch, stream.file, stream.pos, stream.needs_file) == (4, "binlog.000001", 99, "binlog.000001")
    assert (stream.connected, stream.disconnects, stream.buffered_bytes, stream.buffer_bytes) == (
        True,
        2,
        1_000,
        64_000,
    )


def test_changes_of_tables_that_are_not_captured_are_no_lag(reporter: Reporter, path: Path) -> None:
    """The offset passes them with a batch every ten seconds."""
    long_ago_us = reporter._reached_us = time.time_ns() // 1000 - 3_600_000_000
    reporter.batch_asked()
    reporter.planned(planned(long_ago_us), is_batch=False, notifications=())

    assert last(reporter, path).stream.lag_ms < 60_000


def test_the_lag_is_that_of_the_last_change_that_has_reached_kafka(reporter: Reporter, path: Path) -> None:
    committed_us = time.time_ns() // 1000 - 7_000_000
    reporter.batch_asked()
    reporter.planned(planned(committed_us, more=True), is_batch=True, notifications=())
    reporter.batch_asked()

    stream = last(reporter, path).stream

    assert 7_000 <= stream.lag_ms < 60_000
    assert stream.last_change_ms == committed_us // 1000


def test_the_lags_of_batches_with_changes_have_statistics(reporter: Reporter, path: Path) -> None:
    now_us = time.time_ns() // 1000
    for behind_s in (0, 60, 7_200):
        committed_us = now_us - behind_s * 1_000_000 if behind_s else 0
        reporter.batch_asked()
        reporter.planned(planned(committed_us, more=True), is_batch=True, notifications=())
    before = reporter._report().stream.lags
    reporter.batch_asked()
    lags = last(reporter, path).stream.lags

    # The batch that is under way has no lag yet, and a batch without changes has none at all.
    assert before is not None
    assert 60_000 <= before.min_ms == before.max_ms < 120_000
    assert lags is not None
    assert lags.min_ms == before.min_ms
    assert 7_200_000 <= lags.max_ms < 7_300_000
    assert lags.average_ms == (lags.min_ms + lags.max_ms) / 2


def test_notifications_and_ended_tables_are_told_but_no_progress(reporter: Reporter, path: Path) -> None:
    ended = {"scanned_collection": "shop.orders", "status": "EMPTY", "total_rows_scanned": "0"}
    notifications_ = (
        Notification("s", "STARTED", 1, (("data_collections", "shop.orders"),)),
        Notification("s", "IN_PROGRESS", 2),
        Notification("s", "TABLE_SCAN_COMPLETED", 3, tuple(ended.items())),
    )
    reporter.batch_asked()
    reporter.planned(planned(failed=2), is_batch=True, notifications=notifications_)
    reporter.planned(planned(failed=1), is_batch=True, notifications=())

    report = last(reporter, path)

    assert [each.type for each in report.notifications] == ["STARTED", "TABLE_SCAN_COMPLETED"]
    assert [each.table for each in report.snapshot.finished] == ["shop.orders"]
    assert report.snapshot.retried == 3


def _ended(table: str, status: str, at_ms: int) -> Notification:
    fields = {"scanned_collection": table, "status": status, "total_rows_scanned": "0"}
    return Notification("s", "TABLE_SCAN_COMPLETED", at_ms, tuple(fields.items()))


def test_a_failed_table_is_kept_behind_any_number_of_others(reporter: Reporter, path: Path, tmp_path: Path) -> None:
    reporter.planned(planned(), is_batch=True, notifications=[_ended("shop.bad", "NO_PRIMARY_KEY", 1)])
    for number in range(2, 200):
        reporter.planned(planned(), is_batch=True, notifications=[_ended(f"shop.t{number}", "SUCCEEDED", number)])
    finished = last(reporter, path).snapshot.finished

    assert (finished[0].table, finished[-1].table, len(finished)) == ("shop.bad", "shop.t199", 51)

    watching = Watch("shop", Files(str(tmp_path)), Sums, every_seconds=0.01)
    watching.follow(path)
    wait_until(lambda: watching.status().stream is not None)
    watching.close(STOPPED)

    assert watching.status().snapshot.finished == finished


def test_a_failed_table_that_was_read_completely_later_is_forgotten(reporter: Reporter, path: Path) -> None:
    ends = [_ended("shop.bad", "NO_PRIMARY_KEY", 1), _ended("shop.bad", "SUCCEEDED", 2)]
    ends += [_ended("shop.t", "SUCCEEDED", number) for number in range(3, 53)]
    for each in ends:
        reporter.planned(planned(), is_batch=True, notifications=[each])

    assert {each.table for each in last(reporter, path).snapshot.finished} == {"shop.t"}


def test_each_of_many_tables_that_end_in_one_batch_is_counted(reporter: Reporter, path: Path) -> None:
    now_ms, history = clock_ms(), SnapshotHistory()
    ends = [_ended(f"shop.t{number}", "SUCCEEDED", now_ms) for number in range(256)]
    reporter.planned(planned(), is_batch=True, notifications=[Notification("s", "STARTED", now_ms), *ends])

    history.see(last(reporter, path).notifications)

    assert history.last(0, now_ms).tables == 256


def test_reports_come_by_themselves_and_end_with_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    reporter = Reporter(
        str(folder / "report.json"), OFFSET, away, lambda: TailCondition(True, 0, 0), 1, every_seconds=0.01
    )
    reporter.planned(planned(), is_batch=False, notifications=())
    wait_until(lambda: read(folder / "report.json") is not None)
    (folder / "report.json").unlink(missing_ok=True)

    reporter.close()

    assert not reporter._thread.is_alive()


def test_the_end_of_the_binlog_is_never_told_to_lie_behind_the_stream(reporter: Reporter, path: Path) -> None:
    reporter._facts = ServerFacts(uuid=UUID, file="binlog.000001", pos=50)
    stream = last(reporter, path).stream

    assert (stream.end_file, stream.end_pos, stream.lag_bytes) == ("binlog.000001", 99, 0)


def test_an_old_end_of_the_binlog_is_not_taken_for_the_present_one(
    reporter: Reporter, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wait_until(lambda: bool(reporter._unanswered))
    reporter._facts = ServerFacts(uuid=UUID, file="binlog.000001", pos=50, expire_seconds=60, ahead_ms=7)
    reporter._facts_until = time.monotonic() - 1.0
    stream = last(reporter, path).stream

    assert (stream.lag_bytes, stream.purge_not_before_ms, stream.end_file) == (None, None, "")
    assert reporter._facts.ahead_ms == 7
    assert [each.message for each in caplog.records if each.levelname == "WARNING"] == [
        "MySQL does not tell where its binlog ends, so the bytes behind and the next purge are unknown:"
        " MySQL does not answer"
    ]


def test_the_last_end_of_the_binlog_stays_while_the_stream_is_not_connected(path: Path) -> None:
    reporter = Reporter(str(path), OFFSET, away, lambda: TailCondition(False, 1, 0), 1, every_seconds=0.01)
    reporter._facts = ServerFacts(uuid=UUID, file="binlog.000001", pos=150, sizes=(("binlog.000001", 150),))
    reporter._facts_until = time.monotonic() - 1.0
    stream = last(reporter, path).stream

    assert (stream.end_file, stream.end_pos, stream.lag_bytes) == ("binlog.000001", 150, 51)


FACTS = ServerFacts(
    uuid=UUID,
    file="binlog.000004",
    pos=40,
    sizes=(("binlog.000002", 200), ("binlog.000003", 300), ("binlog.000004", 35)),
    expire_seconds=60,
)


@pytest.mark.parametrize(
    ("file", "pos", "uuid", "behind"),
    [
        ("binlog.000004", 40, UUID, 0),
        ("binlog.000004", 50, UUID, 0),
        ("binlog.000004", 10, UUID, 30),
        ("binlog.000003", 100, UUID, 240),
        ("binlog.000002", 100, UUID, 440),
        ("binlog.000002", 100, f"{UUID}/1", 440),
        ("binlog.000001", 100, UUID, None),
        ("other.000003", 100, UUID, None),
        ("", 0, "", None),
        ("binlog.000003", 100, "another", None),
    ],
)
def test_the_bytes_behind_are_those_of_the_files_between(file: str, pos: int, uuid: str, behind: int | None) -> None:
    assert FACTS.bytes_behind(BinlogPosition(file, pos, uuid)) == behind


def test_the_next_purge_is_told_as_the_earliest_moment() -> None:
    assert FACTS.purge_not_before_ms("binlog.000002", 5_000) == 65_000
    assert FACTS.purge_not_before_ms("binlog.000002", 0) is None
    assert FACTS.purge_not_before_ms("binlog.000004", 5_000) == 0
    assert ServerFacts(uuid=UUID, file="binlog.000004", pos=4).purge_not_before_ms("binlog.000002", 5_000) == 0
    assert ServerFacts().purge_not_before_ms("binlog.000002", 5_000) is None

"""Made-up statuses of jobs, for tests of what commands and the page show."""

from __future__ import annotations

import time
from dataclasses import replace

from incsnap.monitoring.gap_status import GapStatus
from incsnap.monitoring.lag_statistics import LagStatistics
from incsnap.monitoring.status import (
    RUNNING,
    FinishedTable,
    JobStatus,
    KeyRange,
    LimitStatus,
    NotificationStatus,
    Rates,
    SnapshotStatus,
    StreamStatus,
    Sums,
    TableStatus,
    WindowStatus,
)
from incsnap.monitoring.verification_status import TableVerification, VerificationStatus

BINLOG = "binlog.000042"
SERVER = "2bd36f56-0000-4000-8000-000000000001"


def now_ms() -> int:
    """Return the time in ms since 1970."""
    return time.time_ns() // 1_000_000


def running(**changed: object) -> JobStatus:
    """Return the status of a running job: it reads two tables, one with failed readings, and has windows of all kinds.

    `changed` replaces attributes of the status.
    """
    now = now_ms()
    orders = TableStatus(
        1,
        "shop.orders",
        "nightly",
        rows_done=1_240_000,
        rows_expected=2_000_000,
        rows_low=1_900_000,
        rows_high=2_300_000,
        rows_per_second=64_200.0,
        seconds_left=11.8,
        seconds_low=10.3,
        seconds_high=16.5,
        chunk_rows=50_000,
        windows=4,
        planned_key="1440000",
        maximum_key="2000000",
        read_again=2,
        readings=3,
        quarantined=(KeyRange("26", "27"),),
    )
    people = TableStatus(2, "shop.people_with_a_rather_long_name", "nightly", "country = 'nl'", rows_done=777)
    windows = (
        WindowStatus("9-0", "shop.orders", "releasing", 50_000, now, 40_000_000, BINLOG, 900_000, parts=12, sent=5),
        WindowStatus("9-1", "shop.orders", "read", 50_000, now, 40_000_000, BINLOG, 1_060_000, parts=12),
        WindowStatus("9-2", "shop.orders", "read", 50_000, now, 40_000_000, BINLOG, 1_400_000, parts=12),
        WindowStatus("9-3", "shop.people_with_a_rather_long_name", "reading", 10_000, now),
    )
    ended = FinishedTable("shop.lines", "nightly", "INCOMPLETE", 4_000_000, now - 60_000, missing_keys="(26, 27]")
    made = JobStatus(
        release="0.1.0",
        topic_prefix="shop",
        host="db-host",
        pid=4711,
        started_ms=now - 11_520_000,
        state=RUNNING,
        since_ms=now - 11_000_000,
        written_ms=now,
        every_ms=1_000,
        asked_ms=now - 40,
        mysql="db:3306",
        kafka="k:9092",
        stream=StreamStatus(
            batch=123_456,
            file=BINLOG,
            pos=1_000_000,
            delivered="3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9123456",
            server_uuid="3e11fa47-71ca-11e1-9e33-c80aa9429562",
            lag_ms=63,
            lag_bytes=400_000,
            end_file=BINLOG,
            end_pos=1_400_000,
            last_change_ms=now - 63,
            batch_ms=52,
            buffered_bytes=800_000,
            buffer_bytes=64 << 20,
            disconnects=1,
            needs_file=BINLOG,
            purge_not_before_ms=now + 86_400_000,
            lags=LagStatistics(12, 4_000, 71.5, 60.0, 180.0, 900.0),
        ),
        snapshot=SnapshotStatus(
            waiting=3,
            waiting_first=("shop.a", "shop.b", "shop.c"),
            tables=(orders, people),
            windows_in_flight=4,
            windows=windows,
            rows_held=129_167,
            retried=7,
            waits_for="throttled: 28 threads run on the server, more than the 25 threads of signal spare",
            limits=(LimitStatus("rows-per-second", 90_000), LimitStatus("threads-running", 25, "spare", 28)),
            held_back_by="threads-running",
            finished=(ended,),
        ),
        verification=VerificationStatus(
            sample=24,
            rounds=12,
            failures=1,
            ended_ms=now - 600_000,
            seconds=95.0,
            tables=(TableVerification("shop.orders", 83_000, 2, 1), TableVerification("shop.lines", 166_000)),
        ),
        gap=GapStatus(
            "2bd36f56-0000-4000-8000-000000000001:1-77",
            now - 60_000,
            left=3,
            compared=9,
            whole=1,
            keys=1_234,
            failures=2,
        ),
        sums=Sums(
            123_000, 12_345_678, 5_240_000, 512, 9_876_543_210, creates=9_000_000, updates=3_000_000, deletes=345_678
        ),
        rates=Rates(1_234.0, 64_200.0, 51_000_000.0),
        notifications=(
            NotificationStatus("nightly", "STARTED", now - 90_000, {"data_collections": "shop.orders,shop.lines"}),
        ),
    )
    return replace(made, **changed)  # type: ignore[arg-type]

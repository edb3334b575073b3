"""A comparison inside a running job: beside the stream, in few task slots, and over when the job is."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

import pytest
from pyspark.sql import SparkSession

import incsnap
from incsnap.spark.job_verification import JobVerification
from incsnap.verify.report import TableReport
from incsnap.verify.verification import Choice
from lab.captured_database import CapturedDatabase
from lab.running_job import write_properties
from lab.table_designs import ORDERS
from tests.support.spark_session import session
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.servers


@pytest.fixture
def spark(play: CapturedDatabase, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """Yield a session for the job of `play`."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "MALLOC_ARENA_MAX", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    made = session(incsnap.Settings.from_file(write_properties(play.folder / "s.properties", play.properties())))
    yield made
    made.stop()


def test_a_running_job_compares_its_tables_and_goes_on(spark: SparkSession, play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, 20_000)
    properties = play.properties({"snapshot.mode": "initial"})
    settings = incsnap.Settings.from_file(write_properties(play.folder / "incsnap.properties", properties))
    job = incsnap.start(spark, settings)
    try:
        wait_until(lambda: job.status().sums.reads == 20_000)
        verification = JobVerification(spark, settings, tasks=1)
        reports: list[TableReport] = []
        busiest = _most_tasks_while(spark, verification, verification.begin(Choice(), reports.extend))
        assert {report.table: report.is_equal for report in reports}[str(orders)], reports
        assert (busiest, verification.failures) == (1, 0)

        # A comparison that fails ends neither the job nor later comparisons.
        verification.begin(Choice(("no.table",)), _never).join(PATIENCE_SECONDS)
        assert verification.failures == 1
        assert job.query.isActive

        # A comparison that would last until the lock is released ends at once.
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {orders.sql} WRITE")
            tracker, group = spark.sparkContext.statusTracker(), verification._group
            before = set(tracker.getJobIdsForGroup(group))
            began = verification.begin(Choice((str(orders),)), _never)
            wait_until(lambda: not before.issuperset(tracker.getJobIdsForGroup(group)))
            verification.close()
            began.join(PATIENCE_SECONDS)
            assert not began.is_alive()
        assert verification.failures == 1
        assert job.query.isActive
    finally:
        job.stop()


def _never(reports: Sequence[TableReport]) -> None:
    raise AssertionError(reports)


def _most_tasks_while(spark: SparkSession, verification: JobVerification, thread: threading.Thread) -> int:
    """Return the most tasks of jobs of `verification` that ran at the same time until `thread` ended.

    The jobs are short, so their tasks are counted, and not those that the status shows as active.
    """
    tracker, most = spark.sparkContext.statusTracker(), 0
    while thread.is_alive():
        jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(verification._group)]
        running = [number for job in jobs if job is not None and job.status == "RUNNING" for number in job.stageIds]
        stages = [tracker.getStageInfo(number) for number in running]
        most = max(most, sum(stage.numTasks for stage in stages if stage is not None))
        time.sleep(0.01)
    return most

"""A job that compares its tables with its topics while it runs: `incsnap.verify.interval`.

Each round compares another sample of the keys. After as many rounds as `incsnap.verify.sample` says, every key was
compared. The first sample of a run follows from the time, so a job that is often restarted does not begin with the
same one each time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from incsnap.config.settings import Settings
from incsnap.monitoring.job_status import Watch
from incsnap.monitoring.status import clock_ms
from incsnap.monitoring.verification_status import TableVerification, VerificationStatus
from incsnap.spark.job_verification import JobVerification
from incsnap.spark.verification_notice import announce
from incsnap.verify.kinds import DIFFERENCES, UNVERIFIABLE
from incsnap.verify.report import TableReport
from incsnap.verify.verification import Choice

log = logging.getLogger(__name__)

#: Part of the time in which a task of a round runs. Python and the JVM work at the same time in a task. So it is less
#: than the 5 % of a core that a round may use.
SHARE = 0.04
#: Seconds between two looks whether a snapshot still runs, and from its end to the next round: its rows are on their
#: way, and would count as missing.
_LOOK_SECONDS = 5.0


class StandingVerification:
    """The rounds of one query's job. They end when `verification` is closed."""

    def __init__(self, verification: JobVerification, settings: Settings, watch: Watch) -> None:
        assert settings.verify.interval_seconds is not None
        self._verification, self._settings, self._watch = verification, settings, watch
        self._interval, self._sample = settings.verify.interval_seconds, settings.verify.sample
        self._number = int(time.time() // self._interval) % self._sample
        self._known = KnownDifferences()
        self._status = VerificationStatus(self._sample)
        watch.verified(self._status)

    def start(self) -> None:
        """Compare in a thread of its own, first after one interval."""
        threading.Thread(target=self._run, name="incsnap-standing-verification", daemon=True).start()

    def _run(self) -> None:
        while self._verification.sleep(self._interval) and self._rests_from_snapshots():
            try:
                self._round(self._number)
            except Exception as error:  # noqa: BLE001 - the next round begins as usual
                self._verification.note_failure(error)
                self._show(self._ended())

    def _rests_from_snapshots(self) -> bool:
        """Wait until no snapshot runs. Return False if the job ends first."""
        while self._watch.status().stream is None or self._has_read_since(clock_ms() - round(_LOOK_SECONDS * 1000)):
            if not self._verification.sleep(_LOOK_SECONDS):
                return False
        return True

    def _has_read_since(self, since_ms: int) -> bool:
        """Return True if a snapshot runs, or if one has ended since `since_ms`."""
        snapshot = self._watch.status().snapshot
        return snapshot.active or any(each.ended_ms >= since_ms for each in snapshot.finished)

    def _round(self, number: int) -> None:
        began, began_ms = time.monotonic(), clock_ms()
        self._show(replace(self._status, running_since_ms=began_ms))
        reports = self._verification.attempt(Choice(sample=self._sample, number=number), SHARE)
        status = self._ended()
        if reports is None:
            self._show(status)
            return
        if self._has_read_since(began_ms):
            # Rows of a snapshot that began meanwhile were not sent yet when they were compared.
            log.info("The comparison of one key in %d does not count, because a snapshot ran meanwhile", self._sample)
            self._show(status)
            return
        for report in reports:
            if report.differs:
                log.warning("%s", difference_line(report, self._sample))
        self._known.note(number, reports)
        self._number = (number + 1) % self._sample
        announce(self._settings, [each for each in reports if each.differs], began_ms)
        tables = tuple(self._known.of(report) for report in reports)
        seconds = time.monotonic() - began
        self._show(replace(status, rounds=status.rounds + 1, ended_ms=clock_ms(), seconds=seconds, tables=tables))
        log.info("Compared one key in %d of %d tables in %.0f s", self._sample, len(reports), seconds)

    def _ended(self) -> VerificationStatus:
        """Return the status without a running comparison, with the failures so far."""
        failures, failure = self._verification.failures, self._verification.failure
        return replace(self._status, running_since_ms=0, failures=failures, failure=failure)

    def _show(self, status: VerificationStatus) -> None:
        self._status = status
        self._watch.verified(status)


class KnownDifferences:
    """The keys that differed when they were compared last, counted by table and sample."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[int, int]] = {}

    def note(self, number: int, reports: Sequence[TableReport]) -> None:
        """Add the answers of a round, which replace those of the last round with the same sample."""
        for report in reports:
            if not report.refused:
                self._counts.setdefault(report.table, {})[number] = differing_keys(report)

    def of(self, report: TableReport) -> TableVerification:
        """Return the status of a table after the round of `report`."""
        differing = sum(self._counts.get(report.table, {}).values())
        return TableVerification(report.table, report.rows, differing, report.counts[UNVERIFIABLE], report.refused)


def differing_keys(report: TableReport) -> int:
    """Return the number of keys that were proved to differ."""
    return sum(report.counts[kind] for kind in DIFFERENCES)


def difference_line(report: TableReport, sample: int) -> str:
    """Return the line of the log about a table that differs."""
    counted = ", ".join(f"{report.counts[kind]:,} {kind}" for kind in DIFFERENCES if report.counts[kind])
    part = f"one key in {sample}" if sample > 1 else "all keys"
    return (
        f"{report.table} and its topic {report.topic} differ: {counted}, of {part}, at {report.gtid_set}."
        f" Next: incsnap verify FILE --table {report.table} --differences FOLDER"
    )


def begin_rounds(spark: SparkSession, settings: Settings, watch: Watch) -> JobVerification:
    """Begin the rounds of a job that has `incsnap.verify.interval`. Close the result when the query has ended."""
    verification = JobVerification(spark, settings, tasks=1)
    StandingVerification(verification, settings, watch).start()
    return verification

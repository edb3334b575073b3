"""Comparisons of a running job's tables with their topics, on threads of the driver beside the stream.

A comparison never disturbs the stream. It uses the task slots of chunk readers, in turn with them, and its tasks have
their lower priority. It ends within a second when the job ends. Its errors are logged and counted, and the job goes on.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError
from incsnap.spark.reader_jobs import ENDED
from incsnap.spark.reader_turns import turns_of
from incsnap.verify.allowance import Allowance, VerificationStopped
from incsnap.verify.report import TableReport
from incsnap.verify.verification import Choice, verify_tables

log = logging.getLogger(__name__)

#: Seconds between the end of a session and `close`, at most.
_CLOSING_SECONDS = 1.0
_LONGEST_CAUSE = 2_000


class JobVerification:
    """The comparisons of one query's job. Call `close` when the query has ended.

    `tasks`: task slots that a comparison uses, at most as many as the job has chunk readers. A comparison that uses all
    of them keeps snapshots waiting.
    """

    def __init__(self, spark: SparkSession, settings: Settings, tasks: int) -> None:
        self._spark, self._settings, self._tasks = spark, settings, tasks
        self._turns = turns_of(spark.sparkContext)
        self._stopping = threading.Event()
        self._group = f"incsnap verify {secrets.token_hex(4)}"
        #: Comparisons that failed since the query's start.
        self.failures = 0
        #: Error of the last comparison; "" if it did not fail.
        self.failure = ""

    def begin(self, choice: Choice, then: Callable[[Sequence[TableReport]], None]) -> threading.Thread:
        """Compare on a thread of its own, and call `then` on that thread with the answer for each table.

        `then` is not called if the job ends first, or after an error. An error is logged and counted.
        """

        def run() -> None:
            reports = self.attempt(choice)
            if reports is not None:
                then(reports)

        thread = threading.Thread(target=run, name="incsnap-verify", daemon=True)
        thread.start()
        return thread

    def attempt(self, choice: Choice, share: float = 1.0) -> list[TableReport] | None:
        """Compare on the calling thread like `verify`. Return None if the job ends first, or after an error."""
        try:
            reports = self.verify(choice, share)
        except VerificationStopped:
            return None
        except Exception as error:  # noqa: BLE001 - a comparison must not end the job
            self.note_failure(error)
            return None
        self.failure = ""
        return reports

    def note_failure(self, error: Exception) -> None:
        """Log and count the error of a comparison."""
        self.failures += 1
        self.failure = _cause(error)
        log.warning("The comparison of tables with their topics failed: %s", self.failure)

    def sleep(self, seconds: float) -> bool:
        """Wait for `seconds`. Return False if the job ends first."""
        return not self._stopping.wait(seconds)

    def verify(self, choice: Choice, share: float = 1.0) -> list[TableReport]:
        """Compare tables with their topics on the calling thread, and return the answer for each.

        `share`: see `Allowance`.
        Raise VerificationStopped if the job ends first. Other errors are those of `verify_tables`.
        """
        turn = partial(self._turns.turn, self._stopping.is_set, self._tasks)
        allowance = Allowance(self._stopping, self._tasks, turn, share)
        self._spark.sparkContext.setJobGroup(self._group, "incsnap: comparison of tables with topics", True)
        try:
            return verify_tables(self._spark, self._settings, replace(choice, allowance=allowance))
        except (PySparkException, Py4JError, ConnectionError, AttributeError):
            # A job that was cancelled fails in many ways. The session may have ended just before `close`.
            self._stopping.wait(_CLOSING_SECONDS)
            allowance.go_on()
            raise

    def close(self) -> None:
        """End the comparisons that run. It may be called twice."""
        self._stopping.set()
        self._turns.wake()
        with suppress(*ENDED):
            self._spark.sparkContext.cancelJobGroup(self._group)


def _cause(error: Exception) -> str:
    """Return what happened and what to do. The text of an unknown error of Spark ends with the error of a task."""
    if isinstance(error, IncsnapError):
        return f"{error.message}. {error.hint}"
    return str(error).strip()[-_LONGEST_CAUSE:]

"""The thread that closes a gap beside the stream of one query (`incsnap.verify.gap`)."""

from __future__ import annotations

import logging
import secrets
import threading
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.gap_files import GapFiles
from incsnap.config.settings import Settings
from incsnap.errors import ServerUnreachable, SinkError, StoreFailed, shorten
from incsnap.monitoring.gap_status import GapStatus
from incsnap.monitoring.job_status import Watch
from incsnap.monitoring.status import clock_ms
from incsnap.spark.reader_jobs import ENDED
from incsnap.spark.reader_turns import turns_of
from incsnap.verify.allowance import Allowance
from incsnap.verify.gap import GapCourse
from incsnap.verify.kept_sides import FolderNotWritten

log = logging.getLogger(__name__)

#: Failures after which each table is compared alone, and after which the next table is read whole.
_TOGETHER, _ATTEMPTS = 2, 5
#: Errors that are no such failure: MySQL, Kafka or the object store is away, or the disk is full.
_AWAY = (ServerUnreachable, SinkError, StoreFailed, FolderNotWritten)
#: Seconds until the next attempt.
_PAUSE_SECONDS = 5.0


class GapRecovery:
    """A thread that closes the gap of `job`. It goes on where the thread of an earlier query has ended.

    `root` is incsnap's part of the checkpoint, `tasks` is the most task slots. `watch` shows how far the comparison is.
    """

    def __init__(self, spark: SparkSession, settings: Settings, root: str, job: str, tasks: int, watch: Watch) -> None:
        self._context, self._group = spark.sparkContext, f"incsnap gap {secrets.token_hex(4)}"
        self._stopping = threading.Event()
        turn = partial(turns_of(spark.sparkContext).turn, self._stopping.is_set, tasks)
        self._course = GapCourse(spark, settings, root, job, Allowance(self._stopping, tasks, turn), self._progressed)
        self._watch, self._status = watch, GapStatus(str(GapFiles(Files(root), job).behind() or ""), clock_ms())
        watch.gap(self._status)
        threading.Thread(target=self._run, name="incsnap-gap", daemon=True).start()

    def close(self) -> None:
        """End the comparison. What it has answered holds."""
        self._stopping.set()
        with suppress(*ENDED):
            self._context.cancelJobGroup(self._group)

    def _progressed(self, left: int) -> None:
        """Show how far the comparison is. `left`: tables that no answer names."""
        answers = self._course.answers
        parts = [part for answer in answers for part in answer.tables]
        self._show(
            left=left,
            compared=sum(len(answer.named) for answer in answers),
            whole=sum(part.whole for part in parts),
            keys=sum(part.count for part in parts),
            ended_ms=clock_ms() if answers and answers[-1].is_last else 0,
            failure="",
        )

    def _show(self, **changed: Any) -> None:
        self._status = replace(self._status, **changed)
        self._watch.gap(self._status)

    def _run(self) -> None:
        failures = answered = 0
        while not self._stopping.is_set():
            try:
                self._context.setJobGroup(self._group, "incsnap: comparison behind a gap", True)
                if not self._course.is_open():
                    return
                if failures < _ATTEMPTS:
                    self._course.run(alone=failures >= _TOGETHER)
                else:
                    self._course.read_next_whole("its comparison has failed repeatedly, see the log")
                    failures = _TOGETHER
                continue
            except Exception as error:  # noqa: BLE001 - the stream goes on, whatever the comparison meets
                failure = error
            if self._stopping.wait(_PAUSE_SECONDS):
                return  # the session has ended, and with it what was running
            if len(self._course.answers) > answered:
                answered, failures = len(self._course.answers), min(failures, _TOGETHER)
            failures += not isinstance(failure, _AWAY)
            self._show(failures=self._status.failures + 1, failure=shorten(failure))
            log.warning("The comparison behind the gap has failed, and begins again: %s", shorten(failure))

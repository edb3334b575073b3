"""One row's trial: a job under writers and snapshots without end, faults, and at the end the ledger."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

from confluent_kafka import KafkaException

from incsnap.checkpoint.status import read_status
from incsnap.errors import IncsnapError
from lab.captured_database import CapturedDatabase, captured_database
from lab.listening import Notices
from lab.running_job import INCSNAP, JobFailed, RunningJob, running_job, write_properties
from lab.table_designs import ORDER_LINES, ORDERS, PEOPLE
from tests.faults.ground import Ground
from tests.faults.writers import Writers
from tests.support.ledger import Ledger

#: Chunks of 700 rows: windows in flight are the rule and not the exception. Pauses as short as a server's restart.
SETTINGS = {
    "incremental.snapshot.chunk.size": "700",
    "provide.transaction.metadata": "true",
    "errors.retry.delay.initial.ms": "200",
    "errors.retry.delay.max.ms": "2000",
}
#: Until a job streams, or a change gets through again after a fault. Librdkafka's and MySQL's longest waits are 30 s;
#: a start takes 5 s, and on two cores that ten other programs want two minutes.
_RECOVERY_SECONDS = 240.0


class Stuck(IncsnapError):
    """The job did not go on, or ended where it must not."""

    hint = "The job's log is above."


class Trial:
    """Use ``trial``. Faults are done to ``job``; afterwards ``alive`` or ``goes_on`` is asked for."""

    def __init__(
        self,
        ground: Ground,
        play: CapturedDatabase,
        notices: Notices,
        random: Random,
        settings: Mapping[str, str],
        clock: bool,
    ) -> None:
        self.ground, self.play, self.random = ground, play, random
        self.ledger = Ledger(play)
        self.writers = Writers(play, random.randrange(1 << 30), 80)
        self.done: Counter[str] = Counter()
        self.met: Counter[str] = Counter()
        self.starts = 0
        self.by_time = True
        #: May the job end by itself? Else that is a finding.
        self.may_end = False
        self.settings = {**SETTINGS, **settings}
        self._properties = write_properties(play.folder / "incsnap.properties", play.properties(self.settings))
        self.program = ("-m", "tests.faults.jumping_clock", str(play.folder / "clock")) if clock else INCSNAP
        self._notices = notices
        self._life = self._left = ExitStack()
        self._job: RunningJob | None = None
        self._before = 0

    @property
    def job(self) -> RunningJob:
        assert self._job is not None
        return self._job

    def start(self) -> None:
        """The job, anew. What the life before has left behind ends by itself, or with the next one."""
        self._left.close()
        self._left, self._life = self._life, ExitStack()
        status = read_status(str(self.play.checkpoint))
        self._before = status.batch if status is not None else 0
        job = running_job(self._properties, self.play.log, self.play.checkpoint, self.program)
        self._job = self._life.enter_context(job)
        self.starts += 1

    def close(self) -> None:
        with suppress(Exception):
            self.writers.stop()
        self._left.close()
        self._life.close()

    def keep_reading(self) -> None:
        """Writers write and a snapshot is under way. Both servers must answer."""
        self.writers.keep()
        if self.ledger.settle(self._notices):
            tables = [table for _, table in self.play.tables]
            # All of them first: the topic lacks rows of a table that nobody asks for and that nobody writes.
            count = self.random.randrange(1, len(tables) + 1) if self.ledger.asked else len(tables)
            some = self.random.sample(tables, count)
            self.ledger.ask(some, self.random.choice(("source", "kafka")))

    def reads(self, seconds: float = _RECOVERY_SECONDS) -> None:
        """Until windows of this life are in flight: in its first batch it repeats what was there before it."""

        def windows() -> bool:
            self.keep_reading()
            status = read_status(str(self.play.checkpoint))
            return status is not None and status.batch > self._before and status.windows_in_flight > 0

        self.job.wait_until("windows were in flight", windows, seconds, every=0.02)

    def alive(self) -> None:
        """Starts the job if it has ended, which ``may_end`` must allow."""
        if self.job.exit_code() is not None:
            if not self.may_end:
                raise Stuck(f"the job ended with code {self.job.exit_code()}:\n{self.job.log_tail()}")
            self.start()

    def goes_on(self) -> None:
        """A change that is made now gets through, by a job that is started again as often as it ends."""
        deadline = time.monotonic() + _RECOVERY_SECONDS
        self.writers.keep()
        while True:
            self.alive()
            try:
                self.play.drain(self.job, max(1.0, deadline - time.monotonic()))
                return
            except (JobFailed, KafkaException) as failed:
                if time.monotonic() > deadline or (isinstance(failed, JobFailed) and not self._ended_as_it_may()):
                    raise Stuck(f"no change got through in {_RECOVERY_SECONDS:.0f} s: {failed}") from None

    def _ended_as_it_may(self) -> bool:
        return self.may_end and self.job.exit_code() is not None

    def finish(self) -> list[str]:
        """Everything that is wrong in the end."""
        self.goes_on()
        # Few faults make few snapshots, which may have left a table out: its rows would seem to be lost.
        if unread := [table for _, table in self.play.tables if not self.ledger.snapshots_of(table)]:
            self.ledger.ask(unread, "source")
        self.job.wait_until("the snapshots were complete", lambda: self.ledger.settle(self._notices), 240)
        self.writers.finish()
        self.play.drain(self.job)
        self.job.stop()
        verdicts, wrong = self.ledger.judged(by_time=self.by_time)
        self.records = sum(sum(verdict.replay.counts.values()) for verdict in verdicts)
        return wrong

    records = 0

    def account(self) -> str:
        """What the ledger had before it."""
        status = read_status(str(self.play.checkpoint))
        sent = status.sent if status is not None else None
        sink_counts = f"{sent.discarded:,} discarded, {sent.skipped} found committed" if sent is not None else ""
        return (
            f"{len(self.ledger.asked)} snapshots, {self.writers.changes:,} changes, {self.records:,} records,"
            f" {sink_counts}, {self.starts} starts"
        )


@contextmanager
def trial(
    ground: Ground,
    name: str,
    random: Random,
    folder: Path,
    rows: int,
    settings: Mapping[str, str],
    *,
    clock: bool = False,
) -> Iterator[Trial]:
    """``rows``: of the largest table. ``clock``: the job's may be moved. The job streams when the block begins."""
    unique = f"{name.replace('-', '_')}_{random.randrange(1 << 30):08x}"
    folder.mkdir(exist_ok=True)
    with captured_database(ground.mysql, ground.kafka, f"faults_{unique}", f"faults-{unique}", folder) as play:
        for design, share in (ORDERS, 1), (ORDER_LINES, 3), (PEOPLE, 6):
            play.create(design, rows // share)
        with play.notices() as notices:
            made = Trial(ground, play, notices, random, settings, clock)
            try:
                made.start()
                made.job.wait_until_streaming(_RECOVERY_SECONDS)
                yield made
            finally:
                made.close()

"""The trial of one row: a job under writers and endless snapshots, its faults, and the ledger at the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

from confluent_kafka import KafkaException

from incsnap.checkpoint.location import is_local
from incsnap.checkpoint.status import read_status
from incsnap.errors import IncsnapError
from lab.captured_database import CapturedDatabase, captured_database
from lab.listening import Notices
from lab.running_job import INCSNAP, JobFailed, RunningJob, running_job, write_properties
from lab.table_designs import ORDER_LINES, ORDERS, PEOPLE
from tests.faults.fault_servers import FaultServers
from tests.faults.writers import Writers
from tests.support.ledger import Ledger

#: Chunks of 700 rows, so that windows are nearly always in flight. Pauses as short as a server's restart.
SETTINGS = {
    "incremental.snapshot.chunk.size": "700",
    "provide.transaction.metadata": "true",
    "errors.retry.delay.initial.ms": "200",
    "errors.retry.delay.max.ms": "2000",
}
#: Seconds until a job streams, or until a change gets through after a fault. The longest waits of librdkafka and MySQL
#: are 30 s. A start takes 5 s, and two minutes on two cores that ten other programs use.
_RECOVERY_SECONDS = 240.0


class Stuck(IncsnapError):
    """The error of a job that did not go on, or that ended where it must not."""

    hint = "The job's log is above."


class Trial:
    """The job of a row. Use `trial`. Cause faults to `job`, and call `alive` or `goes_on` afterwards."""

    def __init__(
        self,
        servers: FaultServers,
        play: CapturedDatabase,
        notices: Notices,
        random: Random,
        settings: Mapping[str, str],
        clock: bool,
    ) -> None:
        self.servers, self.play, self.random = servers, play, random
        self.ledger = Ledger(play)
        self.writers = Writers(play, random.randrange(1 << 30), 80)
        self.done: Counter[str] = Counter()
        self.met: Counter[str] = Counter()
        self.starts = 0
        self.by_time = True
        #: Whether the job may end by itself. Otherwise its end is a finding.
        self.may_end = False
        self.settings = {**SETTINGS, **settings}
        #: Checkpoint of the job that delivers now. A row may let another job take over.
        self.checkpoint = self.settings.get("checkpoint.location", str(play.checkpoint))
        self._log = play.log
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
        """Start the job again. Processes of the one before end by themselves, or with the next start."""
        self._left.close()
        self._left, self._life = self._life, ExitStack()
        self._before = self._batch()
        job = running_job(self._properties, self._log, self.play.checkpoint, self.program)
        self._job = self._life.enter_context(job)
        self.starts += 1

    def goes_on_with(
        self, job: RunningJob, life: ExitStack, settings: Mapping[str, str], properties: Path, log: Path
    ) -> None:
        """Take `job` as the one that delivers. `life` ends it; `properties` is the file of its `settings`."""
        self._left.close()
        self._left, self._life = self._life, life
        self._job, self.settings, self._properties, self._log = job, dict(settings), properties, log
        self.checkpoint = self.settings["checkpoint.location"]
        self._before = self._batch()
        self.starts += 1

    def waits_until_streaming(self) -> None:
        """Wait until the job knows where in the binlog it begins."""
        self.job.wait_until(
            "its first batch", lambda: read_status(self.checkpoint) is not None, _RECOVERY_SECONDS, self._look_seconds()
        )

    def _batch(self) -> int:
        status = read_status(self.checkpoint)
        return status.batch if status is not None else 0

    def _look_seconds(self) -> float:
        """Return the seconds between two looks at the checkpoint. In a bucket each look takes some requests."""
        return 0.02 if is_local(self.checkpoint) else 0.5

    def close(self) -> None:
        """Stop the writers and the job."""
        with suppress(Exception):
            self.writers.stop()
        self._left.close()
        self._life.close()

    def keep_reading(self) -> None:
        """Keep writers writing and a snapshot running. Both servers must answer."""
        self.writers.keep()
        if self.ledger.settle(self._notices):
            tables = [table for _, table in self.play.tables]
            # Read all tables first. Otherwise a topic would lack the rows of a table without snapshots and changes.
            count = self.random.randrange(1, len(tables) + 1) if self.ledger.asked else len(tables)
            some = self.random.sample(tables, count)
            self.ledger.ask(some, self.random.choice(("source", "kafka")))

    def reads(self, seconds: float = _RECOVERY_SECONDS) -> None:
        """Wait until this process of the job has windows in flight. In its first batch it repeats earlier work."""

        def windows() -> bool:
            self.keep_reading()
            status = read_status(self.checkpoint)
            return status is not None and status.batch > self._before and status.windows_in_flight > 0

        self.job.wait_until("windows were in flight", windows, seconds, self._look_seconds())

    def alive(self) -> None:
        """Start the job if it has ended. Raise Stuck if it must not end (`may_end`)."""
        if self.job.exit_code() is not None:
            if not self.may_end:
                raise Stuck(f"the job ended with code {self.job.exit_code()}:\n{self.job.log_tail()}")
            self.start()

    def goes_on(self) -> None:
        """Wait until a new change has been sent.

        Start the job as often as it ends. Raise Stuck if the change does not get through.
        """
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
        """End the trial and return everything that is wrong."""
        self.goes_on()
        # Few faults make few snapshots, which may have left a table out. Its rows would seem to be lost.
        if unread := [table for _, table in self.play.tables if not self.ledger.is_read(table)]:
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
        """Return the figures of the trial in words: snapshots, changes, records."""
        status = read_status(self.checkpoint)
        sent = status.sent if status is not None else None
        sink_counts = f"{sent.discarded:,} discarded, {sent.skipped} found committed" if sent is not None else ""
        return (
            f"{len(self.ledger.asked)} snapshots, {self.writers.changes:,} changes, {self.records:,} records,"
            f" {sink_counts}, {self.starts} starts"
        )


@contextmanager
def trial(
    servers: FaultServers,
    name: str,
    random: Random,
    folder: Path,
    rows: int,
    settings: Mapping[str, str],
    *,
    clock: bool = False,
) -> Iterator[Trial]:
    """Run a job on new tables until the block ends. It streams when the block begins.

    `rows` is the size of the largest table. With `clock` the job's clock can be moved.
    """
    unique = f"{name.replace('-', '_')}_{random.randrange(1 << 30):08x}"
    folder.mkdir(exist_ok=True)
    with captured_database(servers.mysql, servers.kafka, f"faults_{unique}", f"faults-{unique}", folder) as play:
        for design, share in (ORDERS, 1), (ORDER_LINES, 3), (PEOPLE, 6):
            play.create(design, rows // share)
        with play.notices() as notices:
            made = Trial(servers, play, notices, random, settings, clock)
            try:
                made.start()
                made.waits_until_streaming()
                yield made
            finally:
                made.close()

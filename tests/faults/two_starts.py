"""The rows of two starts of one `topic.prefix`.

A fault is one of the `mixes`. The ledger judges what both jobs have sent.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from incsnap.errors import ConfigError
from incsnap.kafka.announcements import ALIVE_SECONDS
from incsnap.spark.store.s3a_jars import s3a_jars
from lab.running_job import RunningJob, running_job, write_properties
from tests.faults import processes
from tests.faults.kills import Fault
from tests.faults.mixes import MIXES, Checkpoint, First, Mix, Rule, Storage
from tests.faults.trial import Trial

_SECONDS = 240.0
#: Seconds after which a frozen job may consider its bucket's lease lost. It trusts the lease for 20 s.
_LEASE_SECONDS = 15.0
_LEASE = "incsnap/lease.json"
#: The reason for which a batch that was sent in part cannot be taken over, which then must be said (ADR 0018).
_PREPARED = "rows of prepared XA transactions lie beside its own checkpoint"
_WATCHES = ("which tells that it still runs", "still renews its lease")


def two_starts(place: Storage) -> Fault:
    """Return the fault that takes the mixes of that place in turn."""
    mixes = [each for each in MIXES if each.place is place]

    def fault(trial: Trial, number: int) -> None:
        mix = mixes[number % len(mixes)]
        with ExitStack() as stack:
            _Meeting(trial, mix, number, stack).happen()
        trial.done[f"{mix.rule.name.lower().replace('_', ' ')} ({mix})"] += 1

    fault.__doc__ = (
        f"A second start in each mix by turns, checkpoints in a {place.name.lower()}: refused, goes on or takes over."
    )
    return fault


@dataclass(slots=True)
class _Meeting:
    """A mix, from one job that delivers alone to one job that delivers alone."""

    trial: Trial
    mix: Mix
    number: int
    #: kills the second job, unless the trial continues with it
    stack: ExitStack
    location: str = ""
    log: Path = field(init=False)
    settings: dict[str, str] = field(init=False)
    properties: Path = field(init=False)
    frozen: list[int] = field(default_factory=list)
    frozen_at: float = 0.0
    frozen_seconds: float = 0.0

    def happen(self) -> None:
        trial, mix, first = self.trial, self.mix, self.trial.job
        self.log = trial.play.folder / f"second-{self.number}.log"
        self.location = trial.checkpoint
        if mix.checkpoint is not Checkpoint.SAME:
            self.location = f"{trial.checkpoint.rpartition('/')[0]}/second-{self.number}"
        self._quieten()
        self.stack.callback(self._thaw)
        self._prepare(first)
        second = self._second()
        self._wait(lambda: second.exit_code() is not None or "Streaming to topics" in self._log(), second)
        if mix.rule is Rule.REFUSED:
            self._refused(first, second, mix.refusal)
        elif mix.rule is Rule.TAKES_OVER and second.exit_code() is not None and _PREPARED in self._log():
            self._refused(first, second, _PREPARED)
            trial.met["prepared rows of a batch sent in part"] += 1
        else:
            self._delivers(first, second)

    def _quieten(self) -> None:
        """Wait until a snapshot runs. Wait until nothing runs, if the second job would miss changes."""
        if self.mix.rule is Rule.BEGINS_ANEW:
            self.trial.writers.finish()
            self.trial.play.drain(self.trial.job)
        else:
            self.trial.reads()

    def _prepare(self, first: RunningJob) -> None:
        mix = self.mix
        if mix.checkpoint is Checkpoint.OLDER:
            self._freeze(first)
            self._copy()
            self._thaw()
            self.trial.goes_on()
        if mix.first is not First.RUNNING or mix.checkpoint is Checkpoint.COPIED:
            self._freeze(first)
        if mix.checkpoint is Checkpoint.COPIED:
            self._copy()
        if mix.first is First.RUNNING:
            self._thaw()
        if mix.first is First.OLD:
            old = time.monotonic() + ALIVE_SECONDS + 1.0
            self._wait(lambda: time.monotonic() > old)

    def _second(self) -> RunningJob:
        trial, mix = self.trial, self.mix
        settings = {
            **trial.settings,
            "checkpoint.location": self.location,
            "topic.creation.default.partitions": "1" if mix.fewer_buckets else "2",
        }
        if not mix.same_server_id:
            settings["database.server.id"] = str(700_001 + self.number)
        if mix.rule is Rule.BEGINS_ANEW:
            settings["snapshot.mode"] = "initial"
        self.settings = settings
        self.properties = write_properties(
            trial.play.folder / f"second-{self.number}.properties", trial.play.properties(settings)
        )
        arguments = ("--replace-job",) if mix.replace_job else ()
        job = running_job(self.properties, self.log, trial.play.checkpoint, arguments=arguments)
        return self.stack.enter_context(job)

    # -- what follows

    def _refused(self, first: RunningJob, second: RunningJob, refusal: str) -> None:
        trial, mix = self.trial, self.mix
        assert second.exit_code() == 2, f"{mix}: {second.log_tail()}"
        assert refusal in self._log(), f"{mix}: {second.log_tail()}"
        self._thaw()
        trial.may_end = self._may_lose_its_lease()
        trial.goes_on()
        if trial.job is not first:
            trial.met["lease lost"] += 1
        trial.may_end = False
        self._forget()

    def _delivers(self, first: RunningJob, second: RunningJob) -> None:
        trial, mix = self.trial, self.mix
        assert second.exit_code() is None, f"{mix}: {second.log_tail()}"
        log = self._log()
        if mix.rule is Rule.BEGINS_ANEW:
            assert "begins anew" in log, f"{mix}: {second.log_tail()}"
            trial.ledger.begins_anew()
        elif mix.rule is Rule.TAKES_OVER:
            took_over = "This job takes over from" in log
            # A copy with everything that was sent continues the snapshots.
            assert took_over or "has everything that was sent to Kafka" in log, f"{mix}: {second.log_tail()}"
            if took_over:
                trial.ledger.abandon()
        went_on_before = not self.frozen
        trial.goes_on_with(second, self.stack.pop_all(), self.settings, self.properties, self.log)
        if self.frozen:
            # Records of the second job must not come again.
            try:
                trial.goes_on()
            finally:
                self._thaw()
        self._wait(lambda: first.exit_code() is not None, second)
        if went_on_before and self._may_lose_its_lease() and "error: The lease of the checkpoint" in first.log_tail():
            # The first job ended before the second had announced itself.
            trial.met["lease lost"] += 1
        else:
            assert first.exit_code() == 2, f"{mix}: the first job ended with {first.exit_code()}: {first.log_tail()}"
            assert self.location in first.log_tail(), f"{mix}: {first.log_tail()}"
        trial.goes_on()

    def _may_lose_its_lease(self) -> bool:
        """Whether the first job was frozen for so long that it may end by itself. It is started again then."""
        return self.mix.place is Storage.BUCKET and self.frozen_seconds > _LEASE_SECONDS

    # -- what is done to it

    def _freeze(self, job: RunningJob) -> None:
        self.frozen_at = time.monotonic()
        while born := set(job.remains()) - set(self.frozen):
            processes.freeze(born)
            self.frozen += born

    def _thaw(self) -> None:
        if self.frozen:
            processes.go_on(self.frozen)
            self.frozen_seconds = time.monotonic() - self.frozen_at
            self.frozen = []

    def _copy(self) -> None:
        """Copy the checkpoint while the first job is frozen, so that the copy is the state of one moment."""
        if self.mix.place is Storage.FOLDER:
            shutil.copytree(self.trial.checkpoint, self.location)
            return
        # A start watches a lease for 30 s. A first job that is frozen for so long would consider its own lease lost.
        without = (_LEASE,) if self.mix.first is First.HELD else ()
        self.trial.servers.object_store().copy(self.trial.checkpoint, self.location, without)

    def _forget(self) -> None:
        if self.mix.place is Storage.FOLDER and self.mix.checkpoint is not Checkpoint.SAME:
            shutil.rmtree(self.location, ignore_errors=True)

    def _wait(self, reached: Callable[[], bool], second: RunningJob | None = None) -> None:
        deadline = time.monotonic() + _SECONDS
        while not reached():
            if self.mix.rule is not Rule.BEGINS_ANEW:
                self.trial.writers.keep()
            if self.mix.first is First.HELD and self.frozen and any(watch in self._log() for watch in _WATCHES):
                self._thaw()
            tail = second.log_tail() if second is not None else ""
            assert time.monotonic() < deadline, f"{self.mix}: not within {_SECONDS:.0f} s:\n{tail}"
            time.sleep(0.1)

    def _log(self) -> str:
        with suppress(FileNotFoundError):
            return self.log.read_text(errors="replace")
        return ""


def may_have(place: Storage) -> Callable[[], str]:
    """Return a function that tells why there can be no such checkpoint here, or ""."""

    def needs() -> str:
        if place is Storage.BUCKET:
            if any(find_spec(module) is None for module in ("moto", "obstore")):
                return "needs moto and obstore, of the extra [test]"
            try:
                s3a_jars()
            except ConfigError as error:
                return error.message
        return ""

    return needs


ROWS: dict[str, tuple[Fault, Storage]] = {
    f"two-starts-{place.name.lower()}": (two_starts(place), place) for place in Storage
}

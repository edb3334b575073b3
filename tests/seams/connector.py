"""The connector of a round: its workers, its settings, and how it ends and goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random

from incsnap.errors import ServerUnreachable
from lab.captured_database import CapturedDatabase
from lab.connect_cluster import Member, member, wait_for, worker_settings
from lab.running_job import write_properties
from tests.seams.plan import Plan

_SECONDS = 120.0


class Connector:
    """A connector that captures the tables of `play`. Its workers end with `stack`. `folder` gets files and logs."""

    def __init__(self, play: CapturedDatabase, plan: Plan, folder: Path, random: Random, stack: ExitStack) -> None:
        self._play, self._plan, self._folder, self._random, self._stack = play, plan, folder, random, stack
        self.log = folder / "connect.log"
        self._group, self._workers = 0, list[Member]()
        self._starting: threading.Thread | None = None
        self._start_workers()
        self.worker.start(play.prefix, self.settings())

    @property
    def worker(self) -> Member:
        """A worker that lives."""
        return self._workers[0]

    def wait_for_the_snapshots_end(self) -> None:
        """Wait until Connect has written an offset behind the first snapshot.

        Without such an offset a killed connector begins its snapshot again, at a later place. The changes before that
        place are lost, whoever goes on.
        """
        _until("an offset behind the first snapshot", self._streams)

    def settings(self) -> dict[str, str]:
        """Return the connector's settings."""
        play = self._play
        settings = play.connector(
            {
                "database.include.list": play.database,
                "table.include.list": rf"{play.database}\.(orders|order_lines|big|altered|marks)",
                "incremental.snapshot.chunk.size": "200",
                "topic.creation.default.partitions": str(self._plan.partitions),
                **self._plan.shape.settings,
            }
        )
        del settings["checkpoint.location"], settings["bootstrap.servers"]
        if self._plan.exactly_once:
            settings["exactly.once.support"] = "required"
            settings["offsets.storage.topic"] = f"{play.prefix}-own-offsets"
        return settings

    def file(self, number: int) -> tuple[Path, Path]:
        """Write the file of the job that takes over at seam `number`, and return it and the job's checkpoint."""
        checkpoint = self._folder / f"checkpoint-{number}"
        settings = {**self.settings(), "bootstrap.servers": self._play.kafka, "checkpoint.location": str(checkpoint)}
        del settings["incremental.snapshot.chunk.size"]
        return write_properties(self._folder / f"job-{number}.properties", settings), checkpoint

    def end(self, how: str, seconds: float) -> None:
        """End the connector in `seconds`, in one of the ways of `ENDS`."""
        name = self._play.prefix
        if how == "stop":
            time.sleep(seconds)
            self.worker.stop_cleanly(name)
            return
        owner = next(each for each in self._workers if each.id == self.worker.task_worker(name))
        time.sleep(seconds)
        os.kill(owner.program.pid, signal.SIGKILL)
        if how == "kill":
            for each in self._workers:
                each.program.stop()
            return
        self._workers = [each for each in self._workers if each is not owner]
        _until("the rebalance", lambda: self.worker.task_worker(name) == self.worker.id)
        time.sleep(self._random.uniform(0.0, 2.5))
        self.worker.stop_cleanly(name)

    def replace_workers(self, how: str) -> None:
        """Start workers in place of those that were killed.

        After `kill` they are a new group beside the job, because the old group would let the connector run.
        """
        if how == "kill":
            self._starting = threading.Thread(target=self._start_workers)
            self._starting.start()
        elif how == "rebalance":
            self._workers.append(self._stack.enter_context(member(self._folder, self.log, self._of_group())))

    def prepare(self) -> None:
        """Wait until there is a stopped connector that can take an offset."""
        if self._starting is not None:
            self._starting.join()
            self._starting = None
            _until("the new group", self._creates)

    def go_on(self) -> None:
        """Let the stopped connector run."""
        _until("the connector runs", self._resumes)

    def _of_group(self) -> dict[str, str]:
        group = f"{self._play.prefix}-{self._group}"
        return worker_settings(self._play.kafka, group, exactly_once=self._plan.exactly_once)

    def _start_workers(self) -> None:
        """Start a new group of workers, which has no connector."""
        self._group += 1
        count = 2 if "rebalance" in self._plan.ends else 1
        started = [member(self._folder, self.log, self._of_group()) for _ in range(count)]
        self._workers = [self._stack.enter_context(each) for each in started]
        for each in self._workers:
            wait_for(each)

    def _streams(self) -> bool:
        offset = self.worker.offset(self._play.prefix)
        return bool(offset) and ("snapshot" not in offset or bool(offset.get("snapshot_completed")))

    def _creates(self) -> bool:
        try:
            self.worker.create_stopped(self._play.prefix, self.settings())
        except (ServerUnreachable, OSError):
            return "STOPPED" in self.worker.states(self._play.prefix)
        return True

    def _resumes(self) -> bool:
        with contextlib.suppress(ServerUnreachable, OSError):
            self.worker.resume(self._play.prefix)
        return "RUNNING" in self.worker.states(self._play.prefix)[1:]


def _until(what: str, reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not reached():
        assert time.monotonic() < deadline, f"{what}: not in {_SECONDS:.0f} s"
        time.sleep(0.1)

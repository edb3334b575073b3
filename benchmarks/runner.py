"""The sequence of a whole benchmark: it creates the tables once, and then measures the sides in turn, run by run."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks import estimate
from benchmarks.about import about, settings
from benchmarks.backlogs import Backlogs
from benchmarks.benchmark_database import BenchmarkDatabase, benchmark_database
from benchmarks.measured_jobs import INCSNAP, Job
from benchmarks.outcome import Outcome
from benchmarks.rows import BACKLOGS, CHOSEN, SHAPES, WARM, Figures, Scale, measured, served
from benchmarks.warm_job import WarmJob
from lab.servers import Servers


class Runner:
    """A benchmark of some sides. `sides` is their order in the first run.

    The order is reversed in every second run, so that no side always has warm caches. `keep` is called whenever
    `outcome` has new figures.
    """

    def __init__(
        self, servers: Servers, folder: Path, scale: Scale, sides: Sequence[str], runs: int, keep: Callable[[], None]
    ) -> None:
        self._servers, self._folder, self._scale, self._sides, self._keep = servers, folder, scale, sides, keep
        self._turns = [sides if run % 2 == 0 else sides[::-1] for run in range(runs)]
        self._numbers = itertools.count()
        self._mark = time.monotonic()
        self.when = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        with benchmark_database(servers, folder) as bench:
            given = {f"settings of {side}": settings(self._job(bench, side, ()).settings()) for side in sides}
            self.outcome = Outcome({self.when: {**about(bench, scale, runs), **given}})
        #: Seconds by measurement, summed over sides and runs.
        self.elapsed: dict[str, float] = {}

    def measure(self, rows: Sequence[str]) -> None:
        """Measure the rows, add the figures to `outcome`, and report the progress on stderr."""
        to_measure = measured(rows)
        expected = estimate.seconds(to_measure, self._scale, self._sides, len(self._turns))
        self._say(f"{', '.join(rows)}: this takes about {max(1, round(expected / 60))} minutes")
        if warm := to_measure & {*WARM, *CHOSEN, *SHAPES}:
            with benchmark_database(self._servers, self._folder) as bench:
                job = WarmJob(bench, self._scale, warm)
                self._took("tables")
                for turn in self._turns:
                    for side, notes in self._all_notes(turn, rows).items():
                        # Debezium would read the whole table.
                        left_out = () if side == INCSNAP else CHOSEN
                        job.measure(partial(self._job, bench, side, job.tables), notes, left_out)
        if backlogs := to_measure & set(BACKLOGS):
            with benchmark_database(self._servers, self._folder) as bench:
                all_ = Backlogs(bench, self._scale, backlogs)
                self._took("tables")
                for turn in self._turns:
                    new_jobs = {side: partial(self._job, bench, side, all_.tables) for side in turn}
                    all_.measure(new_jobs, self._all_notes(turn, rows))

    def _all_notes(self, turn: Sequence[str], rows: Sequence[str]) -> Mapping[str, _Notes]:
        return {side: _Notes(self, side, rows) for side in turn}

    def _job(self, bench: BenchmarkDatabase, side: str, tables: Sequence[str]) -> Job:
        number = next(self._numbers)
        # Names and ids of this process and job, so that runs and users of the servers stay apart.
        return Job(
            side, bench, f"bench-{os.getpid()}-{side}-{number}", tables, 100_000 + os.getpid() % 50_000 * 100 + number
        )

    def noted(self, measurement: str, text: str) -> None:
        """Report that `outcome` has new figures."""
        seconds = self._took(measurement)
        self._say(f"{text} ({seconds:.0f} s)")
        self._keep()

    def _took(self, measurement: str) -> float:
        """Return the seconds since the last call, and add them to the measurement."""
        before, self._mark = self._mark, time.monotonic()
        self.elapsed[measurement] = self.elapsed.get(measurement, 0.0) + self._mark - before
        return self._mark - before

    def _say(self, text: str) -> None:
        sys.stderr.write(f"{time.strftime('%X')} {text}\n")
        sys.stderr.flush()


@dataclass(frozen=True, slots=True)
class _Notes:
    """The receiver of one side's results."""

    runner: Runner  #: the run whose outcome gets the results
    side: str  #: one of `SIDES`
    rows: Sequence[str]  #: rows that were selected; others are dropped

    def measured(self, measurement: str, figures: Figures) -> None:
        self.runner.outcome.add(self.runner.when, self.side, figures, self.rows)
        text = ", ".join(f"{name} {value:,.6g}" for name, value in figures.items())
        self.runner.noted(measurement, f"{self.side}: {text}")

    def failed(self, measurements: Sequence[str], error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"
        for row in dict.fromkeys(row for each in measurements for row in served(each) if row in self.rows):
            self.runner.outcome.of(row, self.side, self.runner.when).failures.append(text)
        what = f"failed: {', '.join(measurements)}" if measurements else "did not end well"
        self.runner.noted(measurements[0] if measurements else "ends", f"{self.side} {what}: {text}")

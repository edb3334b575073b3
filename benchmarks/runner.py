"""All runs of all that is wanted: tables once, then in each run both sides, one after the other."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from benchmarks.about import about, settings
from benchmarks.backlogs import Backlogs
from benchmarks.place import Place, place
from benchmarks.report import Results
from benchmarks.rows import BACKLOGS, SHAPES, WARM, Figures, Scale
from benchmarks.shapes import Shapes
from benchmarks.sides import Job
from benchmarks.warm import WarmJob
from incsnap.sandbox.servers import Servers


class Runner:
    """``sides`` in the order of the first run; they change places in each run, so that neither has all warm caches."""

    def __init__(self, servers: Servers, folder: Path, scale: Scale, sides: Sequence[str], runs: int) -> None:
        self._servers, self._folder, self._scale = servers, folder, scale
        self._turns = [sides if run % 2 == 0 else sides[::-1] for run in range(runs)]
        self._numbers = itertools.count()
        with place(servers, folder) as here:
            given = {f"settings of {side}": settings(self._job(here, side, ()).settings()) for side in sides}
            self.results = Results({**about(here, scale, runs), **given})

    def measure(self, wanted: Collection[str]) -> None:
        """``wanted``: of ``rows.measured``. Adds to ``results`` what is measured, and says it."""
        if warm := set(wanted) & set(WARM):
            with place(self._servers, self._folder) as here:
                self._say("preparing the tables of the warm job")
                self._one_by_one(here, WarmJob(here, self._scale, warm))
        if shapes := set(wanted) & set(SHAPES):
            with place(self._servers, self._folder) as here:
                self._say("preparing the tables of other shapes")
                self._one_by_one(here, Shapes(here, self._scale, shapes))
        if backlogs := set(wanted) & set(BACKLOGS):
            with place(self._servers, self._folder) as here:
                self._say("preparing the tables of the backlogs")
                self._backlogs(here, Backlogs(here, self._scale, backlogs))

    def _one_by_one(self, here: Place, measures: WarmJob | Shapes) -> None:
        for turn in self._turns:
            for side in turn:
                measures.measure(self._job(here, side, measures.tables), partial(self._note, side))

    def _backlogs(self, here: Place, measures: Backlogs) -> None:
        for turn in self._turns:
            jobs = {side: self._job(here, side, measures.tables) for side in turn}
            measures.measure(jobs, {side: partial(self._note, side) for side in turn})

    def _job(self, here: Place, side: str, tables: Sequence[str]) -> Job:
        number = next(self._numbers)
        # Of this process and this job: nothing is taken for that of another run, nor of another user of the servers.
        return Job(
            side, here, f"bench-{os.getpid()}-{side}-{number}", tables, 100_000 + os.getpid() % 50_000 * 100 + number
        )

    def _note(self, side: str, figures: Figures) -> None:
        self.results.add(side, figures)
        self._say(f"{side}: " + ", ".join(f"{name} {value:,.6g}" for name, value in figures.items()))

    def _say(self, text: str) -> None:
        sys.stderr.write(f"{time.strftime('%X')} {text}\n")
        sys.stderr.flush()

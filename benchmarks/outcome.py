"""The results of all runs, by row and side, and the file that keeps them.

A new measurement replaces the results of its row on the measured sides, and nothing else. Each result notes when and
under which conditions it was measured.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measured_jobs import INCSNAP, SIDES
from benchmarks.rows import FIGURES, Figure, Figures, row_of

FILE = "figures.json"
#: Format version of the file.
_VERSION = 2


@dataclass(slots=True)
class Measured:
    """The results of one row on one side."""

    when: str  #: key of its conditions in `Outcome.abouts`
    figures: dict[str, list[float]] = field(default_factory=dict)  #: by the figure's key: a value for each run
    failures: list[str] = field(default_factory=list)  #: the error of each run that failed


@dataclass(slots=True)
class Outcome:
    """The results of all rows, with the conditions under which they were measured."""

    #: by the time of the measurement: machine, versions, settings
    abouts: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    rows: dict[str, dict[str, Measured]] = field(default_factory=dict)  #: by row, then by side

    def of(self, row: str, side: str, when: str) -> Measured:
        """Return the result of a row and a side, to be filled. Create it if it is missing."""
        return self.rows.setdefault(row, {}).setdefault(side, Measured(when))

    def add(self, when: str, side: str, figures: Figures, rows: Iterable[str]) -> None:
        """Add the figures of one run, if they belong to `rows`. NaN is left out: all records came at one moment."""
        for key, value in figures.items():
            if (row := row_of(key)) in rows and not math.isnan(value):
                self.of(row, side, when).figures.setdefault(key, []).append(value)

    def runs(self, side: str, key: str) -> list[float]:
        """Return the values of all runs that have this figure."""
        measured = self.rows.get(row_of(key), {}).get(side)
        return measured.figures.get(key, []) if measured else []

    def median(self, side: str, key: str) -> float | None:
        """Return the median of the runs, or None if there are none."""
        values = self.runs(side, key)
        return median(values) if values else None

    def times_better(self, figure: Figure, side: str) -> float | None:
        """Return how many times better incsnap's median is than that of `side`.

        Return None if a side has no figure, or if the two were measured at different times.
        """
        ours, theirs = self.median(INCSNAP, figure.key), self.median(side, figure.key)
        times = self.when(figure.row)
        if not ours or not theirs or times[INCSNAP] != times[side]:
            return None
        return ours / theirs if figure.more else theirs / ours

    def when(self, row: str) -> dict[str, str]:
        """Return when the row was measured, by side."""
        measured = self.rows.get(row, {})
        return {side: measured[side].when for side in SIDES if side in measured}

    def lines(self) -> list[Figure]:
        """Return the figures that at least one side has, or failed to get."""
        return [
            figure
            for figure in FIGURES
            if any(
                figure.key in measured.figures or measured.failures
                for measured in self.rows.get(figure.row, {}).values()
            )
        ]

    def over(self, before: Outcome) -> Outcome:
        """Return `before` with these results in place of older ones."""
        rows = {
            row: {**before.rows.get(row, {}), **self.rows.get(row, {})}
            for row in dict.fromkeys([*before.rows, *self.rows])
        }
        used = {measured.when for sides in rows.values() for measured in sides.values()}
        abouts = {when: about for when, about in (before.abouts | self.abouts).items() if when in used}
        return Outcome(abouts, rows)

    def write(self, folder: Path) -> None:
        """Write the results to the file in `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        everything = {"version": _VERSION, **asdict(self)}
        new = folder / f"{FILE}.new"
        new.write_text(json.dumps(everything, indent=1) + "\n")
        # A rename, so that the file is complete at any moment: it is written after each measurement.
        new.replace(folder / FILE)


def read(folder: Path) -> Outcome:
    """Return the results in `folder`, empty if there is no file.

    Raise ValueError if the file has another format version.
    """
    try:
        document = json.loads((folder / FILE).read_text())
    except FileNotFoundError:
        return Outcome()
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        raise ValueError(f"{folder / FILE} is not of version {_VERSION}")
    rows = {row: {side: Measured(**each) for side, each in sides.items()} for row, sides in document["rows"].items()}
    return Outcome(document["abouts"], rows)


def failed(outcome: Outcome) -> Sequence[tuple[str, str, str]]:
    """Return row, side and error of each failure."""
    return [
        (row, side, failure)
        for row, sides in outcome.rows.items()
        for side, measured in sides.items()
        for failure in measured.failures
    ]

"""What the runs gave, row by row and side by side, and the file that keeps it.

A row that is measured again replaces itself, on the sides that were measured, and nothing else: each has a note of
when and with what it was measured.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.rows import FIGURES, Figure, Figures, row_of
from benchmarks.sides import DEBEZIUM, INCSNAP, SIDES

FILE = "figures.json"
#: Of the file.
_VERSION = 2


@dataclass(slots=True)
class Measured:
    """One row of one side. ``when``: which of ``Outcome.abouts``; ``figures``: of each key, in order of the runs;
    ``failures``: what the side said, of each run that it did not get through.
    """

    when: str
    figures: dict[str, list[float]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Outcome:
    """``abouts``: machine, versions, settings, by the time. ``rows``: by row, then by side."""

    abouts: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    rows: dict[str, dict[str, Measured]] = field(default_factory=dict)

    def of(self, row: str, side: str, when: str) -> Measured:
        """To be added to."""
        return self.rows.setdefault(row, {}).setdefault(side, Measured(when))

    def add(self, when: str, side: str, figures: Figures, rows: Iterable[str]) -> None:
        """One run's, of these rows. A figure that is no number, for all came in one moment, is left out."""
        for key, value in figures.items():
            if (row := row_of(key)) in rows and not math.isnan(value):
                self.of(row, side, when).figures.setdefault(key, []).append(value)

    def runs(self, side: str, key: str) -> list[float]:
        measured = self.rows.get(row_of(key), {}).get(side)
        return measured.figures.get(key, []) if measured else []

    def median(self, side: str, key: str) -> float | None:
        """The median of the runs that have it; None without any."""
        values = self.runs(side, key)
        return median(values) if values else None

    def times_better(self, figure: Figure) -> float | None:
        """How many times better incsnap is than Debezium, by the medians; None where one has none, and where they were
        not measured together."""
        ours, theirs = self.median(INCSNAP, figure.key), self.median(DEBEZIUM, figure.key)
        if not ours or not theirs or len(self.when(figure.row)) > 1:
            return None
        return ours / theirs if figure.more else theirs / ours

    def when(self, row: str) -> list[str]:
        """When its sides were measured: one time where it was together."""
        measured = self.rows.get(row, {})
        return list(dict.fromkeys(measured[side].when for side in SIDES if side in measured))

    def lines(self) -> list[Figure]:
        """The figures that at least one side has, or failed to have."""
        return [
            figure
            for figure in FIGURES
            if any(
                figure.key in measured.figures or measured.failures
                for measured in self.rows.get(figure.row, {}).values()
            )
        ]

    def over(self, before: Outcome) -> Outcome:
        """``before``, where it is not replaced by these."""
        rows = {
            row: {**before.rows.get(row, {}), **self.rows.get(row, {})}
            for row in dict.fromkeys([*before.rows, *self.rows])
        }
        used = {measured.when for sides in rows.values() for measured in sides.values()}
        abouts = {when: about for when, about in (before.abouts | self.abouts).items() if when in used}
        return Outcome(abouts, rows)

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        everything = {"version": _VERSION, **asdict(self)}
        new = folder / f"{FILE}.new"
        new.write_text(json.dumps(everything, indent=1) + "\n")
        # At any moment one whole file: it is written after each measurement.
        new.replace(folder / FILE)


def read(folder: Path) -> Outcome:
    """Nothing where there is no file. :raises ValueError: it is not of this version."""
    try:
        document = json.loads((folder / FILE).read_text())
    except FileNotFoundError:
        return Outcome()
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        raise ValueError(f"{folder / FILE} is not of version {_VERSION}")
    rows = {row: {side: Measured(**each) for side, each in sides.items()} for row, sides in document["rows"].items()}
    return Outcome(document["abouts"], rows)


def failed(outcome: Outcome) -> Sequence[tuple[str, str, str]]:
    """Row, side and what it said."""
    return [
        (row, side, failure)
        for row, sides in outcome.rows.items()
        for side, measured in sides.items()
        for failure in measured.failures
    ]

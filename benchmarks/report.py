"""The results: every run's figures and what they were measured with, and one table of the medians."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.rows import FIGURES, Figure, Figures
from benchmarks.sides import DEBEZIUM, INCSNAP, SIDES


@dataclass(slots=True)
class Results:
    """``about``: machine, versions, settings. ``figures``: of each side, those of each key in order of the runs."""

    about: Mapping[str, Any]
    figures: dict[str, dict[str, list[float]]] = field(default_factory=lambda: {side: {} for side in SIDES})

    def add(self, side: str, figures: Figures) -> None:
        """Those of one run. One that is no number, for all came in one moment, is left out."""
        for key, value in figures.items():
            if not math.isnan(value):
                self.figures[side].setdefault(key, []).append(value)

    def median(self, side: str, key: str) -> float | None:
        """Of the runs that have it; None without any."""
        values = self.figures[side].get(key)
        return median(values) if values else None

    def times_better(self, figure: Figure) -> float | None:
        """How many times better incsnap is than Debezium, by the medians; None where one has none."""
        ours, theirs = self.median(INCSNAP, figure.key), self.median(DEBEZIUM, figure.key)
        if not ours or not theirs:
            return None
        return ours / theirs if figure.more else theirs / ours

    def lines(self, rows: Sequence[str]) -> list[Figure]:
        """The figures of these rows that at least one side has."""
        return [
            figure
            for figure in FIGURES
            if figure.row in rows and any(figure.key in self.figures[side] for side in SIDES)
        ]


def table(results: Results, rows: Sequence[str]) -> str:
    """Markdown: the medians of both sides, and how many times better incsnap is."""
    lines = ["| what | Debezium | incsnap | times better |", "|---|---|---|---|"]
    for figure in results.lines(rows):
        cells = [_cell(results.median(side, figure.key), figure.unit) for side in (DEBEZIUM, INCSNAP)]
        times = results.times_better(figure)
        lines.append(f"| {figure.title} | {' | '.join(cells)} | {'–' if times is None else f'{times:.2f}'} |")
    return "\n".join(lines)


def processes(results: Results, what: str) -> str:
    """Markdown: the processor seconds of each process in a million rows or changes; nothing where none were taken."""
    lines = []
    for side in SIDES:
        start = f"processor.{what}."
        found = {
            key.removeprefix(start): results.median(side, key) for key in results.figures[side] if key.startswith(start)
        }
        parts = [
            f"{name.removeprefix('job: ')} {value:.1f}" for name, value in found.items() if value and name != "job"
        ]
        if parts:
            lines.append(f"- {side}: {', '.join(parts)} s")
    return "\n".join(lines)


def write(results: Results, rows: Sequence[str], folder: Path) -> None:
    """``figures.json`` and ``README.md``, which shows ``figures.svg``."""
    folder.mkdir(parents=True, exist_ok=True)
    everything = {"about": results.about, "figures": results.figures}
    (folder / "figures.json").write_text(json.dumps(everything, indent=1) + "\n")
    about = "\n".join(f"- {name}: {_text(value)}" for name, value in results.about.items())
    parts = ["# Side by side", "What `make bench` printed, medians of the runs.", table(results, rows)]
    parts += ["![how many times better](figures.svg)", "## Measured with", about]
    for what in ("snapshot", "backlog"):
        if found := processes(results, what):
            parts += [f"## Processor seconds of each process, {what} of a million", found]
    (folder / "README.md").write_text("\n\n".join(parts) + "\n")


def _cell(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    text = f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return f"{text} {unit}"


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"`{name}={each}`" for name, each in value.items())
    return str(value)

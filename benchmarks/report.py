"""The outcome as text: one table of the medians, and the page that shows it with what it was measured with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.outcome import Outcome, failed
from benchmarks.rows import Figure
from benchmarks.sides import DEBEZIUM, SIDES

PICTURE = "figures.svg"


def table(outcome: Outcome) -> str:
    """Markdown: the medians of both sides, how many times better incsnap is, and when, if not all at once."""
    lines = outcome.lines()
    times = {when for figure in lines for when in outcome.when(figure.row)}
    heads = ["what", *SIDES, "times better", *(["measured"] if len(times) > 1 else [])]
    text = [f"| {' | '.join('Debezium' if head == DEBEZIUM else head for head in heads)} |", "|---" * len(heads) + "|"]
    for figure in lines:
        cells = [figure.title, *(_cell(outcome, side, figure) for side in SIDES)]
        better = outcome.times_better(figure)
        cells.append("–" if better is None else f"{better:.2f}")
        if len(times) > 1:
            cells.append(", ".join(outcome.when(figure.row)))
        text.append(f"| {' | '.join(cells)} |")
    return "\n".join(text)


def failures(outcome: Outcome) -> str:
    """Markdown; nothing where nothing failed."""
    return "\n".join(f"- {side}, {row}: {failure.splitlines()[0]}" for row, side, failure in failed(outcome))


def processes(outcome: Outcome, what: str) -> str:
    """Markdown: the processor seconds of each process in a million rows or changes; nothing where none were taken."""
    lines = []
    start = f"processor.{what}."
    for side in SIDES:
        row = outcome.rows.get("processor", {}).get(side)
        keys = [key for key in (row.figures if row else {}) if key.startswith(start)]
        # Those below half a tenth did nothing of it: the launchers, which wait.
        medians = {
            key.removeprefix(start).removeprefix("job: "): value
            for key in keys
            if (value := outcome.median(side, key)) is not None and value >= 0.05
        }
        parts = [f"{name} {value:.1f}" for name, value in medians.items() if name != "job"]
        if parts:
            lines.append(f"- {side}: {', '.join(parts)} s")
    return "\n".join(lines)


def sections(outcome: Outcome) -> list[str]:
    """Below the table, each with a heading."""
    parts = []
    if failed_runs := failures(outcome):
        parts.append(f"## Failed runs\n\n{failed_runs}")
    return parts + [
        f"## Processor seconds of each process, {what} of a million\n\n{lines}"
        for what in ("snapshot", "backlog")
        if (lines := processes(outcome, what))
    ]


def write(outcome: Outcome, folder: Path) -> None:
    """``README.md``, which shows the picture."""
    parts = ["# Side by side", "What `make bench` printed, medians of the runs.", table(outcome)]
    parts += [f"![how many times better]({PICTURE})", *sections(outcome)]
    for when, about in outcome.abouts.items():
        lines = "\n".join(f"- {name}: {_text(value)}" for name, value in about.items())
        parts.append(f"## Measured with, {when}\n\n{lines}")
    (folder / "README.md").write_text("\n\n".join(parts) + "\n")


def _cell(outcome: Outcome, side: str, figure: Figure) -> str:
    value = outcome.median(side, figure.key)
    measured = outcome.rows.get(figure.row, {}).get(side)
    if value is None:
        return "failed" if measured and measured.failures else "–"
    text = f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return f"{text} {figure.unit}"


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"`{name}={each}`" for name, each in value.items())
    return str(value)

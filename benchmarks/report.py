"""The report of the results: a table of medians, and a page that shows the table and the conditions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measured_jobs import DEBEZIUM_BEST, TITLES
from benchmarks.outcome import Outcome, failed
from benchmarks.rows import Figure

PICTURE = "figures.svg"
_INTRODUCTION = """\
For readers who compare incsnap with Debezium: what `make bench` printed, medians of the runs.

Debezium runs twice. "Defaults" has only the settings that the comparison needs. "Best" adds larger batches of the
producer and larger queues. All settings are below the table. The ratio compares incsnap with Debezium's best, if
both are from one run. A dash means that no run has measured the side yet. If the figures are from several runs, the
last column names the run of each row."""


def table(outcome: Outcome) -> str:
    """Return the table in Markdown: the medians of all sides, and incsnap's ratio to Debezium's best.

    If the rows were measured at different times, a further column tells when.
    """
    lines = outcome.lines()
    times = {when for figure in lines for when in outcome.when(figure.row).values()}
    heads = ["what", *TITLES.values(), "times better than the best", *(["measured"] if len(times) > 1 else [])]
    text = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for figure in lines:
        better = outcome.times_better(figure, DEBEZIUM_BEST)
        cells = [figure.title, *(_cell(outcome, side, figure) for side in TITLES)]
        cells.append("–" if better is None else f"{better:.2f}")
        if len(times) > 1:
            cells.append(_when(outcome.when(figure.row)))
        text.append(f"| {' | '.join(cells)} |")
    return "\n".join(text)


def failures(outcome: Outcome) -> str:
    """Return a line of Markdown for each failed run."""
    return "\n".join(f"- {side}, {row}: {failure.splitlines()[0]}" for row, side, failure in failed(outcome))


def processes(outcome: Outcome, what: str) -> str:
    """Return a line of Markdown for each side: the processor seconds of each process.

    They are for a million rows (`what` is `snapshot`) or a million changes (`backlog`).
    """
    lines = []
    start = f"processor.{what}."
    for side in TITLES:
        row = outcome.rows.get("processor", {}).get(side)
        keys = [key for key in (row.figures if row else {}) if key.startswith(start)]
        # Below 0.05 s a process did no work, such as launchers, which wait.
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
    """Return the sections below the table, each with its heading."""
    parts = []
    if failed_runs := failures(outcome):
        parts.append(f"## Failed runs\n\n{failed_runs}")
    return parts + [
        f"## Processor seconds of each process, {what} of a million\n\n{lines}"
        for what in ("snapshot", "backlog")
        if (lines := processes(outcome, what))
    ]


def write(outcome: Outcome, folder: Path) -> None:
    """Write `README.md` in `folder`, which shows the picture."""
    parts = ["# Side by side", _INTRODUCTION, table(outcome)]
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


def _when(times: Mapping[str, str]) -> str:
    """Return when a row was measured: one time if the sides were measured together, else the time of each."""
    if len(set(times.values())) == 1:
        return next(iter(times.values()))
    return ", ".join(f"{TITLES[side]}: {when}" for side, when in times.items())


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"`{name}={each}`" for name, each in value.items())
    return str(value)

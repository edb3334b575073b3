"""The picture of the results: a bar for each line of the table, as long as incsnap is times better."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure as Drawing

from benchmarks.outcome import Outcome

_BETTER, _WORSE = "#2b7a4b", "#b3423a"


def draw(outcome: Outcome, file: Path) -> None:
    """An SVG with text as text. Nothing is drawn where no line has both sides."""
    lines = [(figure, outcome.times_better(figure)) for figure in outcome.lines()]
    bars = [(figure, times) for figure, times in lines if times]
    if not bars:
        return
    # Text as text keeps the file small; the salt makes the same figures the same bytes.
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "incsnap"}
    drawing = Drawing(figsize=(10, 1.2 + 0.32 * len(bars)), layout="constrained")
    axes = drawing.subplots()
    places = range(len(bars), 0, -1)
    times = [each for _, each in bars]
    axes.barh(places, [each - 1 for each in times], left=1, color=[_BETTER if each >= 1 else _WORSE for each in times])
    axes.set_yticks(places, [figure.title.replace("`", "") for figure, _ in bars])
    axes.set_xscale("log")
    axes.set_xlim(min(0.5, min(times) * 0.6), max(2.0, max(times) * 1.4))
    axes.margins(y=0.01)
    ticks = [tick for tick in (0.1, 0.25, 0.5, 1, 2, 4, 8, 16) if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.axvline(1, color="black", linewidth=1)
    for place, each in zip(places, times, strict=True):
        beside, align = (each * 1.02, "left") if each >= 1 else (each * 0.98, "right")
        axes.text(beside, place, f"{each:.2f}", ha=align, va="center", fontsize=8)
    drawing.suptitle("incsnap, times better than Debezium (medians of the runs, logarithmic)")
    axes.spines[["top", "right"]].set_visible(False)
    drawing.savefig(file, metadata={"Date": None})

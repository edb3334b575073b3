"""The picture of the results: two bars for each line of the table, which say how many times better incsnap is.

The dark bar compares with Debezium's best, the pale one with Debezium's defaults. A bar is missing if the two sides
were not measured together.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure as Drawing

from benchmarks.measured_jobs import DEBEZIUM, DEBEZIUM_BEST, TITLES
from benchmarks.outcome import Outcome

#: Colours by side, of bars that are better and worse than 1.
_COLOURS = {DEBEZIUM_BEST: ("#2b7a4b", "#b3423a"), DEBEZIUM: ("#a9cdb6", "#e0b0ac")}
_HEIGHT = 0.4


def draw(outcome: Outcome, file: Path) -> None:
    """Draw the picture as an SVG. Draw nothing if no line has figures of two sides to compare."""
    lines = [
        (figure.title.replace("`", ""), {side: outcome.times_better(figure, side) for side in _COLOURS})
        for figure in outcome.lines()
    ]
    bars = [
        (place, side, times)
        for place, (_, compared) in enumerate(lines)
        for side, times in compared.items()
        if times is not None
    ]
    if not bars:
        return
    # Text instead of outlines keeps the file small. The fixed salt gives equal bytes for equal figures.
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "incsnap"}
    drawing = Drawing(figsize=(10, 1.4 + 0.4 * len(lines)), layout="constrained")
    axes = drawing.subplots()
    all_times = [times for _, _, times in bars]
    axes.set_xscale("log")
    axes.set_xlim(min(0.5, min(all_times) * 0.6), max(2.0, max(all_times) * 1.4))
    for line, side, times in bars:
        place = line + (0 if side == DEBEZIUM_BEST else _HEIGHT)
        axes.barh(place, times - 1, _HEIGHT, left=1, color=_COLOURS[side][times < 1])
        beside, align = (times * 1.02, "left") if times >= 1 else (times * 0.98, "right")
        axes.text(beside, place, f"{times:.2f}", ha=align, va="center", fontsize=7)
    axes.set_yticks([line + _HEIGHT / 2 for line in range(len(lines))], [title for title, _ in lines])
    axes.invert_yaxis()
    axes.margins(y=0.01)
    ticks = [tick for tick in (0.1, 0.25, 0.5, 1, 2, 4, 8, 16) if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.axvline(1, color="black", linewidth=1)
    compared = {side: TITLES[side] for _, side, _ in bars}
    shades = {DEBEZIUM_BEST: "dark", DEBEZIUM: "pale"}
    names = " and ".join(f"{title} ({shades[side]})" for side, title in compared.items())
    drawing.suptitle(f"incsnap, times better than {names}; medians of the runs, logarithmic")
    axes.spines[["top", "right"]].set_visible(False)
    drawing.savefig(file, metadata={"Date": None})

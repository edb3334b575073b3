"""An estimate of how long a benchmark will take, from the durations of its parts on two cores."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from benchmarks.measured_jobs import DEBEZIUM, DEBEZIUM_BEST, INCSNAP
from benchmarks.rows import BACKLOGS, CHOSEN, SHAPES, WARM, Scale

#: Seconds of one run: the fixed part, and what a million rows (of `Scale`) add. They include counting the records.
#: Those of Debezium's best are guesses between the other two sides, not measurements.
_PARTS: dict[str, dict[str, tuple[float, float]]] = {
    DEBEZIUM: {
        "latency": (25, 0),
        "snapshot": (4, 45),
        "during": (5, 42),
        "source": (12, 22),
        "verify": (0, 0),
        "columns3": (3, 12),
        "columns60": (3, 20),
        "composite": (3, 14),
        "partitions8": (3, 14),
        "tables4": (3, 18),
        "tables400": (11, 0),
        "backlog": (12, 48),
        "single": (12, 18),
        "deletes": (12, 16),
        "mix": (12, 16),
    },
    DEBEZIUM_BEST: {
        "latency": (25, 0),
        "snapshot": (4, 30),
        "during": (5, 30),
        "source": (12, 16),
        "verify": (0, 0),
        "columns3": (3, 9),
        "columns60": (3, 16),
        "composite": (3, 10),
        "partitions8": (3, 10),
        "tables4": (3, 13),
        "tables400": (11, 0),
        "backlog": (12, 30),
        "single": (12, 10),
        "deletes": (12, 11),
        "mix": (12, 12),
    },
    INCSNAP: {
        "latency": (25, 0),
        "keys": (6, 3),
        "slice": (7, 11),
        "snapshot": (4, 12),
        "during": (5, 18),
        "source": (12, 8),
        "verify": (9, 24),
        "columns3": (3, 3),
        "columns60": (3, 6),
        "composite": (3, 4),
        "partitions8": (3, 4),
        "tables4": (3, 5),
        "tables400": (7, 0),
        "backlog": (8, 20),
        "single": (8, 7),
        "deletes": (8, 8),
        "mix": (8, 8),
    },
}
#: Seconds of one run of a job: its start and clean end; and the snapshot of a tenth that warms it up, for a million
#: rows.
_LIFE = {DEBEZIUM: 14.0, DEBEZIUM_BEST: 14.0, INCSNAP: 8.0}
_WARMING = {DEBEZIUM: 6.0, DEBEZIUM_BEST: 5.0, INCSNAP: 2.0}
#: Seconds for a million rows: writing a backlog, once for all sides; and filling the tables, once for all runs.
_WRITING = {"backlog": 20.0, "single": 30.0, "deletes": 12.0, "mix": 18.0}
_TABLES = {WARM: 15.0, CHOSEN: 10.0, SHAPES: 15.0, BACKLOGS: 15.0}


def seconds(rows_: Collection[str], scale: Scale, sides: Sequence[str], runs: int) -> float:
    """Return the expected seconds of `runs` runs.

    `rows_` are the names of the measurements, as `rows.measured` returns them.
    """
    millions = scale.rows / 1e6
    once = sum(each * millions for rows, each in _TABLES.items() if set(rows) & set(rows_))
    a_run = sum(_WRITING.get(each, 0.0) * millions for each in rows_)
    for side in sides:
        parts = [_PARTS[side][each] for each in rows_ if each in _PARTS[side]]
        a_run += sum(fixed + more * millions for fixed, more in parts)
        if set(rows_) & {*WARM, *CHOSEN, *SHAPES}:
            a_run += _LIFE[side]
        if set(rows_) & {*WARM, *CHOSEN, *SHAPES} - {"start"}:
            a_run += scale.warm_up_seconds + _WARMING[side] * millions
        if set(rows_) & set(BACKLOGS):
            a_run += _LIFE[side]
    return once + runs * a_run

"""What is measured: the rows that can be asked for by name, and the figures of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Of one measurement, by the keys of ``FIGURES``; more than those in the file of results.
Figures = dict[str, float]

WARM = ("start", "latency", "snapshot", "during", "source")
SHAPES = ("columns3", "columns60", "composite", "partitions8", "tables4", "tables400")
BACKLOGS = ("backlog", "single", "deletes", "mix")
#: These are read off others while they run.
_BY_OTHERS = {"signal": ("snapshot",), "memory": ("snapshot", "backlog"), "processor": ("snapshot", "backlog")}
ROWS = (*WARM, *SHAPES, *BACKLOGS, *_BY_OTHERS)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. ``more``: whether more is better."""

    key: str
    row: str
    title: str
    unit: str
    more: bool = False


FIGURES = (
    Figure("snapshot", "snapshot", "snapshot, job warm, from the signal to the last row", "rows/s", True),
    Figure("snapshot.inside", "snapshot", "snapshot, job warm, from its first row to its last", "rows/s", True),
    Figure("backlog", "backlog", "backlog, 1,000-row transactions", "changes/s", True),
    Figure("backlog.start", "backlog", "backlog, 1,000-row transactions, with the job's start", "changes/s", True),
    Figure("single", "single", "backlog, single-row transactions", "changes/s", True),
    Figure("single.start", "single", "backlog, single-row transactions, with the job's start", "changes/s", True),
    Figure("latency.p50", "latency", "commit to consumer, 50 updates/s, otherwise idle, p50", "ms"),
    Figure("latency.p99", "latency", "commit to consumer, 50 updates/s, otherwise idle, p99", "ms"),
    Figure("during.p50", "during", "commit to consumer, 50 updates/s during the snapshot of another table, p50", "ms"),
    Figure("during.p99", "during", "commit to consumer, 50 updates/s during the snapshot of another table, p99", "ms"),
    Figure("during", "during", "snapshot beside 50 updates/s of another table", "rows/s", True),
    Figure("signal", "signal", "signal row to first `r`, warm", "s"),
    Figure("memory.snapshot", "memory", "peak memory of all processes, snapshot", "MB"),
    Figure("memory.backlog", "memory", "peak memory of all processes, backlog", "MB"),
    Figure("start", "start", "start of a new job to its first record of a change", "s"),
    Figure("columns3", "columns3", "snapshot of 3 columns", "rows/s", True),
    Figure("columns60", "columns60", "snapshot of 60 columns", "rows/s", True),
    Figure("composite", "composite", "snapshot by a key of two columns", "rows/s", True),
    Figure("partitions8", "partitions8", "snapshot into 8 partitions", "rows/s", True),
    Figure("tables4", "tables4", "snapshot of 4 tables at once", "rows/s", True),
    Figure("tables400", "tables400", "snapshot of 400 tables of 100 rows at once", "rows/s", True),
    Figure("deletes", "deletes", "backlog of deletions and insertions, 1,000-row transactions", "changes/s", True),
    Figure("mix", "mix", "backlog of a mix over 20 tables, 20 changes a transaction", "changes/s", True),
    Figure("source", "source", "snapshot beside a client that writes to another table all the time", "rows/s", True),
    Figure("source.kept", "source", "what a snapshot leaves of that client's transactions/s", "%", True),
    Figure("processor.snapshot.job", "processor", "processor time of a snapshot, the job", "s/million"),
    Figure("processor.snapshot.MySQL", "processor", "processor time of a snapshot, MySQL", "s/million"),
    Figure("processor.snapshot.Kafka", "processor", "processor time of a snapshot, Kafka", "s/million"),
    Figure(
        "processor.backlog.job",
        "processor",
        "processor time of a backlog, the job with its start",
        "s/million",
    ),
    Figure("processor.backlog.MySQL", "processor", "processor time of a backlog, MySQL", "s/million"),
    Figure("processor.backlog.Kafka", "processor", "processor time of a backlog, Kafka", "s/million"),
)


@dataclass(frozen=True, slots=True)
class Scale:
    """How large and how long; ``rows`` are those of the table ``orders``, of which the others are parts."""

    rows: int = 1_000_000
    warm_up_seconds: float = 20.0
    latency_seconds: float = 20.0

    def part(self, share: float) -> int:
        return max(100, round(self.rows * share))


def row_of(key: str) -> str:
    """The row that a figure belongs to, also one that has no line in the table."""
    return key.partition(".")[0]


def chosen(only: str) -> tuple[str, ...]:
    """The rows of a list with commas; all for an empty one. :raises ValueError: names the rows there are."""
    names = [name.strip() for name in only.split(",") if name.strip()]
    if unknown := [name for name in names if name not in ROWS]:
        raise ValueError(f"there is no row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    return tuple(row for row in ROWS if not names or row in names)


def measured(rows: Sequence[str]) -> set[str]:
    """What must run for these rows."""
    return {other for row in rows for other in _BY_OTHERS.get(row, (row,))}


def served(measurement: str) -> tuple[str, ...]:
    """The rows that get figures from a measurement: the other way round."""
    return (measurement, *(row for row, others in _BY_OTHERS.items() if measurement in others))

"""The rows of the benchmark, which can be selected by name, and the figures of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: The figures of one measurement by their keys. It has the keys of `FIGURES`, and more, which only the results file
#: keeps.
Figures = dict[str, float]

WARM = ("start", "latency", "snapshot", "during", "source", "verify")
#: Rows that incsnap alone has.
CHOSEN = ("keys", "slice")
SHAPES = ("columns3", "columns60", "composite", "partitions8", "tables4", "tables400")
BACKLOGS = ("backlog", "single", "deletes", "mix")
#: Rows without a measurement of their own, and the measurements that give their figures.
_BY_OTHERS = {"signal": ("snapshot",), "memory": ("snapshot", "backlog"), "processor": ("snapshot", "backlog")}
ROWS = (*WARM, *CHOSEN, *SHAPES, *BACKLOGS, *_BY_OTHERS)


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the table."""

    key: str  #: key in `Figures`; up to the first point it is the row's name
    row: str  #: one of `ROWS`
    title: str  #: first cell of the line
    unit: str  #: such as `ms`
    more: bool = False  #: True: a larger value is better


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
    Figure(
        "keys",
        "keys",
        "random keys of a tenth of the table, 100,000 at most, beside 50 updates/s",
        "rows/s",
        True,
    ),
    Figure("keys.p90", "keys", "commit to consumer, 50 updates/s while the keys are read, p90", "ms"),
    Figure("keys.p99", "keys", "commit to consumer, 50 updates/s while the keys are read, p99", "ms"),
    Figure("slice", "slice", "chosen rows: a slice of 0.1 % by an index, from the signal to the last row", "s"),
    Figure("slice.whole", "slice", "all rows of this table, from the signal to the last row", "s"),
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
    Figure("verify", "verify", "comparison of a table with its topic (incsnap verify), with its start", "rows/s", True),
    Figure("verify.processor", "verify", "processor time of incsnap verify, without its start", "s/million"),
    Figure("verify.reading", "verify", "of this, reading the topic", "s/million"),
    Figure("verify.snapshot", "verify", "processor time of the snapshot before, the job", "s/million"),
    Figure("verify.start", "verify", "processor time of the start of incsnap verify", "s"),
    Figure("verify.memory", "verify", "peak memory of incsnap verify", "MB"),
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
    """The size and duration of the measurements."""

    rows: int = 1_000_000  #: rows of the table `orders`; other tables have parts of it
    warm_up_seconds: float = 20.0  #: seconds of single updates before the first measurement
    latency_seconds: float = 20.0  #: seconds in which latencies are measured

    def part(self, share: float) -> int:
        """Return `share` of the rows, at least 100."""
        return max(100, round(self.rows * share))


def row_of(key: str) -> str:
    """Return the row that a figure belongs to, also for a figure without a line in the table."""
    return key.partition(".")[0]


def chosen(only: str) -> tuple[str, ...]:
    """Return the rows that `only` names, separated by commas, or all rows if it is empty.

    Raise ValueError if it names an unknown row.
    """
    names = [name.strip() for name in only.split(",") if name.strip()]
    if unknown := [name for name in names if name not in ROWS]:
        raise ValueError(f"there is no row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    return tuple(row for row in ROWS if not names or row in names)


def measured(rows: Sequence[str]) -> set[str]:
    """Return the measurements that give figures to these rows."""
    return {other for row in rows for other in _BY_OTHERS.get(row, (row,))}


def served(measurement: str) -> tuple[str, ...]:
    """Return the rows that get figures from a measurement."""
    return (measurement, *(row for row, others in _BY_OTHERS.items() if measurement in others))

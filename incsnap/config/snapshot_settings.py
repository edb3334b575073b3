"""Which rows a job reads at its start and how fast it reads, and where in the binlog a new one begins."""

from __future__ import annotations

from pydantic import Field

from incsnap.config.frozen import Frozen
from incsnap.tables import TableId
from signals.regex import any_matches

#: The first is taken where none is given, as by Debezium.
SNAPSHOT_MODES = ("initial", "initial_only", "when_needed", "always", "no_data", "recovery")


class SnapshotSettings(Frozen):
    #: one of SNAPSHOT_MODES
    mode: str = SNAPSHOT_MODES[0]
    #: of the tables that the job reads at its start, by snapshot.mode: Java regexes; all where there are none
    include: tuple[str, ...] = ()
    #: by table, which of its rows are read then (SQL)
    conditions: dict[str, str] = Field(default_factory=dict)
    #: rows of a chunk; None: found by time and bytes
    chunk_size: int | None = None
    #: chunks read at the same time; None: chosen from Spark's cores
    threads: int | None = None
    #: what nine of ten live changes may take beside a snapshot
    latency_target_ms: int = 250
    #: what holds reading back: limits by name (incsnap.snapshot.throttle), 0 is none
    throttle: dict[str, int] = Field(default_factory=dict)
    #: whose lag is looked at for that: (host, port)
    throttle_replicas: tuple[tuple[str, int], ...] = ()

    @property
    def reads_at_start(self) -> bool:
        """Does a new job begin with a snapshot?"""
        return self.mode not in ("no_data", "recovery")

    def included(self, table: TableId) -> bool:
        """Is the table read at the start, if it is captured?"""
        return not self.include or any_matches(self.include, str(table), ignore_case=True)


class StartPlace(Frozen):
    """Where a new job begins in the binlog: behind the transactions of a set, or at a byte of a file; else now."""

    gtid_set: str | None = None
    #: "" for none
    file: str = ""
    position: int = 4

    @property
    def is_given(self) -> bool:
        return self.gtid_set is not None or bool(self.file)

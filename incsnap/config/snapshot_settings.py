"""The typed settings of snapshots and of a new job's first binlog position. `snapshot` reads them."""

from __future__ import annotations

from pydantic import Field

from incsnap.config.frozen import Frozen, of
from incsnap.tables import TableId
from signals.regex import any_matches


class SnapshotSettings(Frozen):
    """The rows that a job reads at its start, and how fast snapshots are read."""

    mode: str = of("snapshot.mode")  #: one of SNAPSHOT_MODES
    #: Java regexes of the tables that `snapshot.mode` reads at the start; empty: all captured tables
    include: tuple[str, ...] = of("snapshot.include.collection.list")
    #: SQL condition for the rows of the first snapshot, by table
    conditions: dict[str, str] = Field(default_factory=dict)
    chunk_size: int | None = of("incremental.snapshot.chunk.size")  #: rows of a chunk; None: chosen by time and bytes
    threads: int | None = of("snapshot.max.threads")  #: chunks read at the same time; None: by Spark's cores
    latency_target_ms: int = of("incsnap.latency.target.ms")
    throttle: dict[str, int] = Field(default_factory=dict)  #: limits on reading by name (incsnap.snapshot.throttle)
    #: (host, port) of the replicas whose lag is measured
    throttle_replicas: tuple[tuple[str, int], ...] = of("incsnap.snapshot.throttle.replicas")

    @property
    def reads_at_start(self) -> bool:
        """Whether a new job begins with a snapshot."""
        return self.mode not in ("no_data", "recovery")

    def included(self, table: TableId) -> bool:
        """Return True if the first snapshot reads the captured table `table`."""
        return not self.include or any_matches(self.include, str(table), ignore_case=True)


class StartPlace(Frozen):
    """The place in the binlog where a new job begins. By default it begins at the end of the binlog."""

    gtid_set: str | None = of("incsnap.start.gtid.set")  #: begin after these transactions; None: not given
    file: str = of("incsnap.start.binlog.file")  #: begin in this binlog file; "": not given
    position: int = of("incsnap.start.binlog.position")  #: byte in `file`

    @property
    def is_given(self) -> bool:
        """Whether the settings name a place."""
        return self.gtid_set is not None or bool(self.file)

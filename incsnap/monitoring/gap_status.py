"""The status of a job that closes a gap in the binlog by what differs (`incsnap.gap.recovery=differences`)."""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.monitoring.amounts import count, moment


@dataclass(frozen=True, slots=True)
class GapStatus:
    """The comparison of the captured tables with their topics behind a gap."""

    behind: str  #: GTID set behind which the job has begun
    since_ms: int  #: when the comparison began or went on in this process
    left: int = 0  #: tables that are not compared yet
    compared: int = 0  #: tables that were compared, or are read whole
    whole: int = 0  #: tables that are read whole, because they cannot be compared or too much differs
    keys: int = 0  #: keys that differ and are sent again
    ended_ms: int = 0  #: when the last table was compared; 0: tables are left
    failures: int = 0  #: attempts that failed since the start of the process
    failure: str = ""  #: error of the last attempt; "" if it did not fail

    @property
    def is_open(self) -> bool:
        """Whether tables are left."""
        return not self.ended_ms


def gap_line(status: GapStatus) -> str:
    """Return the status as a line for people."""
    sent = f"{count(status.keys)} keys that differ are sent again"
    parts = [f"{sent}, and {count(status.whole)} tables are read whole" if status.whole else sent]
    if status.is_open:
        parts.insert(
            0, f"tables are compared with their topics: {count(status.compared)} done, {count(status.left)} left"
        )
    else:
        parts.insert(0, f"{count(status.compared)} tables were compared until {moment(status.ended_ms)}")
    if status.failure:
        parts.append(f"the last attempt failed: {status.failure}")
    return "; ".join(parts)

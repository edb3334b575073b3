"""The status of a running job's comparisons of its tables with its topics."""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.monitoring.amounts import count, duration, moment

#: Tables that a line names.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class TableVerification:
    """The comparisons of one table."""

    table: str  #: `db.table`
    keys: int = 0  #: rows that the last comparison looked at
    differing: int = 0  #: keys that differed when they were compared last
    unverifiable: int = 0  #: keys about which the last comparison proved nothing
    refused: str = ""  #: why the table is not compared; "" if it is


@dataclass(frozen=True, slots=True)
class VerificationStatus:
    """The comparisons of all tables."""

    sample: int = 1  #: one key in so many is compared at a time
    rounds: int = 0  #: comparisons that came to an end since the process's start
    failures: int = 0  #: comparisons that failed since the process's start
    running_since_ms: int = 0  #: when the running comparison began; 0: none runs
    ended_ms: int = 0  #: when the last comparison came to an end; 0: none did
    seconds: float = 0.0  #: how long the last comparison took
    failure: str = ""  #: error of the last comparison; "" if it did not fail
    tables: tuple[TableVerification, ...] = ()  #: captured tables, as the last comparison saw them

    @property
    def is_bad(self) -> bool:
        """Whether a key differs, or the last comparison failed."""
        return bool(self.failure) or any(each.differing for each in self.tables)


def verification_line(status: VerificationStatus) -> str:
    """Return the status as a line for people."""
    differing = [each for each in status.tables if each.differing]
    parts = [f"{each.table} differs in {count(each.differing)} keys" for each in differing[:_NAMED]]
    if len(differing) > _NAMED:
        parts.append(f"{len(differing) - _NAMED} more tables differ")
    if not status.rounds:
        parts.append("no comparison has ended yet")
    else:
        parts = parts or ["no difference is known"]
        parts.append(f"compared last at {moment(status.ended_ms)}, which took {duration(status.seconds)}")
    if refused := sum(bool(each.refused) for each in status.tables):
        parts.append(f"{refused} tables cannot be compared")
    if status.failure:
        parts.append(f"the last comparison failed: {status.failure}")
    return "; ".join(parts)

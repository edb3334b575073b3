"""The number of chunks that a batch may still plan."""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.snapshot.context import Range, Scan
from incsnap.snapshot.next_context import NextContext
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.window import Window


def is_small(scan: Scan, span: Range | Window, limits: Limits) -> bool:
    """Whether `span` is the whole of a small table.

    A few rows of a large table do not count as small. Their chunks may take as long as others, and hundreds of them
    would wait for a reader.
    """
    return span.rows <= limits.small_rows and scan.is_whole(span)


@dataclass(slots=True)
class Capacity:
    """The number of chunks that this batch may still plan. Chunks that are a whole small table are counted apart."""

    limits: Limits  #: limits of the batch
    large: int  #: chunks that may still be planned, apart from whole small tables
    small: int  #: whole small tables that may still be planned

    @classmethod
    def of(cls, state: NextContext, limits: Limits) -> Capacity:
        """Return the capacity of a batch at the beginning of its planning."""
        small = sum(is_small(state.scans[window.scan], window, limits) for window in state.held)
        large = min(limits.parallelism, limits.windows - (len(state.held) - small))
        return cls(limits, large, limits.small_windows - small)

    @property
    def for_any(self) -> bool:
        """True if any chunk may still be planned."""
        return self.large > 0 or self.small > 0

    def for_chunk(self, state: NextContext, *, small: bool = False) -> bool:
        """Whether another chunk may be planned. `small`: whether the chunk is a whole small table."""
        left = self.small if small else self.large
        return left > 0 and state.cuts < self.limits.cuts and state.limits.may_plan(state.now_ms)

    def for_another_table(self, state: NextContext) -> bool:
        """Whether a table of unknown size may be begun.

        It is taken for a small one if small tables are counted apart.
        """
        return self.for_chunk(state, small=self.limits.small_rows > 0)

    def take(self, *, small: bool = False) -> None:
        """Count a chunk that was planned."""
        if small:
            self.small -= 1
        else:
            self.large -= 1

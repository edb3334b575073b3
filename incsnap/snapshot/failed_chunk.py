"""A chunk that could not be read: what it counts against its range, and how the range is read next.

The rules of ``failures``, applied to one window and one error.
"""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.snapshot.context import Range
from incsnap.snapshot.failures import (
    ATTEMPTS_BEFORE_QUARANTINE,
    ATTEMPTS_BEFORE_SPLIT,
    LEFT,
    LOST,
    LOST_BEFORE_QUARANTINE,
    SHAPE,
    TIMEOUT,
    UNBEGUN,
    Verdict,
    back_off_ms,
    kind_of,
    verdict,
)
from incsnap.snapshot.sizing import select_seconds
from incsnap.snapshot.window import Window


@dataclass(frozen=True, slots=True)
class FailedChunk:
    """A window whose reading failed. ``attempt``, ``faults`` and ``lost`` are those of ``Window``, with this reading.
    ``wants_time``: its time ran out, and it may be given more."""

    window: Window
    kind: str
    verdict: Verdict
    attempt: int
    faults: int
    lost: int
    wants_time: bool

    @classmethod
    def of(cls, window: Window, error: str, query_seconds: float) -> FailedChunk:
        """Return what ``error``, written as ``kind: message``, means for the window. ``query_seconds``: what a SELECT
        may take at most."""
        kind, judged = kind_of(error), verdict(error)
        wants_time = kind == TIMEOUT and select_seconds(window.doublings, query_seconds) < query_seconds
        return cls(
            window,
            kind,
            judged,
            attempt=window.attempt + (kind != UNBEGUN),
            faults=window.faults + (judged is not Verdict.READ_AGAIN and not wants_time),
            lost=window.lost + (kind in (LOST, LEFT)),
            wants_time=wants_time,
        )

    @property
    def is_worth_a_warning(self) -> bool:
        """Whether to warn of it: each restart leaves some chunks unread, which is nothing to warn of."""
        return self.kind != UNBEGUN and (self.kind != LEFT or self.lost > 1)

    @property
    def is_lost(self) -> bool:
        """Whether the reading came to no end."""
        return self.kind in (LOST, LEFT)

    @property
    def ends_table(self) -> bool:
        return self.verdict is Verdict.GIVE_UP

    @property
    def is_hopeless(self) -> bool:
        """Whether it is a single row of which all readings are used up."""
        used_up = self.faults >= ATTEMPTS_BEFORE_QUARANTINE or self.lost >= LOST_BEFORE_QUARANTINE
        return self.window.rows == 1 and used_up

    @property
    def is_too_much(self) -> bool:
        """Has the range too many rows, as far as can be said? One that is lost again and again may be what kills its
        reader: to halve it is never wrong."""
        is_lost_again = self.kind in (LOST, LEFT) and self.lost >= ATTEMPTS_BEFORE_SPLIT
        return self.verdict is Verdict.SPLIT or is_lost_again

    @property
    def is_to_be_halved(self) -> bool:
        return self.is_too_much or self.faults >= ATTEMPTS_BEFORE_SPLIT

    @property
    def is_of_the_server(self) -> bool:
        """Has neither the range nor its size to do with it? Then the table's next chunk would meet the same."""
        return self.verdict is Verdict.READ_AGAIN and not self.is_too_much

    @property
    def is_of_another_shape(self) -> bool:
        return self.kind == SHAPE

    @property
    def shrinks_chunks(self) -> bool:
        return self.is_too_much and self.window.rows > 1

    def missed(self, now_ms: int) -> Range:
        """The range that is still to be read: halved at once where it is too much, else after a pause."""
        at_once = self.shrinks_chunks or self.wants_time or self.kind in (LEFT, UNBEGUN)
        return Range(
            self.window.lower,
            self.window.upper,
            self.window.rows,
            self.attempt,
            self.faults,
            self.lost,
            not_before_ms=now_ms if at_once else now_ms + back_off_ms(self.attempt),
        )

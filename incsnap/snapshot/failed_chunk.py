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
    Verdict,
    back_off_ms,
    kind_of,
    verdict,
)
from incsnap.snapshot.window import Window


@dataclass(frozen=True, slots=True)
class FailedChunk:
    """``attempt``, ``faults`` and ``lost`` are those of ``Window``, with this reading."""

    window: Window
    kind: str
    verdict: Verdict
    attempt: int
    faults: int
    lost: int

    @classmethod
    def of(cls, window: Window, error: str) -> FailedChunk:
        """``error`` is written as ``kind: message``."""
        kind, judged = kind_of(error), verdict(error)
        return cls(
            window,
            kind,
            judged,
            attempt=window.attempt + 1,
            faults=window.faults + (judged is not Verdict.READ_AGAIN),
            lost=window.lost + (kind in (LOST, LEFT)),
        )

    @property
    def is_worth_a_warning(self) -> bool:
        """Each restart leaves some chunks unread, which is nothing to warn of."""
        return self.kind != LEFT or self.lost > 1

    @property
    def is_lost(self) -> bool:
        """Whether the reading came to no end."""
        return self.kind in (LOST, LEFT)

    @property
    def ends_table(self) -> bool:
        return self.verdict is Verdict.GIVE_UP

    @property
    def is_hopeless(self) -> bool:
        """Is it a single row, of which all readings are used up?"""
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
        at_once = self.shrinks_chunks or self.kind == LEFT
        return Range(
            self.window.lower,
            self.window.upper,
            self.window.rows,
            self.attempt,
            self.faults,
            self.lost,
            not_before_ms=now_ms if at_once else now_ms + back_off_ms(self.attempt),
        )

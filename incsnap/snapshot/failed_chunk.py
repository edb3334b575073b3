"""A chunk that could not be read: how it counts against its range, and how the range is read next.

The module applies the rules of `failures` to one window and one error.
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
    """A window whose chunk could not be read."""

    window: Window  #: window as it was before this attempt
    kind: str  #: kind of the failure (see `failures`)
    verdict: Verdict  #: what the kind means for the range
    attempt: int  #: as in `Window`, with this attempt; so are the next two
    faults: int  #: failures that count against the range
    lost: int  #: failures that gave no result
    wants_time: bool  #: whether the SELECT reached its time limit and the limit may be doubled

    @classmethod
    def of(cls, window: Window, error: str, query_seconds: float) -> FailedChunk:
        """Return the failed chunk for an error of the form `kind: message`.

        `query_seconds` is what a SELECT may take at most.
        """
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
        """Whether to warn of the failure.

        Chunks that a restart left unread once get no warning: each restart leaves some.
        """
        return self.kind != UNBEGUN and (self.kind != LEFT or self.lost > 1)

    @property
    def is_lost(self) -> bool:
        """Whether the attempt gave no result, because the reader or the job died."""
        return self.kind in (LOST, LEFT)

    @property
    def is_hopeless(self) -> bool:
        """Whether the range is a single row that was read as often as is allowed."""
        used_up = self.faults >= ATTEMPTS_BEFORE_QUARANTINE or self.lost >= LOST_BEFORE_QUARANTINE
        return self.window.rows == 1 and used_up

    @property
    def is_too_much(self) -> bool:
        """Whether the range may have too many rows.

        A range that is lost again and again counts too: it may be what kills its reader, and halving it is never wrong.
        """
        return self.verdict is Verdict.SPLIT or (self.is_lost and self.lost >= ATTEMPTS_BEFORE_SPLIT)

    @property
    def is_to_be_halved(self) -> bool:
        """Whether to halve the range before it is read again."""
        return self.is_too_much or self.faults >= ATTEMPTS_BEFORE_SPLIT

    @property
    def is_of_the_server(self) -> bool:
        """Whether the failure has to do neither with the range nor with its size.

        The table's next chunk would then fail as well.
        """
        return self.verdict is Verdict.READ_AGAIN and not self.is_too_much

    @property
    def shrinks_chunks(self) -> bool:
        """Whether to make the table's next chunks smaller."""
        return self.is_too_much and self.window.rows > 1

    def missed(self, now_ms: int) -> Range:
        """Return the range that must be read again.

        It is due at once if chunks get smaller, if the SELECT gets more time, or after a restart. Otherwise it is due
        after a pause.
        """
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

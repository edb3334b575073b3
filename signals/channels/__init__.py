"""The channels that signals arrive by. A channel takes a position and returns records and the next position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from signals.records import SignalRecord


@dataclass(frozen=True, slots=True)
class Polled:
    """The result of one poll."""

    records: tuple[SignalRecord, ...]  #: in the order of the channel
    position: Any  #: Value for the next poll, in JSON primitives. The job's offset stores it.

"""Where signals come from. Each channel is asked with a position and answers with records and the next position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from signals.records import SignalRecord


@dataclass(frozen=True, slots=True)
class Polled:
    """``position`` (JSON primitives) is what to hand in next time; saved in the job's offset."""

    records: tuple[SignalRecord, ...]
    position: Any

"""What a batch may send of windows beside a writer does not follow from what it could while nobody wrote."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from incsnap.planner import pace
from incsnap.planner.pace import Pace
from incsnap.snapshot.pacing import LEAST_BYTES, MOST_BYTES
from tests.support.job_settings import loaded_with


class Clock:
    """Stands in for the module ``time``."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


def batch(paced: Pace, clock: Clock, seconds: float) -> int:
    """The bytes that a batch of so many seconds was given, all of which it sent."""
    paced.measure()
    given = paced.release_bytes
    end: Any = SimpleNamespace(snapshot=SimpleNamespace(released=(SimpleNamespace(bytes=given),)))
    paced.begin(end, 0)
    clock.now += seconds
    return given


def test_the_first_batch_beside_a_writer_is_as_small_as_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
    paced = Pace(loaded_with().settings.snapshot, str(tmp_path), 1)
    assert [batch(paced, clock, 0.05) for _ in range(20)][-1] == MOST_BYTES
    paced.changes_came()
    assert batch(paced, clock, 0.4) == LEAST_BYTES
    clock.now += 10
    assert batch(paced, clock, 0.4) == MOST_BYTES

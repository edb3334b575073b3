"""A test that the budget beside a writer does not follow from the budget while nobody writes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from incsnap.planner import batch_budget
from incsnap.planner.batch_budget import BatchBudget
from incsnap.snapshot.pacing import LEAST_BYTES, MOST_BYTES
from tests.support.job_settings import loaded_with


class Clock:
    """A replacement for the module `time`, with a time that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


def batch(paced: BatchBudget, clock: Clock, seconds: float) -> int:
    """Run a batch of so many seconds that sends all it may, and return the bytes that it was given."""
    paced.measure()
    given = paced.release_bytes
    end: Any = SimpleNamespace(snapshot=SimpleNamespace(released=(SimpleNamespace(bytes=given),)))
    paced.begin(end, 0)
    clock.now += seconds
    return given


def test_the_first_batch_beside_a_writer_is_as_small_as_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(batch_budget, "time", clock)
    paced = BatchBudget(loaded_with().settings.snapshot, str(tmp_path), 1)
    assert [batch(paced, clock, 0.05) for _ in range(20)][-1] == MOST_BYTES
    paced.changes_came()
    assert batch(paced, clock, 0.4) == LEAST_BYTES
    clock.now += 10
    assert batch(paced, clock, 0.4) == MOST_BYTES

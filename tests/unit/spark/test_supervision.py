"""Tests of the count of failures in a row: which query is healthy again."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from incsnap.errors import SinkError
from incsnap.spark import supervision
from tests.support.job_settings import loaded_with


class Query:
    """A query that fails after some looks. `progress`: the report of its last trigger; None if none has ended."""

    def __init__(self, progress: object) -> None:
        self.lastProgress, self._looks = progress, 3

    @property
    def isActive(self) -> bool:  # noqa: N802 - the name of Spark
        self._looks -= 1
        return self._looks > 0


def failures(progress: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of the failures of a job with two retries, at most five."""
    numbers: list[int] = []
    stopping = threading.Event()

    def failure_of(_: object, number: int, __: int) -> None:
        numbers.append(number)
        if len(numbers) == 5:
            stopping.set()

    monkeypatch.setattr(supervision, "_LASTING_SECONDS", 0.1)
    monkeypatch.setattr(supervision, "begin", lambda *_: Query(progress))
    monkeypatch.setattr(supervision, "_failure", lambda *_: SinkError("timed out"))
    monkeypatch.setattr(supervision, "failure_of", failure_of)
    settings = loaded_with(checkpoint__location=str(tmp_path), errors__max__retries="2").settings
    quick = settings.retries.model_copy(update={"initial_delay_ms": 1, "max_delay_ms": 1})
    settings = settings.model_copy(update={"retries": quick})
    watch = SimpleNamespace(
        recovered=lambda: None, enter=lambda *_: None, outages=SimpleNamespace(current=lambda: None)
    )
    prefix = SimpleNamespace(refuse_if_taken=lambda: None, cause_of=lambda error: error)
    run, lock = SimpleNamespace(watch=watch, prefix=prefix), SimpleNamespace(refuse_if_lost=lambda: None)
    supervision._supervise(None, settings, stopping, lambda: None, run, lock)  # type: ignore[arg-type]
    return numbers


def test_a_query_that_lasts_and_ends_no_trigger_is_not_healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SinkError, match="timed out"):
        failures(None, tmp_path, monkeypatch)


def test_a_query_that_lasts_and_has_ended_a_trigger_is_healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failures({"batchId": 7}, tmp_path, monkeypatch) == [1] * 5

"""Tests of the thread that closes a gap: a failing comparison neither ends the job nor keeps a table for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from incsnap.checkpoint.gap_files import GapAnswer
from incsnap.errors import ChunkFailed, IncsnapError, ServerUnreachable, SinkError, StoreFailed
from incsnap.monitoring.gap_status import GapStatus
from incsnap.spark import gap_recovery
from incsnap.spark.gap_recovery import GapRecovery
from tests.support.waiting import wait_until


class Context:
    def setJobGroup(self, *arguments: object) -> None: ...  # noqa: N802 (Spark's name)

    def cancelJobGroup(self, group: str) -> None: ...  # noqa: N802 (Spark's name)


class Session:
    def __init__(self) -> None:
        self.sparkContext = Context()


class Course:
    """A course of two tables, whose comparison does as `compare` says."""

    def __init__(self, compare: Callable[[Course], None]) -> None:
        self._compare = compare
        self.calls: list[str] = []
        self.answers: list[GapAnswer] = []

    def is_open(self) -> bool:
        return len(self.answers) < 2

    def run(self, *, alone: bool) -> None:
        self.calls.append("alone" if alone else "together")
        self._compare(self)

    def read_next_whole(self, reason: str) -> None:
        self.calls.append("whole")
        self.answer()

    def answer(self) -> None:
        self.answers.append(GapAnswer((), ("shop.a",), is_last=len(self.answers) == 1))


class ShownGaps:
    """A watch that keeps what it shall show."""

    def __init__(self) -> None:
        self.shown: list[GapStatus] = []

    def gap(self, status: GapStatus) -> None:
        self.shown.append(status)


def closed_by(
    monkeypatch: pytest.MonkeyPatch, compare: Callable[[Course], None], watch: ShownGaps | None = None
) -> list[str]:
    """Return the calls of a thread that closes a gap."""
    course = Course(compare)
    monkeypatch.setattr(gap_recovery, "GapCourse", lambda *_: course)
    monkeypatch.setattr(gap_recovery, "_PAUSE_SECONDS", 0.0)
    session: Any = Session()
    recovery = GapRecovery(session, session, "", "job", 1, watch or ShownGaps())  # type: ignore[arg-type]
    wait_until(lambda: not course.is_open() or len(course.calls) > 20)
    recovery.close()
    return course.calls


def fails(course: Course) -> None:
    raise ChunkFailed("the table cannot be read")


def test_a_table_that_always_fails_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = closed_by(monkeypatch, fails)

    once = ["alone"] * 3 + ["whole"]
    assert calls == ["together"] * 2 + once + once


def test_a_table_that_fails_lets_others_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_succeeds(course: Course) -> None:
        if course.calls[-1] == "alone" and not course.answers:
            course.answer()
        raise ChunkFailed("the second table cannot be read")

    calls = closed_by(monkeypatch, first_succeeds)

    assert calls.count("whole") == 1


@pytest.mark.parametrize("error", [ServerUnreachable, SinkError, StoreFailed])
def test_a_server_that_is_away_lets_no_table_be_read_whole(
    monkeypatch: pytest.MonkeyPatch, error: type[IncsnapError]
) -> None:
    """The server is MySQL, Kafka or the object store. A table that is read whole gets no deletions."""

    def away(course: Course) -> None:
        raise error("MySQL is away", "Wait.")

    watch = ShownGaps()
    assert set(closed_by(monkeypatch, away, watch)) == {"together"}
    assert watch.shown[0].failure == ""
    assert {each.failure for each in watch.shown[1:]} == {"MySQL is away"}
    assert watch.shown[2].failures == 2

"""The limits of a comparison: its end, and its share of a core."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace

import pytest

from incsnap.verify.allowance import Allowance, VerificationStopped


class Clock(threading.Event):
    """An event that nobody sets, and which adds up how long it is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = 0.0

    def wait(self, timeout: float | None = None) -> bool:
        self.waited += timeout or 0.0
        return self.is_set()


@pytest.mark.parametrize(
    ("block", "clock_of_use", "used"),
    [(Allowance.spark_job, "monotonic", 1.0), (Allowance.work, "thread_time", 0.5)],
    ids=["a job of Spark by the time it takes", "work on the calling thread by its processor time"],
)
def test_a_share_of_five_percent_rests_nineteen_times_as_long_as_it_works(
    block: Callable[[Allowance], AbstractContextManager[None]],
    clock_of_use: str,
    used: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter([100.0, 100.0 + used])
    monkeypatch.setattr("incsnap.verify.allowance.time", SimpleNamespace(**{clock_of_use: times.__next__}))
    clock = Clock()
    with block(Allowance(clock, share=0.05)):
        pass
    assert clock.waited == pytest.approx(19 * used)


def test_the_making_of_each_step_is_work(monkeypatch: pytest.MonkeyPatch) -> None:
    used = [0.0]
    monkeypatch.setattr("incsnap.verify.allowance.time", SimpleNamespace(thread_time=lambda: used[0]))
    clock = Clock()

    def made() -> Iterator[str]:
        for name, seconds in (("first", 0.5), ("second", 1.0)):
            used[0] += seconds
            yield name

    names, rests = zip(*((name, clock.waited) for name in Allowance(clock, share=0.05).steps(made())), strict=True)
    assert names == ("first", "second")
    assert rests == pytest.approx((9.5, 28.5))


def test_without_a_share_nothing_rests() -> None:
    clock = Clock()
    with Allowance(clock).spark_job():
        pass
    assert clock.waited == 0


def test_a_comparison_that_is_told_to_end_begins_no_job() -> None:
    allowance, begun = Allowance(), []
    allowance.stopping.set()
    with pytest.raises(VerificationStopped), allowance.spark_job():
        begun.append(1)
    with pytest.raises(VerificationStopped):
        allowance.sleep(60)
    assert begun == []


def test_a_comparison_that_waits_for_its_turn_ends_there() -> None:
    stopping = threading.Event()

    @contextmanager
    def turn() -> Iterator[None]:
        stopping.set()
        yield

    with pytest.raises(VerificationStopped), Allowance(stopping, 1, turn).spark_job():
        raise AssertionError

"""Rows of kills: at any moment, and at named ones before and after each durable step."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable

from tests.faults import moments, processes
from tests.faults.trial import Trial

Fault = Callable[[Trial, int], None]
_TURNS = (processes.ALL, processes.PLANNER, processes.WORKER, processes.JVM, processes.DAEMON, processes.DRIVER)
#: A moment comes with nearly every batch, a window's with each chunk: seconds at most, minutes on a busy machine.
_MOMENT_SECONDS = 240.0


def at_any_moment(trial: Trial, number: int) -> None:
    """``kill -9`` of all of it: while it starts, repeats its last batch, or later."""
    del number
    wait = trial.random.choice((trial.random.uniform(0.0, 1.0), trial.random.uniform(0.0, 8.0)))
    deadline = time.monotonic() + wait
    while time.monotonic() < deadline:
        trial.keep_reading()
        time.sleep(0.05)
    _kill(trial, processes.ALL)


def one_part(victim: str) -> Fault:
    def fault(trial: Trial, number: int) -> None:
        del number
        trial.reads()
        trial.job.wait_until(
            f"there was a {victim}", lambda: bool(processes.parts(trial.job)[victim]), _MOMENT_SECONDS, every=0.02
        )
        time.sleep(trial.random.choice((0.0, trial.random.uniform(0.0, 0.3))))
        _kill(trial, victim)

    fault.__doc__ = f"``kill -9`` of the {victim} alone, at any moment while windows are in flight."
    return fault


def the_daemon(trial: Trial, number: int) -> None:
    """``kill -9`` of the daemon alone: its workers go on, and may do all that is left to do."""
    if number:
        # Spark makes another only when it wants one more worker, which a life may never do.
        _live_again(trial)
    one_part(processes.DAEMON)(trial, number)


def the_zygote(trial: Trial, number: int) -> None:
    """``kill -9`` of the zygote, every other time of the planner too: what takes its place is a Python of its own."""
    if number:
        # A life has one zygote, and goes on without it.
        _live_again(trial)
    trial.reads()
    planners = processes.parts(trial.job)[processes.PLANNER]
    _kill(trial, processes.ZYGOTE)
    if number % 2:
        for pid in planners:
            os.kill(pid, signal.SIGKILL)
        trial.done["planner after it"] += 1


def _live_again(trial: Trial) -> None:
    trial.job.stop()
    trial.start()


def readers(trial: Trial, number: int) -> None:
    """``kill -9`` of a process that is reading a chunk."""
    del number
    looked: dict[int, float] = {}
    # What it has used so far is known first: only who uses the processor from now on is reading.
    list(processes.reading(trial.job, looked))

    def a_reader_was_killed() -> bool:
        trial.keep_reading()
        for pid in processes.reading(trial.job, looked):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    trial.job.wait_until("a chunk was being read", a_reader_was_killed, _MOMENT_SECONDS, every=0.05)
    trial.done[processes.READER] += 1


def at_moments(row: str) -> Fault:
    def fault(trial: Trial, number: int) -> None:
        moment = moments.FILES[row][number % 2]
        # A step of a life of its own: what is repeated first had been begun by the life before.
        trial.reads()
        pids = trial.job.remains()
        with moments.Watch(trial.play.checkpoint, moment) as watch:
            deadline = time.monotonic() + _MOMENT_SECONDS
            while not watch.wait(0.2):
                trial.keep_reading()
                assert time.monotonic() < deadline, f"{moment.name}: not within {_MOMENT_SECONDS:.0f} s"
                assert trial.job.exit_code() is None, trial.job.log_tail()
            _stop_look_kill(trial, pids, _TURNS[number // 2 % len(_TURNS)], f" {moment.name.split()[0]}")

    fault.__doc__ = f"``kill -9`` of each part by turns, {' and '.join(each.name for each in moments.FILES[row])}."
    return fault


def at_a_transaction(trial: Trial, number: int) -> None:
    """Before a Kafka transaction is committed (its records are there, uncommitted), and right after."""
    committed = bool(number % 2)
    trial.reads()
    topic = trial.play.topic(trial.random.choice(trial.play.tables)[1])
    pids = trial.job.remains()
    records = moments.Records(trial.ground.kafka, topic, committed=committed)
    assert records.wait(_MOMENT_SECONDS, lambda: trial.job.exit_code() is not None), "nothing was sent"
    when = " after" if committed else " before"
    _stop_look_kill(trial, pids, _TURNS[number // 2 % len(_TURNS)], when)


def _stop_look_kill(trial: Trial, pids: list[int], victim: str, when: str) -> None:
    processes.freeze(pids)
    others = trial.job.remains()  # those that were born meanwhile
    processes.freeze(others)
    trial.met[moments.durable(trial.play.checkpoint)] += 1
    # A signal that is sent to what stands still waits, but for this one.
    _kill(trial, victim, when, frozen=others)


def _kill(trial: Trial, victim: str, when: str = "", frozen: Iterable[int] = ()) -> None:
    killed = processes.killed(trial.job, victim, trial.random)
    trial.done[killed + when] += 1
    processes.go_on(frozen)
    if killed in processes.ENDS_THE_JOB:
        # Its JVM lives a moment longer than a driver that is killed, and workers with it: the next life begins beside
        # zombies. A driver whose JVM is killed ends by itself.
        deadline = time.monotonic() + _MOMENT_SECONDS
        while trial.job.exit_code() is None:
            assert time.monotonic() < deadline, f"the job outlives its {killed}:\n{trial.job.log_tail()}"
            time.sleep(0.01)
        if killed == processes.JVM:
            assert "Spark's JVM does not answer any more" in trial.job.log_tail(), trial.job.log_tail()
        trial.start()


ROWS: dict[str, Fault] = {
    "anytime": at_any_moment,
    **{row: at_moments(row) for row in moments.FILES},
    "transaction": at_a_transaction,
    "planner": one_part(processes.PLANNER),
    "worker": one_part(processes.WORKER),
    "daemon": the_daemon,
    "zygote": the_zygote,
    "jvm": one_part(processes.JVM),
    "reader": readers,
}

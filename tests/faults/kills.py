"""The rows of kills: at a random moment, or right before or after each durable step."""

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
#: A batch brings nearly every moment, a chunk those of a window: within seconds, or minutes on a busy machine.
_MOMENT_SECONDS = 240.0


def at_any_moment(trial: Trial, number: int) -> None:
    """Kill the whole job with SIGKILL: while it starts, while it repeats its last batch, or later."""
    del number
    wait = trial.random.choice((trial.random.uniform(0.0, 1.0), trial.random.uniform(0.0, 8.0)))
    deadline = time.monotonic() + wait
    while time.monotonic() < deadline:
        trial.keep_reading()
        time.sleep(0.05)
    _kill(trial, processes.ALL)


def one_part(victim: str) -> Fault:
    """Return the fault that kills one part of the job while windows are in flight."""

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
    """Kill only the daemon with SIGKILL. Its workers go on, and may do all the remaining work."""
    if number:
        # Spark starts a new daemon only if it needs another worker, which it may never do.
        _live_again(trial)
    one_part(processes.DAEMON)(trial, number)


def the_zygote(trial: Trial, number: int) -> None:
    """Kill the zygote with SIGKILL, and every second time the planner too.

    Spark then starts Python processes itself.
    """
    if number:
        # A job has one zygote from its start, and goes on without it.
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
    """Kill a process with SIGKILL while it reads a chunk."""
    del number
    looked: dict[int, float] = {}
    # Note the processor time so far. A process that uses more from now on is reading.
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
    """Return the fault that kills parts of the job in turn, at the two moments of a row."""

    def fault(trial: Trial, number: int) -> None:
        moment = moments.FILES[row][number % 2]
        # The step must be this process's own: first it repeats the last batch of the process before it.
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
    """Kill parts right before a Kafka transaction's commit (its records are there, uncommitted), or right after it."""
    committed = bool(number % 2)
    trial.reads()
    topic = trial.play.topic(trial.random.choice(trial.play.tables)[1])
    pids = trial.job.remains()
    records = moments.Records(trial.servers.kafka, topic, committed=committed)
    assert records.wait(_MOMENT_SECONDS, lambda: trial.job.exit_code() is not None), "nothing was sent"
    when = " after" if committed else " before"
    _stop_look_kill(trial, pids, _TURNS[number // 2 % len(_TURNS)], when)


def _stop_look_kill(trial: Trial, pids: list[int], victim: str, when: str) -> None:
    processes.freeze(pids)
    others = trial.job.remains()  # processes that were started meanwhile
    processes.freeze(others)
    trial.met[moments.durable(trial.play.checkpoint)] += 1
    # A suspended process gets signals only when it goes on. SIGKILL is the exception.
    _kill(trial, victim, when, frozen=others)


def _kill(trial: Trial, victim: str, when: str = "", frozen: Iterable[int] = ()) -> None:
    killed = processes.killed(trial.job, victim, trial.random)
    trial.done[killed + when] += 1
    processes.go_on(frozen)
    if killed in processes.ENDS_THE_JOB:
        # The JVM and workers live a moment longer than a killed driver, so the next job starts beside zombies. If the
        # JVM is killed, the driver ends by itself.
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

"""Checks for a supervisor: whether a job should be restarted (`healthy`), and whether the job streams (`ready`).

Both functions return a problem as text, and "" if there is no problem. A job that waits for an unreachable server is
healthy, because a restart would not help. Such a job is not ready.
"""

from __future__ import annotations

from incsnap.monitoring.liveness import silence_ms, stalled
from incsnap.monitoring.outages import sentence
from incsnap.monitoring.status import FAILED, RUNNING, JobStatus, clock_ms


def healthy(status: JobStatus) -> str:
    """Return the problem that a restart of the job may solve, or "" if the job is healthy."""
    now_ms = clock_ms()
    if status.state == FAILED:
        return "it has failed"
    if now_ms - status.written_ms > silence_ms(status):
        return "its status is not updated any more"
    if stalled(status, now_ms):
        return f"no batch has ended for {(now_ms - max(status.asked_ms, status.since_ms)) // 1000} s"
    return ""


def ready(status: JobStatus) -> str:
    """Return the reason why the job does not stream now, or "" if the job streams."""
    problem = healthy(status)
    if problem:
        return problem
    if status.state != RUNNING:
        if status.outages:
            return f"it is {status.state}: {'; '.join(map(sentence, status.outages))}"
        reason = f": {status.failure.message}" if status.failure is not None and status.failure.count else ""
        return f"it is {status.state}{reason}"
    if status.stream is None:
        return "the first batch is not planned yet"
    return "" if status.stream.connected else "the server does not send its binlog"

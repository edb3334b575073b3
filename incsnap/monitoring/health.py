"""What a supervisor asks: should the job be killed and started anew, and does it do its work? "" means yes, it is well.

A job that waits for a server that is away is healthy: to start it anew would help nobody. It is not ready.
"""

from __future__ import annotations

from incsnap.monitoring.liveness import silence_ms, stalled
from incsnap.monitoring.status import FAILED, RUNNING, JobStatus, clock_ms


def healthy(status: JobStatus) -> str:
    """What is wrong where a new start would help."""
    now_ms = clock_ms()
    if status.state == FAILED:
        return "it has failed"
    if now_ms - status.written_ms > silence_ms(status):
        return "its own watch hangs"
    if stalled(status, now_ms):
        return f"no batch has ended for {(now_ms - max(status.asked_ms, status.since_ms)) // 1000} s"
    return ""


def ready(status: JobStatus) -> str:
    """What keeps it from streaming."""
    problem = healthy(status)
    if problem:
        return problem
    if status.state != RUNNING:
        reason = f": {status.failure.message}" if status.failure is not None and status.failure.count else ""
        return f"it is {status.state}{reason}"
    if status.stream is None:
        return "the first batch is not planned yet"
    return "" if status.stream.connected else "the server does not send its binlog"

"""Checks whether a job is alive. They read only its status file, so they also work from another machine."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from incsnap.monitoring.status import ENDED, RUNNING, STOPPING, JobStatus

#: Renewals of the status file that a living job may miss in a row, because the machine swaps or the store is slow. A
#: job renews the file every second, or every ten seconds in a store that charges for each write.
_RENEWALS = 5
_LEAST_SILENCE_MS = 10_000
#: A job hangs if its planner was not asked for a batch for this long. Spark asks at the end of each batch. A batch is
#: limited in bytes (about a second of work). If Kafka is away, a batch fails after 30 s and the query starts again.
STALLED_MS = 120_000


@dataclass(frozen=True, slots=True)
class Liveness:
    """The result of `liveness_of`."""

    alive: bool  #: True if the job runs or tries to run
    #: when the job started, when it ended, or the last sign of life of a job that vanished; ms since 1970
    since_ms: int
    has_ended: bool = False  #: True if the job ended by itself and recorded its end


def liveness_of(status: JobStatus, now_ms: int) -> Liveness:
    """Return whether the job that wrote `status` is alive at `now_ms` (milliseconds since 1970 by the caller's clock).

    The job's clock may be the clock of another machine. The two may differ by seconds.
    """
    if status.state in ENDED:
        return Liveness(False, status.since_ms, has_ended=True)
    if now_ms - status.written_ms > silence_ms(status):
        return Liveness(False, status.written_ms)
    return Liveness(True, status.started_ms)


def silence_ms(status: JobStatus) -> int:
    """Return how many milliseconds a living job may go without renewing its status.

    A job that is silent longer is dead.
    """
    return max(_LEAST_SILENCE_MS, _RENEWALS * status.every_ms)


def is_gone(status: JobStatus) -> bool:
    """Return True if the job ran on a machine with this host name and its process does not exist here.

    Take True as a reason to look again, not as proof: two machines may have the same host name.
    """
    if status.host != socket.gethostname():
        return False
    try:
        os.kill(status.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def stalled(status: JobStatus, now_ms: int) -> bool:
    """Return True if the job claims to run but has made no progress for `STALLED_MS`.

    Progress is a call of Spark that asks the planner for the next batch, or the beginning of the run.
    """
    if status.state not in (RUNNING, STOPPING):
        return False
    return now_ms - max(status.asked_ms, status.since_ms) > STALLED_MS

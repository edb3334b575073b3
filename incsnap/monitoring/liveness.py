"""Is a job alive? Told from its status file alone, so that another machine can tell too."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from incsnap.monitoring.status import ENDED, RUNNING, STOPPING, JobStatus

#: A living job renews its status every second, or every ten where each write is paid for. It may be late by some of
#: these: a machine that swaps, a store that is slow.
_RENEWALS = 5
_LEAST_SILENCE_MS = 10_000
#: A planner that nothing was asked of for so long hangs: Spark asks at the end of each batch, and a batch is bounded in
#: bytes (a second) and, when a server is away, in time (Kafka: 30 s, then it fails and is started again).
STALLED_MS = 120_000


@dataclass(frozen=True, slots=True)
class Liveness:
    """``alive``: the job runs, or tries to. ``since_ms``: since when it is so; of a dead one, its last sign of life.
    ``has_ended``: it has ended by itself, and said so."""

    alive: bool
    since_ms: int
    has_ended: bool = False


def liveness_of(status: JobStatus, now_ms: int) -> Liveness:
    """``now_ms`` by the clock of whoever asks; on another machine the two clocks may differ by seconds."""
    if status.state in ENDED:
        return Liveness(False, status.since_ms, has_ended=True)
    if now_ms - status.written_ms > silence_ms(status):
        return Liveness(False, status.written_ms)
    return Liveness(True, status.started_ms)


def silence_ms(status: JobStatus) -> int:
    """A job that has not renewed its status for longer is dead."""
    return max(_LEAST_SILENCE_MS, _RENEWALS * status.every_ms)


def is_gone(status: JobStatus) -> bool:
    """True if the job ran on a machine of this name, and there is no such process here. A reason to look again, no
    more: machines may share a name."""
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
    """True if the job says that it runs, but nothing has moved for two minutes: neither a batch has ended, nor has its
    planner been asked for one since the run began."""
    if status.state not in (RUNNING, STOPPING):
        return False
    return now_ms - max(status.asked_ms, status.since_ms) > STALLED_MS

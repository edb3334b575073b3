"""The check whether a load of the servers is above its limit. If one is, no chunk is planned, and the job says why.

An unknown load counts as too high. A limit protects something, and a replica that does not answer may be the one that
has broken down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from incsnap.snapshot.throttle import CHUNK_ROWS, COMMIT_LATENCY, REPLICA_LAG, ROWS, STREAM_LAG, THREADS_RUNNING, Bound

#: By limit: a sentence about the load, and the load's unit.
_SENTENCES = {
    REPLICA_LAG: ("replica {} is {:,} ms behind", "ms"),
    COMMIT_LATENCY: ("a COMMIT takes {1:,} ms on the server", "ms"),
    THREADS_RUNNING: ("{1:,} threads run on the server", "threads"),
    STREAM_LAG: ("the stream is {1:,} ms behind the server", "ms"),
}


#: The reason why a load is unknown before the first measurement.
BEING_ASKED = "it is being asked for"


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """A measured value for a limit."""

    name: str  #: name of the limit
    value: int | None  #: value in the unit of the limit; None if it could not be measured
    where: str = ""  #: address of the replica; "" for other loads
    trouble: str = ""  #: why `value` is None, for people


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The limit because of which no chunk is planned."""

    name: str  #: name of the limit
    why: str  #: sentence for people, without its full stop


def held_back(bounds: Mapping[str, Bound], loads: Sequence[MeasuredLoad]) -> HeldBack | None:
    """Return the first limit that a load is above, or whose load is unknown. Return None if chunks may be read.

    `ThrottleLimits.may_plan` checks the limit of rows per second, which has no load.
    """
    for name, bound in bounds.items():
        if name in (ROWS, CHUNK_ROWS):
            continue
        of_name = [load for load in loads if load.name == name]
        for load in of_name or [MeasuredLoad(name, None, trouble=BEING_ASKED)]:
            if load.value is None:
                where = f"of replica {load.where} " if load.where else ""
                return HeldBack(name, f"throttled: {name} {where}is not known: {load.trouble} (limit by {bound.whose})")
            if load.value > bound.most:
                sentence, unit = _SENTENCES[name]
                most = f"{bound.most:,} {unit}"
                return HeldBack(
                    name, f"throttled: {sentence.format(load.where, load.value)}, more than the {most} of {bound.whose}"
                )
    return None

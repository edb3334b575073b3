"""Is a load of the servers above its limit? Then no chunk is planned, and whoever asks is told why.

What is not known counts as too much: a limit is there to protect something, and a replica that does not answer may be
the one that has fallen over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from incsnap.snapshot.throttle import COMMIT_LATENCY, REPLICA_LAG, ROWS, STREAM_LAG, THREADS_RUNNING, Bound

#: (what has the load, its unit behind the number), each for a sentence.
_SENTENCES = {
    REPLICA_LAG: ("replica {} is {:,} ms behind", "ms"),
    COMMIT_LATENCY: ("a COMMIT takes {1:,} ms on the server", "ms"),
    THREADS_RUNNING: ("{1:,} threads run on the server", "threads"),
    STREAM_LAG: ("the stream is {1:,} ms behind the server", "ms"),
}


#: Before the first answer.
BEING_ASKED = "it is being asked for"


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """What was measured for the limit ``name``, in its unit. ``where``: the replica's address. ``value`` is None where
    it could not be measured; then ``trouble`` says why."""

    name: str
    value: int | None
    where: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """``name``: of the limit. ``why``: a sentence without its end, for people."""

    name: str
    why: str


def held_back(bounds: Mapping[str, Bound], loads: Sequence[MeasuredLoad]) -> HeldBack | None:
    """The first limit that a load is above, or of which a load is not known; None where chunks may be read."""
    for name, bound in bounds.items():
        if name == ROWS:
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

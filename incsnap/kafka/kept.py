"""Producers that have committed a batch, kept for the next one in the same process.

A producer that is not fenced is proof: nobody else has written under its transactional id since its own last commit, so
the bucket's number is still the one that it committed, and need not be read. Whether it is fenced the transaction's
coordinator says at the first step of the next transaction; then, as after any other doubt, it is closed and a new one
is opened in its place.

Few are kept in a process: each has some threads and connections, and where the tasks of a bucket move between
processes, an older one is of no use.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from incsnap.kafka.producer import TransactionalProducer

#: More than the buckets of a job on one machine: with fewer, a process that serves them in turn would keep none.
MOST = 32
#: Seconds. Brokers hang up on a silent connection after 10 minutes, and opening anew is cheaper than finding out.
_LONGEST = 300.0


@dataclass(frozen=True, slots=True)
class Kept:
    producer: TransactionalProducer
    #: The batch that it has committed last.
    batch: int
    since: float


class KeptProducers:
    """By owner: whatever tells one bucket of one job from all others. Threads may share it."""

    def __init__(self) -> None:
        self._kept: dict[object, Kept] = {}
        self._lock = threading.Lock()

    def take(self, owner: object, before: int) -> Kept | None:
        """The owner's producer if it has committed a batch below ``before``; one that has not is closed."""
        with self._lock:
            kept = self._kept.pop(owner, None)
        if kept is None:
            return None
        if kept.batch < before and time.monotonic() - kept.since < _LONGEST:
            return kept
        kept.producer.close()
        return None

    def keep(self, owner: object, producer: TransactionalProducer, batch: int) -> None:
        """Takes the producer over after its commit; closes those that have been of no use for longest."""
        now = time.monotonic()
        with self._lock:
            gone = [self._kept.pop(owner)] if owner in self._kept else []
            self._kept[owner] = Kept(producer, batch, now)
            for other, kept in list(self._kept.items()):
                if len(self._kept) > MOST or now - kept.since > _LONGEST:
                    gone.append(self._kept.pop(other))
        for kept in gone:
            kept.producer.close()

    def close(self) -> None:
        with self._lock:
            gone = list(self._kept.values())
            self._kept.clear()
        for kept in gone:
            kept.producer.close()

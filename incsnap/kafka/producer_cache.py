"""A cache of producers: after a commit a producer is kept for the next batch in the same process.

A kept producer that is not fenced proves that nobody else has written under its transactional id since its last commit.
So the bucket's last batch is still the producer's own, and need not be read. The transaction coordinator reports at the
first step of the next transaction whether the producer is fenced. Then the producer is closed and a new one is opened,
as after any other doubt.

A process keeps few producers, because each has threads and connections. When the tasks of a bucket move between
processes, an older producer is of no use.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from incsnap.kafka.producer import TransactionalProducer

#: Most producers in the cache. It exceeds the buckets of a job on one machine: a process that serves more buckets in
#: turn than it keeps would always find its producer gone.
MOST = 32
#: Seconds that a producer is kept. Brokers close a silent connection after 10 minutes, and opening a new producer is
#: cheaper than discovering that.
_LONGEST = 300.0


@dataclass(frozen=True, slots=True)
class CachedProducer:
    """A producer in the cache."""

    producer: TransactionalProducer  #: an open producer that no task uses now
    batch: int  #: batch that it committed last
    since: float  #: when it was kept, by `time.monotonic()`


class ProducerCache:
    """A cache of producers by owner. An owner identifies one bucket of one job. Threads may share the cache."""

    def __init__(self) -> None:
        self._kept: dict[object, CachedProducer] = {}
        self._lock = threading.Lock()

    def take(self, owner: object, before: int) -> CachedProducer | None:
        """Remove and return the owner's producer if it committed a batch below `before` less than 300 s ago.

        Otherwise close it and return None.
        """
        with self._lock:
            kept = self._kept.pop(owner, None)
        if kept is None:
            return None
        if kept.batch < before and time.monotonic() - kept.since < _LONGEST:
            return kept
        kept.producer.close()
        return None

    def keep(self, owner: object, producer: TransactionalProducer, batch: int) -> None:
        """Store the producer after its commit.

        Close producers that are unused for too long, and the oldest ones above `MOST`.
        """
        now = time.monotonic()
        with self._lock:
            gone = [self._kept.pop(owner)] if owner in self._kept else []
            self._kept[owner] = CachedProducer(producer, batch, now)
            for other, kept in list(self._kept.items()):
                if len(self._kept) > MOST or now - kept.since > _LONGEST:
                    gone.append(self._kept.pop(other))
        for kept in gone:
            kept.producer.close()

    def close(self) -> None:
        """Close all producers."""
        with self._lock:
            gone = list(self._kept.values())
            self._kept.clear()
        for kept in gone:
            kept.producer.close()

"""The batch with which the newest job of a prefix has ended (`docs/adr/0018-one-start-of-a-prefix.md`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from incsnap.checkpoint.own_starts import OwnCheckpoint
from incsnap.kafka.announcements import StartFacts
from incsnap.kafka.control import CommittedBatch


@dataclass(frozen=True, slots=True)
class EndedJob:
    """The job that has delivered last, and its newest batch."""

    job: StartFacts  #: the job, with its newest start
    batch: int  #: number of the job's newest batch
    place: Mapping[str, Any] | None  #: beginning and end of the batch as the job wrote them down; None if it did not
    sent: tuple[int, ...] = ()  #: buckets that have sent the batch, if others may not have; () if all have


def where_ended(
    jobs: Iterable[StartFacts],
    records_of: Callable[[StartFacts], Mapping[int, CommittedBatch]],
    buckets_in: Callable[[Mapping[str, Any]], int],
    own: OwnCheckpoint,
) -> EndedJob | None:
    """Return where the newest of `jobs` that has delivered has ended.

    `records_of` reads the newest control record of a job in each bucket that has one. `buckets_in` reads the number of
    buckets from a place.

    Return None if no job has delivered. Return None too if `own` is the checkpoint of the job's newest start and has
    all of the job's batches: the job just goes on. The start must be the same, because a copy of the checkpoint may
    have planned other batches.
    """
    for job in jobs:
        records = records_of(job) if job.job else {}
        newest = max((each.batch for each in records.values()), default=0)
        complete = int(job.place["batch"]) if job.place is not None else 0
        if not newest and not complete:
            continue
        if job.job == own.job and job.start in own.starts and own.batch >= max(newest, complete):
            return None
        if complete >= newest:
            return EndedJob(job, complete, job.place)
        sent = tuple(bucket for bucket, record in records.items() if record.batch == newest)
        place = records[sent[0]].place
        is_whole = place is not None and len(sent) == buckets_in(place)
        return EndedJob(job, newest, place, () if is_whole else sent)
    return None

"""``snapshot.mode=when_needed``: a job whose offset the server cannot go on from begins again, with all tables.

It begins as a new job in the old one's checkpoint, behind all that the server has executed. Why no row goes back in
time then: whatever the old job has sent is among those transactions (``lost_behind`` waits until it is), whoever still
sends for it is shut out of Kafka first, and each SELECT of the new job waits for its low watermark, which holds them.
Only where the server itself went back (it does not know what was sent) rows go back with it.

What is taken over: how far the signal channels were read, what signals asked for and is not done, and the throttle. A
pause is not: the snapshot that heals the job would wait for a resume-snapshot that nobody sends.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import begin_again_at, finish_beginning_again, kept_first_offset
from incsnap.checkpoint.planned import planned
from incsnap.checkpoint.progress import read_progress
from incsnap.checkpoint.status import newest_offset
from incsnap.config.settings import Settings
from incsnap.config.snapshot_settings import StartPlace
from incsnap.gtid import GtidSet
from incsnap.mysql.lost_place import lost_behind
from incsnap.mysql.session import connect
from incsnap.planner.planner import first_position
from incsnap.planner.shutting_out import shut_out
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.offset import Offset

log = logging.getLogger(__name__)


def begin_again_where_lost(settings: Settings, root: str) -> None:
    """To be called before Spark starts. ``root``: of incsnap's part of the checkpoint. Raises ``ServerUnreachable`` or
    ``SinkError`` where it cannot be found out, or not be done, now; ``OffsetError`` as ``first_position``."""
    location = settings.checkpoint_location.rstrip("/")
    files = Files(root)
    finish_beginning_again(Files(location), files)
    if settings.snapshot.mode != "when_needed":
        return
    newest = newest_offset(location)
    if newest is None and read_progress(root).batches:
        return  # Spark's part of the checkpoint is gone, which the start tells
    newest = newest or kept_first_offset(files)
    if newest is None:
        return
    done = newest_offset(location, "commits") or kept_first_offset(files) or newest
    plan = planned(files)
    if plan is not None and plan.job_id == newest.job_id and plan.batch > newest.batch:
        newest = plan
    connection = connect(settings.mysql)
    try:
        lost = lost_behind(connection, done.stream.delivered, _sent(done) | _sent(newest))
    finally:
        connection.close()
    if not lost:
        return
    log.warning("The job cannot go on from its offset: %s", lost)
    job = _first(settings, newest)
    shut_out(settings, job.layout.buckets)
    begin_again_at(Files(location), files, job)
    log.warning(
        "snapshot.mode=when_needed: it begins again, behind %s, and reads the tables. Lost are the deletions"
        " meanwhile, whose rows stay in the topics, and signals by rows of the signal table.",
        job.stream.delivered,
    )


def _sent(offset: Offset) -> GtidSet:
    """All of which something may have gone out."""
    stream = offset.stream
    return stream.delivered | GtidSet.parse(stream.open_gtid)


def _first(settings: Settings, lost: Offset) -> Offset:
    """Return where the new job begins, ``lost`` being the offset that the old one cannot go on from.

    The new job has as many buckets: what is left of the old one may still write to each of them.
    """
    first = first_position(settings.model_copy(update={"start": StartPlace()}), lost.layout.buckets)
    before = lost.snapshot
    waiting = SnapshotContext(
        queue=(*(scan.request for scan in before.scans), *before.queue),
        recent=before.recent,
        throttle=before.throttle,
    )
    return replace(first, snapshot=waiting, signal_positions={**lost.signal_positions, **first.signal_positions})

"""The new beginning of a job whose offset the server cannot continue from (`snapshot.mode=when_needed`).

A new job begins in the old job's checkpoint, behind all that the server has executed, and reads all tables. With
`when_needed_no_data` it reads none. No row goes back in time, for three reasons. First, all that the old job has sent
is among the executed transactions; `lost_behind` waits until they are executed. Second, producers that still send for
the old job are fenced before. Third, each SELECT of the new job waits for its low watermark, which contains the
executed transactions. Rows go back in time only if the server itself went back, and does not know the transactions that
were sent.

The new job keeps the positions of the signal channels, the unfinished requests of signals, and the throttle. It does
not keep a pause: the snapshot that repairs the job would wait for a resume-snapshot that nobody sends.
"""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.protocol.binlog_identity import refuse_reused, why_another_file, why_begun_anew
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import begin_again_at, finish_beginning_again, kept_first_offset
from incsnap.checkpoint.gap_files import GapFiles
from incsnap.checkpoint.key_lists import place_of
from incsnap.checkpoint.planned_batch import planned_end
from incsnap.checkpoint.progress import read_progress
from incsnap.checkpoint.status import newest_offset
from incsnap.config.settings import Settings, StartPlace
from incsnap.errors import OffsetError
from incsnap.events import StreamPosition, server_of
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.mysql.lost_place import lost_behind
from incsnap.mysql.session import connect, dial
from incsnap.planner.gap_lists import closed_positions, open_positions
from incsnap.planner.kafka_state import fence_others
from incsnap.planner.online_ddl import OnlineDdl
from incsnap.planner.planner import first_position
from incsnap.planner.start_snapshot import first_positions
from incsnap.snapshot.context import Request, Scan, SnapshotContext
from incsnap.snapshot.offset import Offset

log = logging.getLogger(__name__)


def begin_again_where_lost(settings: Settings, root: str) -> None:
    """Begin the job again if `snapshot.mode` asks for that and the server cannot continue from the job's offset.

    With any `snapshot.mode`, first finish a new beginning that an earlier start was about to make. The checkpoint then
    has the first offset of the new job, and Spark begins there. Call this before Spark starts. `root` is incsnap's part
    of the checkpoint. Raise ServerUnreachable or SinkError if MySQL or Kafka fails. Raise OffsetError if an offset in
    the checkpoint cannot be loaded.
    """
    location = settings.checkpoint_location.rstrip("/")
    files = Files(root)
    finish_beginning_again(Files(location), files)
    if not settings.snapshot.begins_again:
        return
    newest = last_known(location, root)
    if newest is None:
        return
    done = newest_offset(location, "commits") or kept_first_offset(files) or newest
    compares = settings.snapshot.compares_behind_a_gap
    with closing(connect(settings.mysql)) as connection:
        lost = str(lost_behind(connection, done.stream.delivered, _sent(done) | _sent(newest)))
        if not lost and compares:
            # A comparison of contents needs no GTIDs. All rows read anew would leave the lost ones in the topics.
            lost = _why_reused(settings, connection, done.stream)
    if not lost:
        return
    log.warning("The job cannot go on from its offset: %s", lost)
    job = _first(settings, files, newest, compares=compares)
    fence_others(settings, job.layout.buckets)
    if compares:
        GapFiles(files, job.job_id).open(job.stream.delivered)
    begin_again_at(Files(location), files, job)
    GapFiles(files, newest.job_id).forget()
    if compares:
        log.warning(
            "incsnap.gap.recovery=differences: the job begins again after the transactions %s. It streams, and compares"
            " all captured tables with their topics beside the stream: rows that differ are sent again, and deletions"
            " are sent. Signals inserted meanwhile into the signal table are lost.",
            job.stream.delivered,
        )
        return
    if not settings.snapshot.reads_at_start:
        log.warning(
            "snapshot.mode=when_needed_no_data: the job begins again after the transactions %s and reads no rows."
            " Changes made meanwhile are missing in the topics: incsnap verify finds them. Signals inserted meanwhile"
            " into the signal table are lost.",
            job.stream.delivered,
        )
        return
    log.warning(
        "snapshot.mode=when_needed: the job begins again after the transactions %s and snapshots all captured tables."
        " Two things are lost: deletions made meanwhile, whose rows stay in the topics, and signals inserted meanwhile"
        " into the signal table.",
        job.stream.delivered,
    )


def last_known(location: str, root: str) -> Offset | None:
    """Return the end of the last batch of the job at `location`, planned or done; None if there is no job.

    Return None too if Spark's part of the checkpoint is gone: the start reports that.
    """
    files, newest = Files(root), newest_offset(location)
    if newest is None and read_progress(root).batches:
        return None
    newest = newest or kept_first_offset(files)
    plan = planned_end(files)
    if newest is not None and plan is not None and plan.job_id == newest.job_id and plan.batch > newest.batch:
        return plan
    return newest


def _why_reused(settings: Settings, connection: Connection[Any], stream: StreamPosition) -> str:
    """Return how we know that the server has given delivered GTIDs to other transactions; "" if nothing shows it."""
    at, mysql = stream.at, settings.mysql
    if not at.file or watermarks.server_uuid(connection) != server_of(at.server_uuid):
        return ""
    anew = why_begun_anew(connection, at)
    if not anew and stream.begun:
        anew = why_another_file(partial(dial, mysql), mysql.server_id, at, stream.begun)
    if anew:
        try:
            refuse_reused(connection, partial(dial, mysql), mysql.server_id, at, stream.begun, stream.delivered)
        except OffsetError as error:
            return f"{error.message} ({anew})"
    return ""


def _sent(offset: Offset) -> GtidSet:
    """Return all transactions of which something may have been sent."""
    stream = offset.stream
    return stream.delivered | GtidSet.parse(stream.open_gtid)


def _first(settings: Settings, files: Files, lost: Offset, *, compares: bool) -> Offset:
    """Return the first offset of the new job. `lost` is the offset that the old job cannot go on from.

    `compares`: the tables are compared with the topics, and not all of their rows are read.
    """
    job = another_job(settings, lost, StartPlace())
    with closing(connect(settings.mysql)) as connection:
        online = OnlineDdl(settings, files).begun_again(lost, connection)
    before = job.signal_positions
    own = open_positions() if compares else {**closed_positions(before), **first_positions(settings.snapshot)}
    return replace(job, signal_positions={**before, **own}, online=online)


def another_job(settings: Settings, before: Offset, place: StartPlace) -> Offset:
    """Return the first offset of a job that begins at `place` in the checkpoint of a job with the offset `before`.

    The new job has as many buckets as the old job: a producer of the old job may still write to each of them.
    """
    first = first_position(settings.model_copy(update={"start": place}), before.layout.buckets)
    snapshot = before.snapshot
    waiting = SnapshotContext(
        queue=(*map(_waiting, snapshot.scans), *snapshot.queue),
        recent=snapshot.recent,
        throttle=snapshot.throttle,
    )
    return replace(first, snapshot=waiting, signal_positions=before.signal_positions)


def _waiting(scan: Scan) -> Request:
    """Return the request that reads the table from its beginning. A list of its keys lies beside the checkpoint."""
    if not scan.keys:
        return scan.request
    chosen = replace(scan.chosen, topic="", files=place_of(scan.keys))
    return replace(scan.request, collection=replace(scan.request.collection, chosen=chosen))

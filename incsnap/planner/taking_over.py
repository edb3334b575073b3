"""A job that takes the place of another one: it goes on exactly where the other has ended, or says why it cannot.

Buckets may have ended at different batches. All of them are done with the batch before the newest, as Spark runs a
batch when the one before is done in all buckets. So the new job begins where the newest batch began, its first batch
ends exactly where that one ended, and buckets that have it are told so: the sink skips them as in any replay.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import begin_again_at
from incsnap.checkpoint.offsets import KeptOffsets
from incsnap.checkpoint.own_starts import OwnCheckpoint
from incsnap.checkpoint.planned import remember
from incsnap.config.settings import Settings
from incsnap.envelope.control_records import home
from incsnap.errors import ConfigError, shorten
from incsnap.gtid import GtidSet
from incsnap.kafka.announcements import OwnStart, StartFacts
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import CommittedBatch, recorded_batch
from incsnap.kafka.patience import patiently
from incsnap.kafka.transaction import PRODUCERS, BucketWriter
from incsnap.mysql import watermarks
from incsnap.mysql.session import connect
from incsnap.mysql.start_place import require_sendable
from incsnap.planner.choices import choices_digest, planned_with
from incsnap.planner.prepared_xa import first_place
from incsnap.snapshot.delivered_place import DeliveredPlace, batch_place, delivered_place
from incsnap.snapshot.offset import Offset, digest

log = logging.getLogger(__name__)

_ANEW = (
    "Stop the other job, and start with a new checkpoint.location and without --replace-job: the job then begins anew"
    " and reads the tables as snapshot.mode says."
)


class CannotTakeOver(ConfigError):
    """The new job cannot go on exactly where the replaced one has ended."""

    hint = _ANEW


@dataclass(frozen=True, slots=True)
class HandOver:
    """Where a job has ended, and what another one needs to go on from there."""

    #: The job that has delivered last.
    job: StartFacts
    #: The newest batch of that job.
    batch: int
    #: Where the new job begins.
    begin: Offset
    #: Where its first batch must end; None where all buckets are at ``begin``.
    first_end: Offset | None
    #: Buckets that have the first batch already.
    sent: tuple[int, ...]
    #: Tables whose snapshot was under way.
    tables: tuple[str, ...]


def hand_over(settings: Settings, jobs: Iterable[StartFacts], buckets: int, own: OwnCheckpoint) -> HandOver | None:
    """Return where the newest of ``jobs`` that has delivered has ended, in any of ``buckets`` buckets.

    Return None if none has delivered, or if the checkpoint ``own`` is that of its newest start and has all of its
    batches: it just goes on. A copy of that checkpoint may have planned other batches. Raise ``CannotTakeOver`` where
    the job cannot go on exactly; ``SinkError`` and ``ServerUnreachable`` where that cannot be found out.
    """
    for job in jobs:
        records = _records(settings, job, buckets) if job.job else {}
        newest = max((each.batch for each in records.values()), default=0)
        complete = int(job.place["batch"]) if job.place is not None else 0
        if not newest and not complete:
            continue
        if job.job == own.job and job.start in own.starts and own.batch >= max(newest, complete):
            log.info("The checkpoint %s has all that was sent to Kafka, and goes on", own.location)
            return None
        if job.place is not None and complete >= newest:
            place = delivered_place(job.place)
            ending = HandOver(job, complete, place.end, None, (), place.tables)
        else:
            ending = _behind_records(job, newest, records)
            place = delivered_place(records[ending.sent[0]].place or {})
            if ending.first_end is not None and len(ending.sent) == ending.begin.layout.buckets:
                ending = replace(ending, begin=ending.first_end, first_end=None, sent=())
        _refuse_other_settings(settings, ending, place)
        _refuse_what_is_elsewhere(settings, ending)
        connection = connect(settings.mysql)
        try:
            _require_reachable(connection, ending)
        finally:
            connection.close()
        return ending
    return None


def take_over(settings: Settings, root: str, ending: HandOver, start: OwnStart) -> None:
    """Make the checkpoint that of a new job, which begins where the replaced one has ended.

    ``root``: of incsnap's part of the checkpoint. Cut short, it is done again, with another job id. Raise as
    ``hand_over``.
    """
    connection = connect(settings.mysql)
    try:
        # Rows of what is prepared lie beside the other checkpoint. The binlog has them as well.
        _, sought = first_place(connection, ending.begin.stream.delivered)
    finally:
        connection.close()
    files = Files(root)
    layout = replace(ending.begin.layout, partitions={})
    first = replace(
        ending.begin, job_id=uuid4().hex, batch=0, layout=layout, prepared=(), sought=sought, control=(), definitions=""
    )
    begin_again_at(Files(settings.checkpoint_location.rstrip("/")), files, first)
    if ending.first_end is not None:
        end = replace(
            ending.first_end, job_id=first.job_id, batch=1, prepared=(), sought=sought, control=(), definitions=""
        )
        offsets = KeptOffsets(files)
        remember(files, offsets, end, planned_with(settings))
        _mark_as_sent(settings, ending.sent, first, end, digest(offsets.dump(end)), start)
    log.warning(
        "This job takes over from %s: it goes on behind %s%s",
        ending.job,
        shorten(ending.begin.stream.delivered, 200),
        f", inside of {ending.begin.stream.open_gtid}" if ending.begin.stream.open_gtid else "",
    )
    if ending.tables:
        log.warning(
            "Snapshots that were under way in the replaced job are not continued: signal execute-snapshot for %s",
            ", ".join(ending.tables),
        )


def _records(settings: Settings, job: StartFacts, buckets: int) -> dict[int, CommittedBatch]:
    """Return the newest record of the job in each bucket that has one."""
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    newest_records: dict[int, CommittedBatch] = {}
    for bucket in range(buckets):
        ask = partial(recorded_batch, client, settings.topic_prefix, job.job, bucket)
        record = patiently("reading the newest batch", ask)
        if record is not None:
            newest_records[bucket] = record
    return newest_records


def _behind_records(job: StartFacts, newest: int, records: Mapping[int, CommittedBatch]) -> HandOver:
    """Return the place of the newest batch, of which only some buckets may have their share."""
    sent = tuple(bucket for bucket, record in records.items() if record.batch == newest)
    written = records[sent[0]].place
    if written is None:
        raise CannotTakeOver(
            f"{job} has sent batch {newest} without writing down where it ends: an older release of incsnap did, or the"
            " batch was of too many tables",
            f"Let that job run for some seconds with this release, then replace it. Or: {_ANEW}",
        )
    place = delivered_place(written)
    if place.begin is None:
        raise CannotTakeOver(f"the record of batch {newest} of {job} does not say where the batch begins")
    return HandOver(job, newest, place.begin, place.end, sent, place.tables)


def _refuse_other_settings(settings: Settings, ending: HandOver, place: DeliveredPlace) -> None:
    """Raise ``CannotTakeOver`` where a batch or a transaction would be finished under other settings."""
    if place.choices == choices_digest(settings):
        return
    if ending.first_end is not None:
        what = f"batch {ending.batch} of {ending.job} is sent in a part of the buckets only"
    elif ending.begin.stream.open_gtid:
        what = f"{ending.job} has sent a part of the transaction {ending.begin.stream.open_gtid}"
    else:
        return
    raise CannotTakeOver(
        f"{what}, and must be finished with the same settings: tables, columns, keys, transforms, handling modes",
        "Start with the settings of that job, and change them when it has gone on.",
    )


def _refuse_what_is_elsewhere(settings: Settings, ending: HandOver) -> None:
    """Raise ``CannotTakeOver`` where a batch that is partly sent needs what lies beside the other checkpoint alone."""
    end = ending.first_end
    if end is None:
        return
    written = [
        topic
        for topic in end.control
        if topic != settings.heartbeat.topic and home(topic, end.layout.buckets) not in ending.sent
    ]
    missing = [
        *(f"the records for {topic}" for topic in written),
        *(["rows of prepared XA transactions"] if ending.begin.prepared or end.prepared else []),
        *(["definitions of tables (binlog_row_metadata=MINIMAL)"] if end.definitions else []),
    ]
    if missing:
        raise CannotTakeOver(
            f"batch {ending.batch} of {ending.job} is sent in a part of the buckets only, and {', '.join(missing)} lie"
            " beside its own checkpoint",
            f"Start that job with its own checkpoint and --replace-job, stop it with SIGTERM, and replace it then. Or:"
            f" {_ANEW}",
        )


def _require_reachable(connection: Connection[Any], ending: HandOver) -> None:
    """Raise ``CannotTakeOver`` where the server cannot send what follows the place."""
    stream = ending.begin.stream
    try:
        require_sendable(connection, stream.delivered, f"the place where {ending.job} has ended", _ANEW)
    except ConfigError as error:
        raise CannotTakeOver(error.message, error.hint) from None
    gone = watermarks.purged(connection)
    for each in ending.begin.prepared:
        if GtidSet.parse(each.gtid) <= gone:
            raise CannotTakeOver(
                f"rows of the prepared XA transaction {each.xid} lie beside the checkpoint of {ending.job}, and are not"
                " in the binlog any more",
                "XA COMMIT or XA ROLLBACK it while that job runs, then replace the job.",
            )


def _mark_as_sent(
    settings: Settings, buckets: Iterable[int], first: Offset, end: Offset, digest_: str, start: OwnStart
) -> None:
    """Commit the new job's first batch in the buckets that have its records already."""
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    writer = BucketWriter(client, settings.topic_prefix, first.job_id, start)
    place = batch_place(first, end, choices_digest(settings))
    try:
        for bucket in buckets:
            transaction = writer.open(bucket, end.batch, digest_)
            if transaction is not None:
                with transaction:
                    transaction.commit(place)
    finally:
        PRODUCERS.close()

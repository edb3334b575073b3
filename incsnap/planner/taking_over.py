"""The take-over of one job by another: the new job goes on exactly where the other has ended, or an error says why not.

Buckets may have ended at different batches. All of them have the batch before the newest one, because Spark runs a
batch only when the batch before is done in all buckets. So the new job begins where the newest batch began. Its first
batch ends exactly where the newest batch ended. Buckets that have that batch are marked, and the sink skips them as in
any replay.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import begin_again_at
from incsnap.checkpoint.offsets import KeptOffsets
from incsnap.checkpoint.own_starts import OwnCheckpoint
from incsnap.checkpoint.planned_batch import remember
from incsnap.config.settings import Settings
from incsnap.envelope.control_records import bucket_of_partition_0
from incsnap.errors import ConfigError, shorten
from incsnap.gtid import GtidSet
from incsnap.kafka.announcements import OwnStart, StartFacts
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.transaction import PRODUCERS, BucketWriter
from incsnap.mysql import watermarks
from incsnap.mysql.session import connect
from incsnap.mysql.start_place import require_sendable
from incsnap.planner.choices import choices_digest, planned_with
from incsnap.planner.kafka_state import recorded_batches
from incsnap.planner.new_tables import filter_of
from incsnap.planner.old_rows import defined_file_of
from incsnap.planner.prepared_xa import first_place
from incsnap.planner.replaced_files import FilesByFolder, keep_replaced, read_replaced
from incsnap.planner.where_ended import EndedJob, where_ended
from incsnap.snapshot.delivered_place import DeliveredPlace, batch_place, delivered_place
from incsnap.snapshot.offset import Offset, digest

log = logging.getLogger(__name__)

_ANEW = (
    "Stop the other job, and start with a new checkpoint.location and without --replace-job: the job then begins anew"
    " and reads the tables as snapshot.mode says."
)
_DEFINITIONS = "definitions of tables (binlog_row_metadata=MINIMAL)"
_READABLE = " Or start this one where it can read that checkpoint: the definitions are taken from there."


class CannotTakeOver(ConfigError):
    """An error: the new job cannot go on exactly where the replaced job has ended."""

    hint = _ANEW


@dataclass(frozen=True, slots=True)
class HandOver:
    """The place where a job has ended, and what another job needs to go on from there."""

    job: StartFacts  #: the job that has delivered last
    batch: int  #: number of the newest batch of that job
    begin: Offset  #: where the new job begins
    first_end: Offset | None  #: where the new job's first batch must end; None if all buckets are at `begin`
    sent: tuple[int, ...]  #: buckets that have the first batch already
    tables: tuple[str, ...]  #: tables whose snapshot was under way
    #: Files of the replaced job's checkpoint that could be read: definitions of tables (binlog_row_metadata=MINIMAL),
    #: tables of tools for online schema changes, and the lists that chose the captured tables.
    files: FilesByFolder = field(default_factory=dict)

    def has_definitions(self, name: str) -> bool:
        """Return True if the file of definitions could be read."""
        return name in self.files.get("definitions", ())

    def at_first(self, offset: Offset, **changes: Any) -> Offset:
        """Return `offset` for the checkpoint of the new job, without names of files that only the replaced job's
        checkpoint has.

        `changes` are other fields to set.
        """
        known = offset.definitions if self.has_definitions(offset.definitions) else ""
        online = offset.online if offset.online in self.files.get("online", ()) else ""
        return replace(offset, prepared=(), control=(), definitions=known, online=online, **changes)


def hand_over(settings: Settings, jobs: Iterable[StartFacts], buckets: int, own: OwnCheckpoint) -> HandOver | None:
    """Return where the newest of `jobs` that has delivered has ended.

    `buckets` is the largest number of buckets they had. Return None if no job has delivered, or if the job of the
    checkpoint `own` just goes on (`where_ended`).

    Raise CannotTakeOver if the new job cannot go on exactly. Raise SinkError or ServerUnreachable if Kafka or MySQL
    cannot be asked.
    """
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    ended = where_ended(
        jobs,
        lambda job: recorded_batches(client, settings.topic_prefix, job.job, buckets),
        lambda place: delivered_place(place).end.layout.buckets,
        own,
    )
    if ended is None:
        if own.job:
            log.info("The checkpoint %s has everything that was sent to Kafka; the job goes on from it", own.location)
        return None
    place = _written_place(ended)
    begin, first_end = (place.begin, place.end) if ended.sent else (place.end, None)
    if begin is None:
        raise CannotTakeOver(f"the record of batch {ended.batch} of {ended.job} does not say where the batch begins")
    ending = HandOver(ended.job, ended.batch, begin, first_end, ended.sent, place.tables)
    _refuse_other_settings(settings, ending, place)
    offsets = [each for each in (ending.begin, ending.first_end) if each is not None]
    if any(each.seam for each in offsets):
        raise CannotTakeOver(
            f"{ended.job} has not passed what a connector had sent before it, which lies beside its own checkpoint",
            "Let that job run until its log says that the stream has passed it, then replace it.",
        )
    needed = {
        "definitions": {each.definitions for each in offsets},
        "online": {each.online for each in offsets},
        "filters": set(map(filter_of, offsets)),
        "columns": set(map(defined_file_of, offsets)),
    }
    names = {folder: sorted(names - {""}) for folder, names in needed.items()}
    ending = replace(ending, files=read_replaced(settings, ended.job, names))
    _refuse_what_is_elsewhere(settings, ending)
    with closing(connect(settings.mysql)) as connection:
        _require_reachable(connection, ending)
    return ending


def take_over(settings: Settings, root: str, ending: HandOver, start: OwnStart) -> None:
    """Give the checkpoint to a new job, which begins where the replaced job has ended.

    `root` is incsnap's part of the checkpoint. If the take-over is cut short, it is done again with another job id.
    Raise SinkError or ServerUnreachable if Kafka or MySQL fails.
    """
    with closing(connect(settings.mysql)) as connection:
        # Rows of prepared XA transactions lie beside the other checkpoint. `sought` has them read from the binlog
        # again.
        _, sought = first_place(connection, ending.begin.stream.delivered)
    files = Files(root)
    layout = replace(ending.begin.layout, partitions={})
    keep_replaced(files, ending.files)
    first = ending.at_first(ending.begin, job_id=uuid4().hex, batch=0, layout=layout, sought=sought)
    begin_again_at(Files(settings.checkpoint_location.rstrip("/")), files, first)
    if ending.first_end is not None:
        end = ending.at_first(ending.first_end, job_id=first.job_id, batch=1, sought=sought)
        offsets = KeptOffsets(files)
        remember(files, offsets, end, planned_with(settings))
        _mark_as_sent(settings, ending.sent, first, end, digest(offsets.dump(end)), start)
    log.warning(
        "This job takes over from %s: it goes on after %s%s",
        ending.job,
        shorten(ending.begin.stream.delivered, 200),
        f", inside of {ending.begin.stream.open_gtid}" if ending.begin.stream.open_gtid else "",
    )
    if ending.tables:
        log.warning(
            "Snapshots that were under way in the replaced job are not continued: signal execute-snapshot for %s",
            ", ".join(ending.tables),
        )


def _written_place(ended: EndedJob) -> DeliveredPlace:
    """Return the place of the job's newest batch. Raise CannotTakeOver if the job did not write the place down."""
    if ended.place is None:
        raise CannotTakeOver(
            f"{ended.job} has sent batch {ended.batch} without writing down where it ends: an older release of incsnap"
            " did, or the batch was of too many tables",
            f"Let that job run for some seconds with this release, then replace it. Or: {_ANEW}",
        )
    return delivered_place(ended.place)


def _refuse_other_settings(settings: Settings, ending: HandOver, place: DeliveredPlace) -> None:
    """Raise CannotTakeOver if a batch or a transaction would be finished under other settings."""
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
    """Raise CannotTakeOver if a partly sent batch needs files that lie only beside the other checkpoint."""
    end = ending.first_end
    if end is None:
        return
    written = [
        topic
        for topic in end.control
        if topic != settings.heartbeat.topic and bucket_of_partition_0(topic, end.layout.buckets) not in ending.sent
    ]
    missing = [
        *(f"the records for {topic}" for topic in written),
        *(["rows of prepared XA transactions"] if ending.begin.prepared or end.prepared else []),
        *([_DEFINITIONS] if end.definitions and not ending.has_definitions(end.definitions) else []),
    ]
    if missing:
        raise CannotTakeOver(
            f"batch {ending.batch} of {ending.job} is sent in a part of the buckets only, and {', '.join(missing)} lie"
            " beside its own checkpoint",
            f"Start that job with its own checkpoint and --replace-job, stop it with SIGTERM, and replace it then."
            f"{_READABLE if _DEFINITIONS in missing else ''} Or: {_ANEW}",
        )


def _require_reachable(connection: Connection[Any], ending: HandOver) -> None:
    """Raise CannotTakeOver if the server cannot send what follows the place.

    Raise it too if the binlog does not contain the rows of a prepared XA transaction any more.
    """
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

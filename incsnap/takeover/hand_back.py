"""The place at which a connector continues the topics of a job that has stopped."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.planned_batch import plan_and_choices, planned_end
from incsnap.checkpoint.status import newest_offset
from incsnap.checkpoint.taken_over import taken_over
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, shorten
from incsnap.mysql import catalog, watermarks
from incsnap.mysql.session import connect
from incsnap.planner import asked_place
from incsnap.planner.choices import PREFIX
from incsnap.planner.gap_lists import is_unrepaired
from incsnap.snapshot.offset import Offset
from incsnap.takeover.altered_tables import RUN_AGAIN, described, what_it_needs
from incsnap.takeover.handed_signals import behind_obeyed, what_the_file_needs
from incsnap.takeover.handed_snapshot import fields_of_snapshot
from incsnap.takeover.schema_history import HistoryTopic, how_to_renew, of_server, records, statements
from incsnap.takeover.unsent_xa import refuse_unsent_xa, unseen_xa


@dataclass(frozen=True, slots=True)
class HandBack:
    """The offset of a connector that continues where a job has stopped."""

    prefix: str  #: `topic.prefix` of both
    offset: dict[str, Any]  #: as Kafka Connect keeps it
    lines: tuple[str, ...]  #: what a person must know, in sentences
    history: tuple[bytes, ...] = ()  #: records for the connector's schema history, in their order
    #: offset of the signal topic behind the signals that the job has obeyed; None: it has read none there
    signals_at: int | None = None
    by_hand: str = ""  #: what must be done with the schema history by hand before the connector starts; "" for nothing

    @property
    def partition(self) -> dict[str, str]:
        """The partition to which Connect's offset belongs."""
        return {"server": self.prefix}

    @property
    def document(self) -> dict[str, Any]:
        """The body of `PATCH /connectors/NAME/offsets`."""
        return {"offsets": [{"partition": self.partition, "offset": self.offset}]}


def hand_back(settings: Settings, history: HistoryTopic | None = None, renewal: str = how_to_renew({})) -> HandBack:
    """Return the offset with which a connector continues where the job has stopped.

    `history`: the topic of the connector's schema history, for which records are made; None: the sentences say what the
    schema history needs. `renewal`: how the schema history is renewed by hand. The caller holds the checkpoint's lock.
    Raise ConfigError if the job must run once more, or if the tables have changed behind its place. Raise
    ServerUnreachable if MySQL or Kafka does not answer.
    """
    files = Files(own_part(settings.checkpoint_location))
    end = _end(settings, files)
    stream = end.stream
    with closing(connect(settings.mysql)) as connection:
        refuse_unsent_xa(settings, connection, stream.delivered)
        file, pos = (stream.file, stream.pos) if stream.file else watermarks.high_watermark(connection)
        if not stream.file and not watermarks.executed(connection) <= stream.delivered:
            raise ConfigError("the job has read nothing of the binlog yet, and there are changes behind it", RUN_AGAIN)
        lines = [f"The job has sent the transactions {stream.delivered} ({file}:{pos}).", *unseen_xa(connection)]
        place = {"ts_sec": int(time.time()), "file": file, "pos": pos, "gtids": str(stream.delivered)}
        written, by_hand = list[bytes](), ""
        if history is None:
            needs = what_it_needs(settings, connection, files, stream, renewal)
            by_hand = renewal if renewal in needs else ""
            lines += [each for each in needs if each != by_hand]
        else:
            known = history.databases(settings.topic_prefix)
            databases, tables = described(settings, connection, stream.delivered, known)
            made = [of_server(*catalog.server_charset(connection)), *statements(databases, tables)]
            written = records(settings.topic_prefix, place, made, time.time_ns() // 1_000_000)
            lines.append(f"The schema history {history.name} gets the present definitions of {len(tables)} tables.")
        taken = taken_over(files)
        running, sentences = fields_of_snapshot(connection, settings, end, taken.requests if taken is not None else ())
    offset = {**place, **running}
    sentences += what_the_file_needs(settings, end)
    signals_at = behind_obeyed(settings, end)
    return HandBack(settings.topic_prefix, offset, (*lines, *sentences), tuple(written), signals_at, by_hand)


def _end(settings: Settings, files: Files) -> Offset:
    """Return the end of the job's last batch. Raise ConfigError if it is no end that a connector can have."""
    location = settings.checkpoint_location.rstrip("/")
    end = newest_offset(location, "commits")
    if end is None:
        raise ConfigError(
            f"{location} is not the checkpoint of a job that has sent a batch",
            "Correct checkpoint.location. A job that has sent nothing leaves the connector's offset as it was.",
        )
    plan = plan_and_choices(files)
    prefix = settings.topic_prefix if plan is None else plan[1].values.get(PREFIX, settings.topic_prefix)
    if prefix != settings.topic_prefix:
        raise ConfigError(
            f"{location} is the checkpoint of a job with topic.prefix {prefix}, not {settings.topic_prefix}",
            "Give the file of the connector that the job has taken over, or correct its checkpoint.location.",
        )
    planned = planned_end(files)
    if planned is not None and planned.job_id == end.job_id and planned.batch > end.batch:
        raise ConfigError(f"batch {planned.batch} of the job is planned, and perhaps sent in part", RUN_AGAIN)
    if end.stream.open_gtid:
        raise ConfigError(f"the job has sent a part of the transaction {end.stream.open_gtid}", RUN_AGAIN)
    if end.prepared or end.sought:
        names = ", ".join((*(each.xid for each in end.prepared), *end.sought))
        raise ConfigError(
            f"XA transactions were prepared where the job stopped: {shorten(names)}",
            "XA COMMIT or XA ROLLBACK them while the job runs, stop the job, and try again.",
        )
    if end.seam:
        raise ConfigError("the job has not passed what the connector had sent before the take-over", RUN_AGAIN)
    if is_unrepaired(end):
        raise ConfigError(
            "the job has not sent all changes of a gap in the binlog, and the connector cannot send them",
            "Start the job (incsnap run), wait until `incsnap status` says that the tables were compared and no"
            " snapshot is under way, stop the job, and try again.",
        )
    if asked := files.read_json(asked_place.FILE):
        raise ConfigError(
            f"signal {asked['id']} (set-binlog-position) asks for another place, at which the next start begins",
            f"{RUN_AGAIN} Or delete {files.path(asked_place.FILE)}: then the connector continues where the job has"
            " stopped.",
        )
    return end

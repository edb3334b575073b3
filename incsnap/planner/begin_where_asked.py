"""The new beginning of a job at the place that a `set-binlog-position` signal has asked for.

The new job begins in the same checkpoint, as behind a gap (`begin_again`), and reads no tables. It keeps the positions
of the signal channels and what is left of snapshots. If the old job had a gap to close (`gap_lists`), the new job
compares all tables again: it is behind another place.
"""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import replace

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import begin_again_at, finish_beginning_again
from incsnap.checkpoint.gap_files import GapFiles
from incsnap.config.settings import Settings, StartPlace
from incsnap.errors import ConfigError, shorten
from incsnap.gtid import GtidSet
from incsnap.mysql.session import connect
from incsnap.mysql.start_place import require_sendable
from incsnap.planner.asked_place import CHANNEL, FILE
from incsnap.planner.begin_again import another_job, last_known
from incsnap.planner.gap_lists import is_unrepaired, open_positions
from incsnap.planner.kafka_state import fence_others

log = logging.getLogger(__name__)

#: Rows of the signal table that an offset remembers.
_MOST_ROWS = 32
_NAME_ANOTHER = "Name a later place; or signal execute-snapshot for what was missed."


def begin_again_where_asked(settings: Settings, root: str) -> None:
    """Begin the job again at the place that a signal has asked for, if there is one.

    Call this before Spark starts. `root` is incsnap's part of the checkpoint. Raise ServerUnreachable or SinkError if
    MySQL or Kafka fails. Raise OffsetError if an offset in the checkpoint cannot be loaded.
    """
    location = settings.checkpoint_location.rstrip("/")
    files = Files(root)
    finish_beginning_again(Files(location), files)
    asked = files.read_json(FILE)
    newest = last_known(location, root)
    if asked is None or newest is None:
        return
    name, before = str(asked["id"]), GtidSet.parse(asked["gtids"])
    try:
        with closing(connect(settings.mysql)) as connection:
            require_sendable(connection, before, f"the place of signal {name}", _NAME_ANOTHER)
    except ConfigError as error:
        log.warning("Signal %s cannot be obeyed any more: %s. The job goes on where it was.", name, error.message)
        files.delete(FILE)
        return
    reads_nothing = settings.model_copy(update={"snapshot": settings.snapshot.model_copy(update={"mode": "no_data"})})
    job = another_job(reads_nothing, newest, StartPlace(gtid_set=str(before)))
    rows = [*newest.signal_positions.get(CHANNEL, ()), *([asked["row"]] if asked["row"] else [])]
    if rows:
        job = replace(job, signal_positions={**job.signal_positions, CHANNEL: rows[-_MOST_ROWS:]})
    compares = is_unrepaired(newest)
    if compares:
        job = replace(job, signal_positions={**job.signal_positions, **open_positions()})
    fence_others(settings, job.layout.buckets)
    if compares:
        GapFiles(files, job.job_id).open(before)
    begin_again_at(Files(location), files, job)
    GapFiles(files, newest.job_id).forget()
    files.delete(FILE)
    log.warning(
        "Signal %s (set-binlog-position): the job begins again after the transactions %s%s",
        name,
        shorten(before) or "none",
        ". It compares all tables with their topics again, because a gap was not repaired yet" if compares else "",
    )

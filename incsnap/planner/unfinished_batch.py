"""The check of a batch that was planned and not finished, if settings have changed since.

Settings decide which events a batch has, to which topics the events go and in which bucket each record is. If the batch
was repeated under other settings, a record could move from a bucket that has not committed into a bucket that has, and
be lost. So these settings are written down with the plan.

If settings have changed and no bucket has sent anything of the batch, its plan is deleted and the batch is planned
again. If a bucket has sent something, the start is refused.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.offsets import QueueFiles
from incsnap.checkpoint.planned_batch import PlannedWith, forget_plan, plan_and_choices
from incsnap.checkpoint.refused import RefusedRecords
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.kafka.announcements import OwnStart
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.transaction import BucketWriter
from incsnap.planner.choices import PREFIX, changes_since
from incsnap.snapshot.offset import Offset, digest

_log = logging.getLogger(__name__)


def take_back(settings: Settings, root: str, start: OwnStart | None = None) -> None:
    """Delete the plan of the newest batch if settings have changed since and nothing of the batch was sent.

    Call this before Spark starts. `root` is incsnap's part of the checkpoint. `start` is the start that asks. Raise
    ConfigError if the job must go on with its earlier settings. Raise SinkError if Kafka cannot be asked.
    """
    files, spark = Files(root), Files(settings.checkpoint_location.rstrip("/") + "/spark")
    planned = plan_and_choices(files)
    if planned is None:
        return
    plan, planned_with = planned
    prefix = planned_with.values.get(PREFIX, settings.topic_prefix)
    if prefix != settings.topic_prefix:
        raise ConfigError(
            f"{settings.checkpoint_location} is the checkpoint of a job with topic.prefix {prefix}",
            "Set topic.prefix as it was, or give the job a checkpoint.location of its own.",
        )
    changes = _changes(settings, plan, planned_with)
    if not changes:
        return
    end = Offset.load(plan, QueueFiles(files))
    numbers = sorted(int(name) for name in spark.names("offsets") if name.isdecimal())
    newest = numbers[-1] if numbers else -1
    logged = _logged(spark, newest, files)
    if logged is not None and logged.batch >= end.batch and spark.exists(f"commits/{newest}"):
        # The batch is done; only the next batch could be damaged.
        _refuse_open_transaction(logged, changes)
        return
    _refuse_where_sent(settings, plan, end, changes, start)
    if logged is not None and logged.batch == end.batch:
        spark.delete(f"offsets/.{newest}.crc")
        spark.delete(f"offsets/{newest}")
        logged = _logged(spark, newest - 1, files)
    _log.warning("batch %d, of which nothing was sent, is planned again with the new settings", end.batch)
    _refuse_open_transaction(logged, changes)
    RefusedRecords(files).forget(end.batch)
    # Delete the plan last: if this is cut short before, the next start does all of it again.
    forget_plan(files)


def refuse_inside_of_transaction(settings: Settings, root: str, begin: Offset) -> None:
    """Raise ConfigError if settings have changed and the DataFrame's next batch begins or ends inside a transaction.

    `take_back` cannot help a DataFrame: only its user's query knows whether it has used the batch. The query goes on
    after `begin`, and perhaps repeats the batch that is planned there. `root` is incsnap's part of the checkpoint.
    """
    files = Files(root)
    planned = plan_and_choices(files)
    if planned is None or planned[0].get("job_id") != begin.job_id:
        return
    if changes := _changes(settings, *planned):
        for offset in (begin, Offset.load(planned[0], QueueFiles(files))):
            _refuse_open_transaction(offset, changes)


def _changes(settings: Settings, plan: dict[str, Any], planned_with: PlannedWith) -> str:
    """Return which settings have changed since the batch was planned, and the release that planned it; "" if none has
    changed.

    `plan` is the batch's end as Spark has it.
    """
    changes = changes_since(planned_with, settings)
    number = planned_with.release
    release = f"incsnap {number}" if number else "an older release of incsnap"
    return f"{changes}. It was planned by {release} (offsets of version {plan.get('version')})" if changes else ""


def _refuse_where_sent(
    settings: Settings, plan: dict[str, Any], end: Offset, changes: str, start: OwnStart | None
) -> None:
    """Raise ConfigError if a bucket has sent its share of the batch that ends at `end`."""
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    writer = BucketWriter(client, settings.topic_prefix, end.job_id, start)
    if any(_sent(writer, bucket, plan) for bucket in range(end.layout.buckets)):
        raise ConfigError(
            f"batch {end.batch} was cut short when a part of it had been sent, and must be finished with the"
            f" settings it was planned with; since then have changed: {changes}",
            "Change them back, start, stop when the batch is done (a clean stop waits for it), then change them."
            " If you did not change them, let the release that planned the batch finish it: start it, and stop it"
            " cleanly.",
        )


def _refuse_open_transaction(offset: Offset | None, changes: str) -> None:
    """Raise ConfigError if the offset lies inside a transaction.

    The rest of the transaction is found by the number of its earlier events of captured tables, and other settings
    capture other tables.
    """
    if offset is None or not offset.stream.open_gtid:
        return
    raise ConfigError(
        f"a part of the transaction {offset.stream.open_gtid} has been sent, and its rest must be sent with the same"
        f" settings; since then have changed: {changes}",
        "Change them back, start, and change them when that transaction is sent. If you did not change them, let the"
        " release that planned it finish it: start it, and stop it cleanly.",
    )


def _sent(writer: BucketWriter, bucket: int, plan: dict[str, Any]) -> bool:
    """Whether the bucket has sent the batch. Ask as a sink task does: this fences a producer that is still writing."""
    transaction = writer.open(bucket, int(plan["batch"]), digest(plan))
    if transaction is None:
        return True
    transaction.abort()
    return False


def _logged(spark: Files, number: int, files: Files) -> Offset | None:
    """Return the offset with this number in Spark's log; None if it is not there."""
    content = spark.read(f"offsets/{number}") if number >= 0 else None
    if content is None:
        return None
    return Offset.load(json.loads(content.to_pybytes().decode().splitlines()[-1]), QueueFiles(files))

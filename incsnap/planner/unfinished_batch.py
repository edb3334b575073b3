"""A batch that is to be repeated under other settings than it was planned with.

Which events it has, to which topics they go and in which bucket each is follows from settings. Repeated under others, a
record could move from a bucket that has not committed into one that has, and be lost. So what matters is written down
with the plan. Where settings have changed and no bucket has sent anything of the batch, its plan is taken back, and
what it began with is planned anew; where some have, the start is refused.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass
from typing import Any

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.offsets import QueueFiles
from incsnap.checkpoint.planned import forget_plan, plan_and_choices
from incsnap.checkpoint.refused import RefusedRecords
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.transaction import BucketWriter
from incsnap.snapshot.offset import Offset, digest

_log = logging.getLogger(__name__)
_PREFIX = "topic.prefix"
#: Longer ones are told from each other by a digest; so are all that may hold a secret (the salt of a mask).
_SHOWN = 60


def choices(settings: Settings) -> dict[str, str]:
    """What decides on a batch's events, topics and keys, by the properties that say it."""
    source = "source" in settings.signals.channels
    notified = "sink" in settings.notifications.channels
    by_property = {
        _PREFIX: settings.topic_prefix,
        "topic.delimiter": settings.topic_delimiter,
        "signal.data.collection": str(settings.signals.data_collection or "") if source else "",
        "provide.transaction.metadata, topic.transaction": (
            settings.transaction_topic if settings.transaction_metadata else ""
        ),
        "notification.sink.topic.name": (settings.notifications.sink_topic or "") if notified else "",
        "key.converter, schema.name.adjustment.mode": _keys(settings),
        "database, table include and exclude lists": settings.tables.model_dump_json(),
        "transforms, predicates": ", ".join(map(repr, settings.transforms)),
        "handling modes": settings.model_dump_json(include={"modes"}, exclude={"modes": {"json_decimals"}}),
    }
    # What schemas show of columns moves no record to another bucket, and releases before it did not write it down.
    columns = settings.model_dump_json(
        include={"columns"}, exclude={"columns": {"typed", "typed_as", "comments"}}, context={"reveal": True}
    )
    shown = {name: value if len(value) <= _SHOWN else _hash(value) for name, value in by_property.items()}
    return {**shown, "message.key.columns, column lists and masks": _hash(columns)}


def _keys(settings: Settings) -> str:
    """Decimals as base64 are what there was before the format was a choice."""
    key = settings.formats.key
    numeric = " numeric" if key.decimals != "base64" else ""
    return f"{key} {settings.formats.schema_names}{numeric}"


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """The newest batch as it was planned. ``plan``: its end as Spark has it; ``planned_with``: see ``choices``."""

    plan: dict[str, Any]
    planned_with: dict[str, str]

    @classmethod
    def read(cls, files: Files) -> _Unfinished | None:
        """What is on the disk; None where there is no plan, or where nobody wrote down what it was planned with."""
        plan_with = plan_and_choices(files)
        return cls(*plan_with) if plan_with is not None else None

    def changes(self, settings: Settings) -> str:
        """What has changed in the settings since it was planned, for people; "" where nothing has."""
        chosen = choices(settings)
        return "; ".join(
            f"{name} (was {before or 'none'}, is {chosen.get(name) or 'none'})"
            for name, before in self.planned_with.items()
            if chosen.get(name) != before
        )


def take_back(settings: Settings, root: str) -> None:
    """Before Spark starts: takes the newest batch's plan back where settings have changed since and nothing of it was
    sent. ``root``: of incsnap's part of the checkpoint. Raises ``ConfigError`` where the job must go on with the
    settings it had; ``SinkError`` where Kafka cannot be asked."""
    files, spark = Files(root), Files(settings.checkpoint_location.rstrip("/") + "/spark")
    unfinished = _Unfinished.read(files)
    if unfinished is None:
        return
    prefix = unfinished.planned_with.get(_PREFIX, settings.topic_prefix)
    if prefix != settings.topic_prefix:
        raise ConfigError(
            f"{settings.checkpoint_location} is the checkpoint of a job with topic.prefix {prefix}",
            "Set topic.prefix as it was, or give the job a checkpoint.location of its own.",
        )
    changes = unfinished.changes(settings)
    if not changes:
        return
    end = Offset.load(unfinished.plan, QueueFiles(files))
    numbers = sorted(int(name) for name in spark.names("offsets") if name.isdecimal())
    newest = numbers[-1] if numbers else -1
    logged = _logged(spark, newest, files)
    if logged is not None and logged.batch >= end.batch and spark.exists(f"commits/{newest}"):
        _refuse_open_transaction(logged, changes)  # the batch is done: only the next one could suffer
        return
    _refuse_where_sent(settings, unfinished.plan, end, changes)
    if logged is not None and logged.batch == end.batch:
        spark.delete(f"offsets/.{newest}.crc")
        spark.delete(f"offsets/{newest}")
        logged = _logged(spark, newest - 1, files)
    _log.warning("batch %d, of which nothing was sent, is planned again with the new settings", end.batch)
    _refuse_open_transaction(logged, changes)
    RefusedRecords(files).forget(end.batch)
    # The plan goes last: cut short before that, the same is done again.
    forget_plan(files)


def refuse_inside_of_transaction(settings: Settings, root: str, begin: Offset) -> None:
    """For a DataFrame, of which nobody here knows what its query has done: it goes on behind ``begin``, be it with a
    batch that is repeated. Raises ``ConfigError`` as ``take_back``, where either end of that batch cuts a transaction
    in two."""
    files = Files(root)
    unfinished = _Unfinished.read(files)
    if unfinished is None or unfinished.plan.get("job_id") != begin.job_id:
        return
    changes = unfinished.changes(settings)
    if changes:
        _refuse_open_transaction(begin, changes)
        _refuse_open_transaction(Offset.load(unfinished.plan, QueueFiles(files)), changes)


def _refuse_where_sent(settings: Settings, plan: dict[str, Any], end: Offset, changes: str) -> None:
    """Raises ``ConfigError`` where a bucket has sent its share of the batch that ends at ``end``."""
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    writer = BucketWriter(client, settings.topic_prefix, end.job_id)
    if any(_sent(writer, bucket, plan) for bucket in range(end.layout.buckets)):
        raise ConfigError(
            f"batch {end.batch} was cut short when a part of it had been sent, and must be finished with the"
            f" settings it was planned with; since then have changed: {changes}",
            "Change them back, start, stop when the batch is done (a clean stop waits for it), then change them.",
        )


def _refuse_open_transaction(offset: Offset | None, changes: str) -> None:
    """Raises ``ConfigError`` where the offset cuts a transaction in two: its rest is found by how many events of
    captured tables came before it, and other settings capture others."""
    if offset is None or not offset.stream.open_gtid:
        return
    raise ConfigError(
        f"a part of the transaction {offset.stream.open_gtid} has been sent, and its rest must be sent with the same"
        f" settings; since then have changed: {changes}",
        "Change them back, start, and change them when that transaction is sent.",
    )


def _sent(writer: BucketWriter, bucket: int, plan: dict[str, Any]) -> bool:
    """Asked as a task asks: whoever is still writing is fenced off first."""
    transaction = writer.open(bucket, int(plan["batch"]), digest(plan))
    if transaction is None:
        return True
    transaction.abort()
    return False


def _logged(spark: Files, number: int, files: Files) -> Offset | None:
    content = spark.read(f"offsets/{number}") if number >= 0 else None
    if content is None:
        return None
    return Offset.load(json.loads(content.to_pybytes().decode().splitlines()[-1]), QueueFiles(files))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]

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
from typing import Any

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.offsets import QueueFiles
from incsnap.checkpoint.planned import forget_plan, plan_and_choices
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


def take_back(settings: Settings, root: str) -> None:
    """Before Spark starts. ``root``: of incsnap's part of the checkpoint. Raises ``ConfigError`` where the job must go
    on with the settings it had; ``SinkError`` where Kafka cannot be asked."""
    files, spark = Files(root), Files(settings.checkpoint_location.rstrip("/") + "/spark")
    unfinished = plan_and_choices(files)
    if unfinished is None:
        return
    plan, before = unfinished
    chosen = choices(settings)
    if before.get(_PREFIX, settings.topic_prefix) != settings.topic_prefix:
        raise ConfigError(
            f"{settings.checkpoint_location} is the checkpoint of a job with topic.prefix {before[_PREFIX]}",
            "Set topic.prefix as it was, or give the job a checkpoint.location of its own.",
        )
    changed = [name for name, value in before.items() if chosen.get(name) != value]
    if not changed:
        return
    end = Offset.load(plan, QueueFiles(files))
    numbers = sorted(int(name) for name in spark.names("offsets") if name.isdecimal())
    newest = numbers[-1] if numbers else -1
    logged = _logged(spark, newest, files)
    done = logged is not None and logged.batch >= end.batch and spark.exists(f"commits/{newest}")
    if not done:
        writer = BucketWriter(
            ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer), settings.topic_prefix, end.job_id
        )
        if any(_sent(writer, bucket, plan) for bucket in range(end.layout.buckets)):
            raise ConfigError(
                f"batch {end.batch} was cut short when a part of it had been sent, and must be finished with the"
                f" settings it was planned with; since then have changed: {_changes_text(changed, before, chosen)}",
                "Change them back, start, stop when the batch is done (a clean stop waits for it), then change them.",
            )
        if logged is not None and logged.batch == end.batch:
            # The plan goes last: cut short here, the same is done again.
            spark.delete(f"offsets/.{newest}.crc")
            spark.delete(f"offsets/{newest}")
            logged = _logged(spark, newest - 1, files)
        _log.warning("batch %d, of which nothing was sent, is planned again with the new settings", end.batch)
    if logged is not None and logged.stream.open_gtid:
        raise _cut_by_change(logged.stream.open_gtid, _changes_text(changed, before, chosen))
    if not done:
        forget_plan(files)


def refuse_inside_of_transaction(settings: Settings, root: str, begin: Offset) -> None:
    """For a DataFrame, of which nobody here knows what its query has done: it goes on behind ``begin``, be it with a
    batch that is repeated. Raises ``ConfigError`` as ``take_back``, where either end of that batch cuts a transaction
    in two."""
    unfinished = plan_and_choices(Files(root))
    if unfinished is None or unfinished[0].get("job_id") != begin.job_id:
        return
    plan, before = unfinished
    chosen = choices(settings)
    changed = [name for name, value in before.items() if chosen.get(name) != value]
    open_gtid = begin.stream.open_gtid or Offset.load(plan, QueueFiles(Files(root))).stream.open_gtid
    if changed and open_gtid:
        raise _cut_by_change(open_gtid, _changes_text(changed, before, chosen))


def _cut_by_change(gtid: str, changes: str) -> ConfigError:
    """The error where a batch has cut a transaction in two: its rest is found by how many events of captured tables
    came before it, and other settings capture others."""
    return ConfigError(
        f"a part of the transaction {gtid} has been sent, and its rest must be sent with the same settings; since then"
        f" have changed: {changes}",
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


def _changes_text(changed: list[str], before: dict[str, str], chosen: dict[str, str]) -> str:
    return "; ".join(f"{each} (was {before[each] or 'none'}, is {chosen.get(each) or 'none'})" for each in changed)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]

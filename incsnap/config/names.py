"""Which settings there are: those incsnap obeys, and those of Debezium and Kafka Connect that mean nothing here.

A connector's file must work as it is, so the second kind is listed in one warning and never refused. A third kind would
change what is written (masked columns, other keys); leaving it out quietly could show what must stay hidden, so
it is refused by name until it is obeyed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


def words(text: str) -> frozenset[str]:
    """The words of ``text``: long lists read better than as literals."""
    return frozenset(text.split())


OBEYED = words(
    """
    database.hostname database.port database.user database.password database.server.id database.ssl.mode
    database.ssl.truststore database.ssl.keystore database.ssl.keystore.password connect.timeout.ms
    topic.prefix topic.delimiter database.include.list database.exclude.list table.include.list table.exclude.list
    snapshot.mode signal.enabled.channels signal.data.collection signal.kafka.topic signal.kafka.bootstrap.servers
    signal.kafka.groupId signal.file signal.poll.interval.ms read.only incremental.snapshot.chunk.size
    snapshot.max.threads max.batch.size max.queue.size.in.bytes decimal.handling.mode bigint.unsigned.handling.mode
    time.precision.mode binary.handling.mode tombstones.on.delete notification.enabled.channels
    notification.sink.topic.name topic.creation.default.partitions
    topic.creation.default.replication.factor bootstrap.servers key.converter value.converter
    key.converter.schemas.enable value.converter.schemas.enable skipped.operations errors.max.retries
    errors.retry.delay.initial.ms errors.retry.delay.max.ms checkpoint.location
    """
)
OBEYED_PREFIXES = ("producer.", "signal.consumer.", "spark.", "topic.creation.default.")

#: They change the content of the records. ``column.mask.hash.v2.SHA-256.with.salt.x`` is why some are prefixes.
NOT_YET = {
    "column.include.list": "columns cannot be chosen yet",
    "column.exclude.list": "columns cannot be left out yet",
    "column.mask.": "columns cannot be masked yet",
    "column.truncate.": "columns cannot be cut yet",
    "message.key.columns": "the key of a record is the primary key of its table; other keys cannot be chosen yet",
}

ELSEWHERE = words(
    """
    name connector.class tasks.max config.action.reload header.converter errors.tolerance errors.log.enable
    errors.log.include.messages errors.retry.timeout exactly.once.support
    transaction.boundary transaction.boundary.interval.ms predicates transforms topic.creation.groups
    topic.creation.enable plugin.path group.id converters custom.metric.tags
    database.initial.statements database.query.timeout.ms database.jdbc.driver database.connectionTimeZone
    database.serverTimezone database.history database.ssl.truststore.password database.server.name
    connect.keep.alive connect.keep.alive.interval.ms connect.keep.alive.read.timeout.ms use.nongraceful.disconnect
    table.ignore.builtin gtid.source.includes gtid.source.excludes gtid.source.filter.dml.events
    min.row.count.to.stream.results binlog.buffer.size enable.time.adjuster event.deserialization.failure.handling.mode
    event.processing.failure.handling.mode event.converting.failure.handling.mode inconsistent.schema.handling.mode
    include.schema.changes include.schema.comments include.query provide.transaction.metadata
    skip.messages.without.change max.queue.size poll.interval.ms query.fetch.size
    snapshot.locking.mode snapshot.locking.mode.custom.name snapshot.query.mode snapshot.query.mode.custom.name
    snapshot.mode.custom.name snapshot.new.tables snapshot.delay.ms snapshot.fetch.size snapshot.lock.timeout.ms
    snapshot.include.collection.list snapshot.select.statement.overrides snapshot.tables.order.by.row.count
    snapshot.max.threads.multiplier legacy.snapshot.max.threads streaming.delay.ms
    incremental.snapshot.allow.schema.changes incremental.snapshot.watermarking.strategy
    signal.kafka.poll.timeout.ms signal.emit.failure.max.retries signal.emit.failure.backoff.ms
    heartbeat.interval.ms
    heartbeat.action.query heartbeat.topics.prefix topic.heartbeat.prefix topic.heartbeat.name topic.transaction
    topic.naming.strategy topic.cache.size schema.name.adjustment.mode field.name.adjustment.mode
    sanitize.field.names source.struct.version internal.key.converter internal.value.converter
    unavailable.value.placeholder extended.headers.enabled retriable.restart.connector.wait.ms
    executor.shutdown.timeout.ms guardrail.collections.max guardrail.collections.limit.action
    post.processors transaction.metadata.factory async.engine.enable notification.log.level
    """
)
ELSEWHERE_PREFIXES = (
    "schema.history.internal",
    "database.history.",
    "transforms.",
    "predicates.",
    "offset.",
    "driver.",
    "internal.",
    "admin.",
    "consumer.",
    "snapshot.mode.configuration.based.",
    "snapshot.select.statement.overrides.",
    "column.propagate.source.type",
    "datatype.propagate.source.type",
    "openlineage.",
    "converters.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "topic.creation.",
    "topic.naming.",
    "post.processors.",
    "debezium.",
    "config.providers",
    "post_processors.",
)


@dataclass(frozen=True, slots=True)
class Sorted:
    """The names of a file by what becomes of them. ``unknown`` holds (name, the name it may have been meant to be)."""

    elsewhere: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    unknown: tuple[tuple[str, str | None], ...]


def sort_names(names: Iterable[str]) -> Sorted:
    elsewhere: list[str] = []
    refused: list[tuple[str, str]] = []
    unknown: list[tuple[str, str | None]] = []
    for name in sorted(names):
        reason = next((why for start, why in NOT_YET.items() if name == start or _begins(name, start)), None)
        if reason is not None:
            refused.append((name, reason))
        elif name in OBEYED or name.startswith(OBEYED_PREFIXES):
            continue
        elif name in ELSEWHERE or name.startswith(ELSEWHERE_PREFIXES):
            elsewhere.append(name)
        else:
            unknown.append((name, meant(name)))
    return Sorted(tuple(elsewhere), tuple(refused), tuple(unknown))


def _begins(name: str, start: str) -> bool:
    return start.endswith(".") and name.startswith(start)


def meant(name: str) -> str | None:
    """The obeyed name closest to ``name``; ``None`` when none is close (0.8: one or two letters in twenty differ)."""
    found = difflib.get_close_matches(name.lower().replace("_", "."), OBEYED, n=1, cutoff=0.8)
    return found[0] if found else None

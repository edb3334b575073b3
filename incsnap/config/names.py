"""Which settings there are: those incsnap obeys, and those of Debezium and Kafka Connect that mean nothing here.

A connector's file must work as it is, so the second kind is listed in one warning and never refused.
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
    database.query.timeout.ms
    topic.prefix topic.delimiter database.include.list database.exclude.list table.include.list table.exclude.list
    snapshot.mode snapshot.mode.configuration.based.snapshot.data snapshot.mode.configuration.based.start.stream
    snapshot.mode.configuration.based.snapshot.on.data.error
    signal.enabled.channels signal.data.collection signal.kafka.topic signal.kafka.bootstrap.servers
    signal.kafka.groupId signal.file signal.poll.interval.ms read.only incremental.snapshot.chunk.size
    snapshot.max.threads max.batch.size max.queue.size.in.bytes decimal.handling.mode bigint.unsigned.handling.mode
    time.precision.mode binary.handling.mode tombstones.on.delete notification.enabled.channels
    notification.sink.topic.name topic.creation.groups topic.creation.default.partitions
    topic.creation.default.replication.factor bootstrap.servers key.converter value.converter
    skipped.operations provide.transaction.metadata topic.transaction include.query include.schema.changes
    include.schema.comments
    schema.name.adjustment.mode field.name.adjustment.mode sanitize.field.names topic.naming.strategy
    event.processing.failure.handling.mode event.converting.failure.handling.mode inconsistent.schema.handling.mode
    enable.time.adjuster column.include.list column.exclude.list message.key.columns errors.max.retries
    errors.retry.delay.initial.ms errors.retry.delay.max.ms checkpoint.location incsnap.latency.target.ms incsnap.ignore
    snapshot.include.collection.list snapshot.select.statement.overrides
    incsnap.start.gtid.set incsnap.start.binlog.file incsnap.start.binlog.position
    incsnap.snapshot.throttle.rows.per.second incsnap.snapshot.throttle.replica.lag.ms
    incsnap.snapshot.throttle.commit.latency.ms incsnap.snapshot.throttle.threads.running
    incsnap.snapshot.throttle.stream.lag.ms incsnap.snapshot.throttle.replicas
    poll.interval.ms
    incsnap.oversized.change.handling.mode incsnap.oversized.change.truncate.columns
    incsnap.oversized.change.dead.letter.topic
    incsnap.metrics.port incsnap.metrics.host incsnap.page.token incsnap.log.format
    transforms predicates converters skip.messages.without.change
    column.propagate.source.type datatype.propagate.source.type
    heartbeat.interval.ms heartbeat.action.query topic.heartbeat.prefix topic.heartbeat.name
    """
)
OBEYED_PREFIXES = (
    "producer.",
    "signal.consumer.",
    "spark.",
    "topic.creation.",
    "key.converter.",
    "value.converter.",
    "column.mask.",
    "column.truncate.",
    "transforms.",
    "predicates.",
    "snapshot.select.statement.overrides.",
)

ELSEWHERE = words(
    """
    snapshot.mode.configuration.based.snapshot.schema snapshot.mode.configuration.based.snapshot.on.schema.error
    name connector.class tasks.max config.action.reload header.converter errors.tolerance errors.log.enable
    errors.log.include.messages errors.retry.timeout exactly.once.support
    transaction.boundary transaction.boundary.interval.ms topic.creation.enable
    plugin.path group.id custom.metric.tags
    database.initial.statements database.jdbc.driver database.connectionTimeZone
    database.serverTimezone database.history database.ssl.truststore.password database.server.name
    database.allowPublicKeyRetrieval database.useSSL database.requireSSL database.verifyServerCertificate
    database.sslMode database.enabledTLSProtocols database.useUnicode database.characterEncoding
    database.zeroDateTimeBehavior database.tinyInt1isBit database.useCursorFetch database.tcpKeepAlive
    database.autoReconnect database.connectTimeout database.socketTimeout
    connect.keep.alive connect.keep.alive.interval.ms connect.keep.alive.read.timeout.ms use.nongraceful.disconnect
    table.ignore.builtin gtid.source.includes gtid.source.excludes gtid.source.filter.dml.events
    min.row.count.to.stream.results binlog.buffer.size event.deserialization.failure.handling.mode
    max.queue.size query.fetch.size
    snapshot.locking.mode snapshot.locking.mode.custom.name snapshot.query.mode snapshot.query.mode.custom.name
    snapshot.mode.custom.name snapshot.new.tables snapshot.delay.ms snapshot.fetch.size snapshot.lock.timeout.ms
    snapshot.tables.order.by.row.count
    snapshot.max.threads.multiplier legacy.snapshot.max.threads streaming.delay.ms
    incremental.snapshot.allow.schema.changes incremental.snapshot.watermarking.strategy
    signal.kafka.poll.timeout.ms signal.emit.failure.max.retries signal.emit.failure.backoff.ms
    heartbeat.topics.prefix
    topic.cache.size source.struct.version internal.key.converter internal.value.converter
    unavailable.value.placeholder extended.headers.enabled retriable.restart.connector.wait.ms
    executor.shutdown.timeout.ms guardrail.collections.max guardrail.collections.limit.action
    advanced.metrics.enable binlog.net.read.timeout binlog.net.write.timeout connection.validation.timeout.ms
    custom.retriable.exception custom.sanitize.pattern database.protocol ddl.parser.type gtid.ignore.on.recovery
    log.position.check.enable poll.dispatch.interval.ms queue.provider.type statistics.metrics.enabled
    database.whitelist database.blacklist table.whitelist table.blacklist column.whitelist column.blacklist
    post.processors transaction.metadata.factory sourceinfo.struct.maker database.server.id.offset
    topic.regex topic.replacement topic.key.enforce.uniqueness topic.key.field.name topic.key.field.regex
    topic.key.field.replacement async.engine.enable notification.log.level
    """
)
ELSEWHERE_PREFIXES = (
    "schema.history.internal",
    "database.history.",
    "offset.",
    "driver.",
    "errors.deadletterqueue.",
    "database.connection.",
    "internal.",
    "admin.",
    "consumer.",
    "openlineage.",
    "header.converter.",
    "post.processors.",
    "debezium.",
    "config.providers",
    "post_processors.",
)


@dataclass(frozen=True, slots=True)
class Sorted:
    """The names of a file by what becomes of them. ``unknown`` holds (name, the name it may have been meant to be)."""

    elsewhere: tuple[str, ...]
    unknown: tuple[tuple[str, str | None], ...]


def sort_names(names: Iterable[str], converters: Iterable[str] = ()) -> Sorted:
    """``converters``: names of which those of their settings begin."""
    obeyed = (*OBEYED_PREFIXES, *(f"{name}." for name in converters))
    elsewhere: list[str] = []
    unknown: list[tuple[str, str | None]] = []
    for name in sorted(names):
        if name in ELSEWHERE:
            elsewhere.append(name)
        elif name in OBEYED or name.startswith(obeyed):
            continue
        elif name.startswith(ELSEWHERE_PREFIXES):
            elsewhere.append(name)
        else:
            unknown.append((name, meant(name)))
    return Sorted(tuple(elsewhere), tuple(unknown))


def meant(name: str) -> str | None:
    """The obeyed name closest to ``name``; ``None`` when none is close (0.8: one or two letters in twenty differ)."""
    matches = difflib.get_close_matches(name.lower().replace("_", "."), OBEYED, n=1, cutoff=0.8)
    return matches[0] if matches else None

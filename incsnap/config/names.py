"""The names of settings of Debezium and Kafka Connect that have no effect here, and what an unknown name may mean.

A connector's file must work unchanged. So these settings are listed in one warning and not refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from incsnap.config.declarations import PREFIXES, SETTINGS


def words(text: str) -> frozenset[str]:
    """Return the words of `text`. A long list is easier to read as text than as literals."""
    return frozenset(text.split())


WITHOUT_EFFECT = words(
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
    unavailable.value.placeholder  retriable.restart.connector.wait.ms
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
_WITHOUT_EFFECT_PREFIXES = tuple(
    words(
        """
        schema.history.internal database.history. offset. driver. errors.deadletterqueue. database.connection.
        internal. admin. consumer. openlineage. header.converter. post.processors. post_processors. debezium.
        config.providers
        """
    )
)


@dataclass(frozen=True, slots=True)
class UnusedNames:
    """Names of a file that incsnap does not obey."""

    foreign: tuple[str, ...]  #: names of Debezium or Kafka Connect that have no effect here
    unknown: tuple[tuple[str, str | None], ...]  #: unknown names, each with the obeyed name that may be meant, or None


def unused_names(names: Iterable[str], converters: Iterable[str] = ()) -> UnusedNames:
    """Return those of `names` that incsnap does not obey.

    Names that begin with one of `converters` and a dot are obeyed.
    """
    obeyed = (*PREFIXES, *(f"{name}." for name in converters))
    foreign: list[str] = []
    unknown: list[tuple[str, str | None]] = []
    for name in sorted(names):
        if name in WITHOUT_EFFECT:
            foreign.append(name)
        elif name in SETTINGS or name.startswith(obeyed):
            continue
        elif name.startswith(_WITHOUT_EFFECT_PREFIXES):
            foreign.append(name)
        else:
            unknown.append((name, meant(name)))
    return UnusedNames(tuple(foreign), tuple(unknown))


def meant(name: str) -> str | None:
    """Return the obeyed name closest to `name`, or None if none is close.

    The cutoff of 0.8 allows one or two wrong letters in twenty.
    """
    matches = difflib.get_close_matches(name.lower().replace("_", "."), SETTINGS, n=1, cutoff=0.8)
    return matches[0] if matches else None

"""A test that incsnap knows every setting in Debezium 3.6's documentation of the MySQL connector, obeyed or not."""

from __future__ import annotations

import pytest

from incsnap.config.names import unused_names, words

#: Of the connector, its topics, heartbeats, signals and notifications; and what its configuration classes read besides.
DOCUMENTED = words(
    """
    advanced.metrics.enable bigint.unsigned.handling.mode binary.handling.mode binlog.buffer.size
    binlog.net.read.timeout binlog.net.write.timeout column.exclude.list column.include.list
    column.mask.hash.SHA-256.with.salt.x column.mask.hash.v2.SHA-256.with.salt.x column.mask.with.8.chars
    column.propagate.source.type column.truncate.to.8.chars connect.keep.alive connect.keep.alive.interval.ms
    connect.timeout.ms connection.validation.timeout.ms connector.class converters custom.metric.tags
    custom.retriable.exception custom.sanitize.pattern database.connection.factory.class database.exclude.list
    database.hostname database.include.list database.initial.statements database.jdbc.driver database.password
    database.port database.protocol database.query.timeout.ms database.server.id database.ssl.keystore
    database.ssl.keystore.password database.ssl.mode database.ssl.truststore database.ssl.truststore.password
    database.user datatype.propagate.source.type ddl.parser.type decimal.handling.mode enable.time.adjuster
    errors.max.retries errors.retry.delay.initial.ms errors.retry.delay.max.ms
    event.converting.failure.handling.mode event.deserialization.failure.handling.mode
    event.processing.failure.handling.mode executor.shutdown.timeout.ms extended.headers.enabled
    field.name.adjustment.mode gtid.ignore.on.recovery gtid.source.excludes gtid.source.includes
    guardrail.collections.limit.action guardrail.collections.max heartbeat.action.query heartbeat.interval.ms
    include.query include.schema.changes include.schema.comments inconsistent.schema.handling.mode
    incremental.snapshot.allow.schema.changes incremental.snapshot.chunk.size
    incremental.snapshot.watermarking.strategy legacy.snapshot.max.threads log.position.check.enable max.batch.size
    max.queue.size max.queue.size.in.bytes message.key.columns min.row.count.to.stream.results name
    notification.enabled.channels notification.sink.topic.name poll.dispatch.interval.ms poll.interval.ms
    post.processors provide.transaction.metadata queue.provider.type read.only retriable.restart.connector.wait.ms
    schema.history.internal schema.history.internal.kafka.bootstrap.servers
    schema.history.internal.kafka.topic schema.history.internal.skip.unparseable.ddl
    schema.history.internal.store.only.captured.databases.ddl schema.history.internal.store.only.captured.tables.ddl
    schema.name.adjustment.mode signal.data.collection signal.emit.failure.backoff.ms
    signal.emit.failure.max.retries signal.enabled.channels signal.file signal.kafka.bootstrap.servers
    signal.kafka.groupId signal.kafka.poll.timeout.ms signal.kafka.topic signal.poll.interval.ms
    skip.messages.without.change skipped.operations snapshot.delay.ms snapshot.fetch.size
    snapshot.include.collection.list snapshot.lock.timeout.ms snapshot.locking.mode
    snapshot.locking.mode.custom.name snapshot.max.threads snapshot.max.threads.multiplier snapshot.mode
    snapshot.mode.configuration.based.snapshot.data snapshot.mode.configuration.based.snapshot.on.data.error
    snapshot.mode.configuration.based.snapshot.on.schema.error snapshot.mode.configuration.based.snapshot.schema
    snapshot.mode.configuration.based.start.stream snapshot.mode.custom.name snapshot.query.mode
    snapshot.query.mode.custom.name snapshot.select.statement.overrides snapshot.tables.order.by.row.count
    source.struct.version statistics.metrics.enabled streaming.delay.ms table.exclude.list table.ignore.builtin
    table.include.list tasks.max time.precision.mode tombstones.on.delete topic.cache.size
    topic.creation.default.partitions topic.creation.default.replication.factor topic.creation.enable
    topic.creation.groups topic.delimiter topic.heartbeat.name topic.heartbeat.prefix topic.naming.strategy
    topic.prefix topic.transaction transaction.metadata.factory unavailable.value.placeholder
    use.nongraceful.disconnect
    """
)


#: Of the JDBC driver, which Debezium hands them over to, and of Kafka Connect: nearly every older file has some.
COMMON = words(
    """
    database.allowPublicKeyRetrieval database.useSSL database.characterEncoding database.useUnicode
    database.zeroDateTimeBehavior database.tinyInt1isBit errors.deadletterqueue.topic.name
    """
)


@pytest.mark.parametrize("name", sorted(DOCUMENTED | COMMON))
def test_a_documented_setting_is_known(name: str) -> None:
    assert unused_names([name]).unknown == ()

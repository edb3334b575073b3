"""Settings of Debezium and Kafka Connect that have no effect here, each with the reason.

`incsnap config` and docs/migrate-from-debezium.md show the reasons. `unsupported` refuses some of these settings if
their value asks for other records.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Reason -> names; `*` at the end of a name stands for any text.
_REASONS = {
    "It names the connector. Only MySQL's connector is taken.": "name connector.class",
    "incsnap is one process, not a task of Kafka Connect.": """
        tasks.max config.action.reload plugin.path group.id executor.shutdown.timeout.ms poll.dispatch.interval.ms
        async.engine.enable use.nongraceful.disconnect admin.* consumer.* topic.cache.size
    """,
    "Its providers are read from the file of the worker (`--worker`).": "config.providers*",
    "Records are always sent exactly once, in one transaction for each bucket and batch.": """
        exactly.once.support transaction.boundary transaction.boundary.interval.ms
    """,
    "The job keeps its place in `checkpoint.location`.": "offset.* internal.key.converter internal.value.converter",
    "There is no schema history: the binlog and the server describe the tables. `incsnap hand-back` reads it.": """
        schema.history.internal*
    """,
    "There is no schema history: the binlog and the server describe the tables.": """
        database.history database.history.* ddl.parser.type
        snapshot.mode.configuration.based.snapshot.schema snapshot.mode.configuration.based.snapshot.on.schema.error
    """,
    "A record that cannot be written stops the job, or is handled by `event.*.failure.handling.mode`.": """
        errors.tolerance errors.log.enable errors.log.include.messages errors.deadletterqueue.*
    """,
    "`errors.max.retries` and `errors.retry.delay.*` decide about retries.": """
        errors.retry.timeout retriable.restart.connector.wait.ms custom.retriable.exception
    """,
    "Missing topics are created as `topic.creation.*` says; `false` is refused.": "topic.creation.enable",
    "It is a setting of the Java driver. incsnap has another client of MySQL.": """
        database.jdbc.driver database.protocol driver.* database.connection.* database.connectionTimeZone
        database.serverTimezone database.allowPublicKeyRetrieval database.useSSL database.requireSSL
        database.verifyServerCertificate database.sslMode database.enabledTLSProtocols database.useUnicode
        database.characterEncoding database.zeroDateTimeBehavior database.tinyInt1isBit database.useCursorFetch
        database.tcpKeepAlive database.autoReconnect database.connectTimeout database.socketTimeout
        connection.validation.timeout.ms
    """,
    "Certificates are PEM files, which need no password.": "database.ssl.truststore.password",
    "Sessions have settings of their own, which the reading of rows needs.": "database.initial.statements",
    "The server sends a heartbeat while it is idle, and the job connects again if the heartbeat stays away.": """
        connect.keep.alive connect.keep.alive.interval.ms connect.keep.alive.read.timeout.ms binlog.net.read.timeout
        binlog.net.write.timeout
    """,
    "`database.server.id` is used as it is.": "database.server.id.offset",
    "The job goes on after the GTIDs that it has sent, from whichever server it reads.": """
        gtid.source.includes gtid.source.excludes gtid.source.filter.dml.events gtid.ignore.on.recovery
        gtid.new.channel.position log.position.check.enable
    """,
    "MySQL's own databases are never captured.": "table.ignore.builtin",
    "Bytes bound what is read ahead (`max.queue.size.in.bytes`).": """
        max.queue.size binlog.buffer.size queue.provider.type
    """,
    "A snapshot locks nothing and reads chunks by key.": """
        snapshot.locking.mode snapshot.locking.mode.custom.name snapshot.lock.timeout.ms snapshot.fetch.size
        query.fetch.size min.row.count.to.stream.results snapshot.max.threads.multiplier legacy.snapshot.max.threads
    """,
    "Rows are read by SELECTs of incsnap. Classes of Java do not run here.": """
        snapshot.query.mode snapshot.query.mode.custom.name snapshot.mode.custom.name
    """,
    "A snapshot runs beside the stream, so neither waits for the other.": "snapshot.delay.ms streaming.delay.ms",
    "The first snapshot begins tables in the order of `table.include.list`, whatever their rows.": (
        "snapshot.tables.order.by.row.count"
    ),
    "A changed table is always followed, and nothing is written to the signal table.": """
        incremental.snapshot.allow.schema.changes incremental.snapshot.watermarking.strategy
    """,
    "Channels have `signal.poll.interval.ms` and `notification.enabled.channels`.": """
        signal.kafka.poll.timeout.ms signal.emit.failure.max.retries signal.emit.failure.backoff.ms
        notification.log.level
    """,
    "Records have the one form of Debezium 3.": "source.struct.version unavailable.value.placeholder",
    "It names a Java class, which does not run here.": """
        header.converter header.converter.* post.processors post.processors.* post_processors.*
        transaction.metadata.factory sourceinfo.struct.maker
    """,
    "It belongs to a topic naming strategy that is refused. A `RegexRouter` gives topics other names.": """
        topic.regex topic.replacement topic.key.enforce.uniqueness topic.key.field.name topic.key.field.regex
        topic.key.field.replacement
    """,
    "All tables that the lists take are captured; `fail` with a limit is refused.": """
        guardrail.collections.max guardrail.collections.limit.action
    """,
    "incsnap has metrics and a log of its own.": """
        custom.metric.tags advanced.metrics.enable statistics.metrics.enabled openlineage.*
    """,
    "MySQL's connector has no such setting. `database.include.list` chooses databases.": """
        database.dbname database.names database.name
    """,
    "It is internal to Debezium.": "internal.*",
    "It is a name of Debezium Server. A connector's settings have no such prefix.": "debezium.*",
    "Debezium 3 does not have it. `incsnap config --fix` writes its present name.": """
        database.server.name heartbeat.topics.prefix event.deserialization.failure.handling.mode
        database.whitelist database.blacklist table.whitelist table.blacklist column.whitelist column.blacklist
    """,
}
#: Name -> reason. A name with `*` at its end stands for all names that begin so.
REASONS: Mapping[str, str] = {name: reason for reason, names in _REASONS.items() for name in names.split()}
#: Name -> reason for names that are obeyed in some cases; `*` at the beginning of a name stands for any text.
SOMETIMES: Mapping[str, str] = {
    "poll.interval.ms": "no effect, unless the checkpoint is in a bucket: batches follow each other at once.",
    "*.replace.null.with.default": "no effect. A NULL stays NULL, also in a column with a DEFAULT.",
    "heartbeat.action.query": "no effect without `heartbeat.interval.ms`, and with `read.only=true`.",
    "topic.creation.GROUP.*": "no effect if `topic.creation.groups` lacks the group.",
}
#: The whole names among them.
WITHOUT_EFFECT = frozenset(name for name in REASONS if not name.endswith("*"))
_PREFIXES = {name[:-1]: reason for name, reason in REASONS.items() if name.endswith("*")}


def reason_of(name: str) -> str:
    """Return why the setting `name` has no effect here, or "" if it is no such setting.

    >>> reason_of("offset.flush.interval.ms")
    'The job keeps its place in `checkpoint.location`.'
    """
    if name in WITHOUT_EFFECT:
        return REASONS[name]
    return next((reason for prefix, reason in _PREFIXES.items() if name.startswith(prefix)), "")

"""Declarations: Kafka, errors, batches, restarts, Spark, and how a job is watched."""

from __future__ import annotations

from incsnap.config.declarations.kinds import (
    COLUMNS,
    DURATION,
    HOST,
    SHARE,
    TEXT,
    TOKEN,
    TOPIC,
    described,
    one_of,
    whole,
)
from incsnap.config.declarations.setting import Setting

#: Values of incsnap.oversized.change.handling.mode.
FAIL, TRUNCATE, DEAD_LETTER = "fail", "truncate", "dead_letter"
#: Numbers of partitions and of replicas; -1 is the brokers' default.
PARTITIONS, REPLICATION = whole(-1, 100_000), whole(-1, 100)

# fmt: off
KAFKA = (
    Setting("topic.delimiter", TOPIC, ".", "Text between the parts of a topic's name."),
    Setting("topic.naming.strategy", described("a class"), "io.debezium.schema.DefaultTopicNamingStrategy",
            "What is written for characters that Kafka refuses.", see="names-of-topics"),
    Setting("topic.creation.default.partitions", PARTITIONS, "-1",
            "Partitions of topics that the job creates. -1: the brokers' default; 0 is refused."),
    Setting("topic.creation.default.replication.factor", REPLICATION, "-1",
            "Replicas of topics that the job creates. -1: the brokers' default; 0 is refused."),
    Setting("topic.creation.groups", described("a list of names"), "", "Further groups of topics.", "compacted",
            see="creation-of-topics"),
    Setting("topic.creation.*", TEXT, "", "Settings of a group, also Kafka's own settings of its topics.",
            r"topic.creation.compacted.include=shop\\.inventory\\..*"
            "\ntopic.creation.compacted.cleanup.policy=compact", see="creation-of-topics"),
    Setting("producer.*", TEXT, "", "Settings of the producer by a Java client's names or by librdkafka's.",
            "producer.max.request.size=16777216", see="the-producer"),
)

ERRORS = (
    Setting("event.processing.failure.handling.mode", one_of("fail", "warn", "skip", ignore="skip"), "fail",
            "A rows event that cannot be decoded: stop, leave it out and warn, or leave it out."),
    Setting("event.converting.failure.handling.mode", one_of("fail", "warn", "skip"), "warn",
            "A value that cannot be written: stop, write null and warn, or write null."),
    Setting("inconsistent.schema.handling.mode", one_of("fail", "warn", "skip", ignore="skip"), "fail",
            "A rows event that does not fit its table's definition, or has none.", see="binlog_row_metadataminimal"),
    Setting("incsnap.oversized.change.handling.mode", one_of(FAIL, TRUNCATE, DEAD_LETTER), FAIL,
            "A change that is too large for Kafka.", see="records-that-are-too-large-for-kafka"),
    Setting("incsnap.oversized.change.truncate.columns", COLUMNS, "", "Columns that `truncate` may cut. It needs some.",
            r"shop\\.docs\\.body"),
    Setting("incsnap.oversized.change.dead.letter.topic", TOPIC, "", "Topic of `dead_letter`.",
            "shop.incsnap-dead-letters",
            unset="`topic.prefix` and `incsnap-dead-letters`, joined by `topic.delimiter`"),
    Setting("incsnap.ignore", described("a list of settings"), "", "Unsupported settings that may have no effect.",
            "header.converter", see="refused-and-ignored-settings"),
)

RUNNING = (
    Setting("max.batch.size", whole(1), "", "Most changed rows of a batch. Small batches make the stream slow.",
            "2048", unset="by bytes (Debezium: 2048)", see="the-size-of-a-batch"),
    Setting("max.queue.size.in.bytes", whole(0), "67108864",
            "Most bytes of binlog that are read ahead. 0: the default.", see="the-size-of-a-batch"),
    Setting("poll.interval.ms", whole(0, 60_000), "", "Least time between batches, if the checkpoint is in a bucket.",
            "500", unset="`500` in a bucket", see="a-checkpoint-in-a-bucket"),
    Setting("errors.max.retries", whole(-1), "-1",
            "Most restarts after failures that may pass, and tries of a start. -1: no limit."),
    Setting("errors.retry.delay.initial.ms", whole(1), "300", "Pause before the first restart. It doubles each time."),
    Setting("errors.retry.delay.max.ms", whole(1), "10000", "Longest pause before a restart."),
    Setting("spark.*", TEXT, "", "Spark's own settings.", "spark.master=local[4,4]", see="memory-and-spark"),
    Setting("incsnap.spark.launch.mode", one_of("prestart", "plain"), "prestart",
            "Whether Spark starts while the servers are checked, or by SparkSession.builder.", see="the-start"),
)

WATCHING = (
    Setting("incsnap.metrics.port", whole(1, 65535), "", "Port of metrics, `/health`, `/ready` and the page.", "8088",
            unset="no port", see="monitoring.md"),
    Setting("incsnap.metrics.host", HOST, "127.0.0.1", "Address of this port.", "127.0.0.1"),
    Setting("incsnap.page.token", TOKEN, "", "Token of the page's buttons, which send signals.",
            "${env:INCSNAP_PAGE_TOKEN}", unset="no buttons", see="monitoring.md"),
    Setting("incsnap.status.group", TEXT, "",
            "Unix group that may read the status file, for `incsnap status`.", "operators",
            unset="the job's user alone", see="who-may-read-the-files-of-a-job"),
    Setting("custom.sanitize.pattern", TEXT, "",
            "Java regex of names of settings whose values are hidden wherever settings are shown.", ".*apikey.*",
            unset="passwords, tokens and the like alone", see="monitoring.md"),
    Setting("incsnap.verify.interval", DURATION, "", "How often the job compares its tables with its topics.", "1h",
            unset="never", see="verify.md"),
    Setting("incsnap.verify.sample", SHARE, "1/24", "Share of the keys that one comparison looks at.", "1/24",
            see="verify.md"),
    Setting("incsnap.log.format", one_of("text", "json"), "text", "Lines of the log.", see="exit-codes-and-logs"),
)
# fmt: on

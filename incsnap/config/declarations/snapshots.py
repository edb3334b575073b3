"""Declarations: where a job begins, snapshots, signals, notifications and heartbeats."""

from __future__ import annotations

from incsnap.config.declarations.kinds import (
    BROKERS,
    FLAG,
    GTIDS,
    MOMENT,
    REGEXES,
    REPLICAS,
    TEXT,
    TOPIC,
    described,
    one_of,
    some_of,
    whole,
)
from incsnap.config.declarations.setting import Setting
from incsnap.snapshot.throttle import setting_of
from signals.parse import THROTTLE_LIMITS

#: The values of `snapshot.mode` that a job knows. Others are replaced by one of them.
SNAPSHOT_MODES = ("initial", "initial_only", "when_needed", "when_needed_no_data", "always", "no_data", "recovery")
_PARTS = "snapshot.mode.configuration.based"
_OVERRIDES = "snapshot.select.statement.overrides"

# fmt: off
SNAPSHOTS = (
    Setting("snapshot.mode", described(f"one of: {', '.join((*SNAPSHOT_MODES, 'configuration_based'))}"), "initial",
            "Which existing rows a start reads, beside the stream. Debezium's older names work too.",
            see="what-a-start-reads"),
    Setting(f"{_PARTS}.snapshot.data", FLAG, "false", "Part of configuration_based.", see="configuration_based"),
    Setting(f"{_PARTS}.start.stream", FLAG, "false", "Part of configuration_based.", see="configuration_based"),
    Setting(f"{_PARTS}.snapshot.on.data.error", FLAG, "false", "Part of configuration_based, which refuses `true`.",
            see="configuration_based"),
    Setting("snapshot.include.collection.list", REGEXES, "",
            "Tables (`db.table`) that the snapshot of snapshot.mode reads.",
            r"inventory\\.(orders|customers)", unset="all captured tables"),
    Setting("snapshot.new.tables", one_of("off", "parallel"), "off",
            "Whether tables that the lists take later, and tables that are renamed into them, are read by a snapshot.",
            "parallel", see="new-tables"),
    Setting("incsnap.online.ddl.reread", one_of("never", "changed", "all"), "never",
            "Which ALTER TABLE has its table read again: none, one with values no consumer knows, or each of columns.",
            "changed", see="old-rows-behind-alter-table"),
    Setting("incsnap.gap.recovery", one_of("snapshot", "differences"), "snapshot",
            "What `when_needed` reads behind a gap in the binlog: all rows, or those that differ from the topics.",
            see="repair-behind-a-gap"),
    Setting(_OVERRIDES, described("a list of tables as database.table"), "",
            "Tables of which this snapshot reads some rows only.", "inventory.orders",
            see="select-statement-overrides"),
    Setting(f"{_OVERRIDES}.*", described("SELECT * FROM db.table WHERE ..."), "", "The SELECT of one table.",
            f"{_OVERRIDES}.inventory.orders=SELECT * FROM inventory.orders WHERE status <> 'archived'"),
    Setting("incsnap.start.gtid.set", GTIDS, "", "A new job begins after these transactions.",
            "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-2047", unset="the end of the binlog",
            see="a-start-from-a-given-place"),
    Setting("incsnap.start.binlog.file", TEXT, "",
            "A new job begins in this binlog file. Not with incsnap.start.gtid.set.", "binlog.000012",
            unset="the end of the binlog", see="a-start-from-a-given-place"),
    Setting("incsnap.start.binlog.position", whole(4), "4", "Byte of this file.", "4"),
    Setting("incsnap.start.at", MOMENT, "",
            "A new job begins with what was committed since. earliest: with the oldest event."
            " Not with other incsnap.start.*.", "2026-11-20T06:00:00Z",
            unset="the end of the binlog", see="a-start-from-a-given-place"),
    Setting("incremental.snapshot.chunk.size", whole(1, 10_000_000), "",
            "Rows of the first chunk, and of the largest one.", "10000",
            unset="by rows, bytes and time (Debezium: 1024)", see="chunks-and-their-pace"),
    Setting("snapshot.max.threads", whole(1, 1024), "", "Most chunks that are read at once, of all snapshots.",
            "2", unset="half of Spark's task slots (Debezium: 1)", see="chunks-and-their-pace"),
    Setting("incsnap.latency.target.ms", whole(1, 60_000), "250",
            "Latency that nine of ten changes may have beside a snapshot.", see="chunks-and-their-pace"),
    *(
        Setting(setting_of(name), whole(0, most), "0", f"{text} above which no new chunk is read. 0: no limit.",
                see="holding-snapshots-back")
        for (name, most), text in zip(THROTTLE_LIMITS.items(), (
            "Rows per second", "Lag of the slowest replica", "Duration of a COMMIT", "Threads_running of the server",
            "Age of the newest change"), strict=True)
    ),
    Setting("incsnap.snapshot.throttle.replicas", REPLICAS, "", "The replicas whose lag is measured.",
            "replica-1:3306,replica-2:3306", see="holding-snapshots-back"),
)

SIGNALS = (
    Setting("signal.enabled.channels", some_of("source", "kafka", "file", absent=("jmx", "in-process")), "source",
            "Channels that signals come by. jmx and in-process are left out with a warning.", see="signals"),
    Setting("signal.kafka.topic", TOPIC, "", "The signal topic. Its partition 0 is read.", "shop-signal",
            unset="`<topic.prefix>-signal`", see="the-signal-topic"),
    Setting("signal.kafka.bootstrap.servers", BROKERS, "", "Brokers of the signal topic.", "127.0.0.1:9092",
            unset="`bootstrap.servers`"),
    Setting("signal.kafka.groupId", TEXT, "kafka-signal", "Name of the consumer. The job's offset keeps the place."),
    Setting("signal.consumer.*", TEXT, "",
            "Settings of this consumer. It takes none of `producer.*`, so repeat TLS and SASL.",
            "signal.consumer.security.protocol=SSL", see="logins-to-kafka"),
    Setting("signal.file", TEXT, "file-signals.txt", "File of one JSON signal on each line. The job only reads it."),
    Setting("signal.poll.interval.ms", whole(1, 3_600_000), "100",
            "Time between two looks at topic and file (Debezium: 5000)."),
    Setting("read.only", FLAG, "false", "Forbid `heartbeat.action.query`, all that a job writes to MySQL.",
            see="writing-to-mysql"),
    Setting("notification.enabled.channels", some_of("sink", "log", absent=("jmx",)), "",
            "Channels of notifications. jmx is left out with a warning.", "sink,log", see="notifications"),
    Setting("notification.sink.topic.name", TOPIC, "", "Topic of the channel `sink`, which needs it.",
            "shop-notifications"),
    Setting("heartbeat.interval.ms", whole(0, 2**31 - 1), "0", "Time between two heartbeats. 0: none.",
            "10000", see="heartbeats"),
    Setting("heartbeat.action.query", described("SQL"), "", "Statement that is executed with each heartbeat.",
            "INSERT INTO inventory.heartbeat (id, at) VALUES (1, NOW()) ON DUPLICATE KEY UPDATE at = NOW()",
            see="writing-to-mysql"),
    Setting("topic.heartbeat.prefix", TOPIC, "__debezium-heartbeat",
            "First part of the heartbeat topic's name, before topic.prefix."),
    Setting("topic.heartbeat.name", TOPIC, "", "Whole name of the heartbeat topic.", "all-heartbeats",
            unset="prefix and `topic.prefix`, joined by `topic.delimiter`"),
    Setting("heartbeat.topic.name", TOPIC, "",
            "Another name of `topic.heartbeat.name`, from Debezium's release notes. `topic.heartbeat.name` goes first.",
            "all-heartbeats", unset="`topic.heartbeat.name`"),
)
# fmt: on

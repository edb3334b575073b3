"""The settings of a job as typed, immutable values. `load` reads them from a file.

`repr` and ordinary dumps hide secrets. Only `to_json` shows them, because Spark's workers need them.
"""

from __future__ import annotations

import os
from typing import Any

from pydantic import Field, SerializationInfo, SerializerFunctionWrapHandler, field_serializer

from incsnap.config.frozen import Frozen, of
from incsnap.config.job_file import StrPath
from incsnap.config.object_store import StoreAccess, same_bucket, store_access
from incsnap.config.patterns import TableFilter
from incsnap.config.secrets import Properties, Secret, revealing
from incsnap.config.servers import KafkaSettings, MySqlSettings, RegistrySettings
from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.tables import TableId
from incsnap.transforms.chain import Chain, asks_for_columns
from incsnap.types.modes import Modes
from signals.regex import any_matches


class SignalSettings(Frozen):
    """The channels of signals and where to find each."""

    channels: tuple[str, ...] = ("source",)  #: some of source, kafka and file
    data_collection: TableId | None = of("signal.data.collection")  #: the signal table; None: no table
    kafka_topic: str = ""
    kafka_bootstrap_servers: str = ""
    kafka_group_id: str = of("signal.kafka.groupId")
    consumer: Properties = Field(default_factory=dict, repr=False)  #: consumer settings with librdkafka's names
    file: str = of("signal.file")
    poll_interval_ms: int = of("signal.poll.interval.ms")


class SnapshotSettings(Frozen):
    """The rows that a job reads at its start, and how fast snapshots are read."""

    mode: str = of("snapshot.mode")  #: one of SNAPSHOT_MODES
    #: Java regexes of the tables that `snapshot.mode` reads at the start; empty: all captured tables
    include: tuple[str, ...] = of("snapshot.include.collection.list")
    new_tables: str = of(
        "snapshot.new.tables"
    )  #: `parallel`: tables that become captured are read; `off`: they are not
    #: `changed`: a table is read again behind an ALTER TABLE if old rows have values that consumers cannot know; `all`:
    #: behind each one that changes columns; `never`: not at all
    reread: str = of("incsnap.online.ddl.reread")
    #: `differences`: behind a gap in the binlog only rows that differ are read; `snapshot`: all rows are read
    gap_recovery: str = of("incsnap.gap.recovery")
    #: SQL condition for the rows of the first snapshot, by table
    conditions: dict[str, str] = Field(default_factory=dict)
    chunk_size: int | None = of("incremental.snapshot.chunk.size")  #: rows of a chunk; None: chosen by time and bytes
    threads: int | None = of("snapshot.max.threads")  #: chunks read at the same time; None: by Spark's cores
    latency_target_ms: int = of("incsnap.latency.target.ms")
    throttle: dict[str, int] = Field(default_factory=dict)  #: limits on reading by name (incsnap.snapshot.throttle)
    #: (host, port) of the replicas whose lag is measured
    throttle_replicas: tuple[tuple[str, int], ...] = of("incsnap.snapshot.throttle.replicas")

    @property
    def reads_at_start(self) -> bool:
        """Whether a new job begins with a snapshot."""
        return self.mode not in ("no_data", "when_needed_no_data", "recovery")

    @property
    def begins_again(self) -> bool:
        """Whether a job begins again if the server cannot continue from its offset."""
        return self.mode in ("when_needed", "when_needed_no_data")

    @property
    def compares_behind_a_gap(self) -> bool:
        """Whether a job that begins again sends what differs, and not all rows."""
        return self.mode == "when_needed" and self.gap_recovery == "differences"

    def included(self, table: TableId) -> bool:
        """Return True if the first snapshot reads the captured table `table`."""
        return not self.include or any_matches(self.include, str(table), ignore_case=True)

    def has_condition(self, table: TableId) -> bool:
        """Return True if a condition (`snapshot.select.statement.overrides`) chooses the rows of `table`."""
        return str(table).lower() in map(str.lower, self.conditions)


class StartPlace(Frozen):
    """The place in the binlog where a new job begins. By default it begins at the end of the binlog."""

    gtid_set: str | None = of("incsnap.start.gtid.set")  #: begin after these transactions; None: not given
    file: str = of("incsnap.start.binlog.file")  #: begin in this binlog file; "": not given
    position: int = of("incsnap.start.binlog.position")  #: byte in `file`
    #: begin with what was committed at this time or later, in µs since 1970; 0: with the oldest binlog; None: not given
    time_us: int | None = of("incsnap.start.at")

    @property
    def is_given(self) -> bool:
        """Whether the settings name a place."""
        return self.gtid_set is not None or bool(self.file) or self.time_us is not None


class TopicGroup(Frozen):
    """A group of topics with equal settings, from Kafka Connect's topic.creation.<name>.*."""

    name: str = "default"
    include: tuple[str, ...] = (".*",)  #: Java regexes of topic names
    exclude: tuple[str, ...] = ()  #: Java regexes of topic names
    partitions: int = -1  #: -1: the broker's default
    replication_factor: int = -1  #: -1: the broker's default
    #: further settings of the topics with Kafka's names, for example `cleanup.policy`
    config: dict[str, str] = Field(default_factory=dict)

    def takes(self, topic: str) -> bool:
        """Return True if the topic belongs to the group."""
        return any_matches(self.include, topic, ignore_case=False) and not any_matches(
            self.exclude, topic, ignore_case=False
        )


class TopicCreation(Frozen):
    """The groups of topics, and the group for all other topics."""

    groups: tuple[TopicGroup, ...] = ()  #: the first group that takes a topic is used
    default: TopicGroup = TopicGroup()  #: for topics that no group takes

    def group_of(self, topic: str) -> TopicGroup:
        """Return the group of `topic`."""
        return next((group for group in self.groups if group.takes(topic)), self.default)


class Formats(Frozen):
    """The formats of keys and values."""

    key: FormatChoice = FormatChoice()
    value: FormatChoice = FormatChoice()
    key_registry: RegistrySettings = RegistrySettings()  #: schema registry, if keys have the ids of schemas
    value_registry: RegistrySettings = RegistrySettings()  #: schema registry, if values have the ids of schemas
    schema_names: str = of("schema.name.adjustment.mode")

    @property
    def show_schemas(self) -> bool:
        """Whether records contain a schema or the id of one."""
        return any(choice.schemas or choice.is_registered for choice in (self.key, self.value))


class FailureHandling(Frozen):
    """The handling of unreadable changes: `fail` stops the job, `skip` continues without them, `warn` also logs a
    warning."""

    processing: str = of("event.processing.failure.handling.mode")
    converting: str = of("event.converting.failure.handling.mode")  #: `warn` and `skip` write null
    #: for a rows event that does not fit its table map, or whose table definition is unknown
    inconsistent_schema: str = of("inconsistent.schema.handling.mode")


class OversizedChanges(Frozen):
    """The handling of changes that are too large for Kafka."""

    mode: str = of("incsnap.oversized.change.handling.mode")
    columns: tuple[str, ...] = of("incsnap.oversized.change.truncate.columns")
    topic: str = ""  #: for dead_letter: the topic that gets key, position and reason


class Notifications(Frozen):
    """The channels that notifications about snapshots are sent to."""

    channels: tuple[str, ...] = ()  #: some of sink and log
    sink_topic: str | None = None  #: topic of the channel sink


class HeartbeatSettings(Frozen):
    """Debezium's heartbeat records, and the statement that is executed with them."""

    interval_ms: int = of("heartbeat.interval.ms")  #: 0: no heartbeats
    topic: str = ""
    action_query: str = ""  #: SQL that is executed at each heartbeat; "": none


class RetrySettings(Frozen):
    """Retries of a failed query."""

    max_retries: int = of("errors.max.retries")  #: -1: no limit
    initial_delay_ms: int = of("errors.retry.delay.initial.ms")
    max_delay_ms: int = of("errors.retry.delay.max.ms")


class MonitoringSettings(Frozen):
    """The HTTP server of a job, and the format of its log."""

    port: int | None = of("incsnap.metrics.port")  #: port of metrics, health and page; None: no server
    host: str = of("incsnap.metrics.host")  #: address to listen on
    token: Secret = of("incsnap.page.token")  #: secret that a button of the page must send; "": no buttons
    log_format: str = of("incsnap.log.format")
    sanitized: str = of("custom.sanitize.pattern")  #: Java regex of names of settings whose values are hidden
    status_group: str = of("incsnap.status.group")  #: Unix group that may read the status file; "": none


class VerifySettings(Frozen):
    """The comparisons of a running job's tables with its topics."""

    interval_seconds: int | None = of("incsnap.verify.interval")  #: from one comparison to the next; None: none
    sample: int = of("incsnap.verify.sample")  #: one key in so many is compared at a time


class FrameSettings(Frozen):
    """Settings of a DataFrame of changes, which replaces Kafka's topics."""

    table: TableId | None = None  #: None: several tables, as the records that Kafka would get
    envelope: bool = False  #: True: rows before and after; False: the row alone
    #: True: rows come with a description of their columns, and statements that alter the table come too
    described: bool = False
    columns: str = ""  #: digest of the table's columns in the DataFrame; "" for described rows


class Settings(Frozen):
    """The settings of a job."""

    mysql: MySqlSettings
    topic_prefix: str = of("topic.prefix")
    topic_delimiter: str = of("topic.delimiter")
    unicode_topics: bool = False  #: topic.naming.strategy=DefaultUnicodeTopicNamingStrategy
    tables: TableFilter = TableFilter()
    signals: SignalSettings = SignalSettings()
    read_only: bool = of("read.only")  #: True: the job writes nothing to MySQL
    snapshot: SnapshotSettings = SnapshotSettings()
    start: StartPlace = StartPlace()  #: where a new job begins in the binlog
    kafka: KafkaSettings
    topic_creation: TopicCreation = TopicCreation()
    modes: Modes = Modes()
    columns: ColumnRules = ColumnRules()
    transforms: Chain = ()
    formats: Formats = Formats()
    failures: FailureHandling = FailureHandling()
    oversized: OversizedChanges = OversizedChanges()
    #: id of this start, which extended headers show; "": records have no extended headers
    run_id: str = ""
    tombstones_on_delete: bool = of("tombstones.on.delete")
    skipped_operations: frozenset[str] = of("skipped.operations")  #: some of c, u, d and t
    skip_unchanged: bool = of("skip.messages.without.change")
    transaction_metadata: bool = of("provide.transaction.metadata")
    transaction_topic: str = of("topic.transaction")  #: last part of the topic's name
    include_query: bool = of("include.query")
    include_schema_changes: bool = of("include.schema.changes")
    #: whether the DDL of tables that are not captured stays out of the schema change topic
    only_captured_ddl: bool = of("schema.history.internal.store.only.captured.tables.ddl")
    #: `ignore`: tables of tools for online schema changes are not captured; `capture`: they are tables like any other
    online_ddl_tables: str = of("incsnap.online.ddl.tables")
    #: most changed rows of a batch. None: only bytes limit a batch, and rows are not counted.
    max_batch_rows: int | None = of("max.batch.size")
    max_queue_bytes: int = of("max.queue.size.in.bytes")  #: most bytes of binlog that the planner holds
    batch_interval_ms: int = 0  #: least time from batch to batch; for object stores, which charge for each file
    retries: RetrySettings = RetrySettings()
    notifications: Notifications = Notifications()  #: about snapshots
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    verify: VerifySettings = VerifySettings()
    checkpoint_location: str  #: a path, or a URI that both pyarrow.fs and Spark understand
    store: StoreAccess = StoreAccess()  #: access to the checkpoint's bucket
    frame: FrameSettings | None = None  #: None: records go to Kafka
    spark: Properties = Field(default_factory=dict, repr=False)  #: Spark properties
    spark_launch_mode: str = of("incsnap.spark.launch.mode")

    @property
    def asks_for_columns(self) -> bool:
        """Whether the server must be asked for DEFAULTs and definitions of columns, which no table map contains."""
        narrows = bool(self.columns.narrow_booleans)
        described = self.frame is not None and self.frame.described
        return self.formats.show_schemas or narrows or described or asks_for_columns(self.transforms)

    def store_of(self, location: str) -> StoreAccess:
        """Return the access to the bucket of `location`, which may be another bucket than the checkpoint's."""
        if same_bucket(location, self.checkpoint_location):
            return self.store
        return store_access(location, self.spark, os.environ)

    @field_serializer("columns", mode="wrap")
    def _columns(
        self, value: ColumnRules, serialize: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        shown: dict[str, Any] = serialize(value if revealing(info) else value.without_salts())
        return shown

    def to_json(self) -> str:
        """Return the settings as JSON with all secrets, for Spark's workers. Never log the result."""
        return self.model_dump_json(context={"reveal": True})

    @classmethod
    def from_file(cls, path: StrPath, worker: StrPath | None = None) -> Settings:
        """Return the settings in the file `path`, in the format of a Kafka Connect connector, and log warnings.

        `worker`: the file of a Kafka Connect worker, whose Kafka addresses, converters and producer settings the
        connector inherits unless it has its own. Raise ConfigError that lists all problems of the file.

        >>> settings = incsnap.Settings.from_file("shop.properties")
        >>> settings.topic_prefix, settings.max_queue_bytes
        ('shop', 67108864)
        """
        # `load` imports this module, so it can only be imported here (`setup.cfg` allows the circle).
        from incsnap.config.load import load

        return load(path, worker)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Return the settings from the text of `to_json`."""
        return cls.model_validate_json(text)

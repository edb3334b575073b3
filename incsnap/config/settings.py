"""The settings of a job as typed, immutable values. `load` reads them from a file.

`repr` and ordinary dumps hide secrets. Only `to_json` shows them, because Spark's workers need them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, SerializationInfo, SerializerFunctionWrapHandler, field_serializer

from incsnap.config.frozen import Frozen, of
from incsnap.config.object_store import StoreAccess
from incsnap.config.patterns import TableFilter
from incsnap.config.secrets import Properties, Secret, revealing
from incsnap.config.servers import KafkaSettings, MySqlSettings, RegistrySettings
from incsnap.config.snapshot_settings import SnapshotSettings, StartPlace
from incsnap.config.topic_groups import TopicCreation
from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.tables import TableId
from incsnap.transforms.chain import Chain
from incsnap.types.modes import Modes


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


class Formats(Frozen):
    """The formats of keys and values."""

    key: FormatChoice = FormatChoice()
    value: FormatChoice = FormatChoice()
    key_registry: RegistrySettings = RegistrySettings()  #: schema registry, if keys are Avro
    value_registry: RegistrySettings = RegistrySettings()  #: schema registry, if values are Avro
    schema_names: str = of("schema.name.adjustment.mode")

    @property
    def show_schemas(self) -> bool:
        """Whether records contain a schema or the id of one."""
        return any(choice.schemas or choice.kind == "avro" for choice in (self.key, self.value))


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


class FrameSettings(Frozen):
    """Settings of a DataFrame of changes, which replaces Kafka's topics."""

    table: TableId | None = None  #: None: several tables, as the records that Kafka would get
    envelope: bool = False  #: True: rows before and after; False: the row alone
    columns: str = ""  #: digest of the table's columns in the DataFrame


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
    tombstones_on_delete: bool = of("tombstones.on.delete")
    skipped_operations: frozenset[str] = of("skipped.operations")  #: some of c, u, d and t
    skip_unchanged: bool = of("skip.messages.without.change")
    transaction_metadata: bool = of("provide.transaction.metadata")
    transaction_topic: str = of("topic.transaction")  #: last part of the topic's name
    include_query: bool = of("include.query")
    include_schema_changes: bool = of("include.schema.changes")
    #: most changed rows of a batch. None: only bytes limit a batch, and rows are not counted.
    max_batch_rows: int | None = of("max.batch.size")
    max_queue_bytes: int = of("max.queue.size.in.bytes")  #: most bytes of binlog that the planner holds
    batch_interval_ms: int = 0  #: least time from batch to batch; for object stores, which charge for each file
    retries: RetrySettings = RetrySettings()
    notifications: Notifications = Notifications()  #: about snapshots
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    checkpoint_location: str  #: a path, or a URI that both pyarrow.fs and Spark understand
    store: StoreAccess = StoreAccess()  #: access to the checkpoint's bucket
    frame: FrameSettings | None = None  #: None: records go to Kafka
    spark: Properties = Field(default_factory=dict, repr=False)  #: Spark properties
    spark_launch_mode: str = of("incsnap.spark.launch.mode")

    @property
    def asks_for_columns(self) -> bool:
        """Whether the server must be asked for DEFAULTs and definitions of columns, which no table map contains."""
        return self.formats.show_schemas or bool(self.columns.narrow_booleans)

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
    def from_file(cls, path: str | Path, worker: str | Path | None = None) -> Settings:
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

"""What a job is told, typed and frozen. Nothing here is read from a file: see ``load``.

Secrets are shown by no ``repr`` and by no ordinary dump; only ``to_json`` reveals them: Spark's workers
need them.
"""

from __future__ import annotations

from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    field_serializer,
)

from incsnap.config.object_store import StoreAccess
from incsnap.config.patterns import TableFilter
from incsnap.config.secrets import Secret, is_secret, revealing
from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.tables import TableId
from incsnap.transforms.chain import Chain
from incsnap.types.modes import Modes
from signals.regex import any_matches

_HIDDEN = "**********"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _client(values: dict[str, str], info: SerializationInfo) -> dict[str, str]:
    if revealing(info):
        return values
    return {name: _HIDDEN if is_secret(name) else value for name, value in values.items()}


class MySqlSettings(_Frozen):
    hostname: str
    port: int = 3306
    user: str
    password: Secret = SecretStr("")
    #: disabled | preferred | required | verify_ca | verify_identity
    ssl_mode: str = "preferred"
    #: PEM files
    ssl_ca: str | None = None
    ssl_cert: str | None = None
    ssl_key: str | None = None
    ssl_key_password: Secret = SecretStr("")
    #: the id our replication connection gives itself; unique among the server's replicas
    server_id: int = 0
    connect_timeout_seconds: float = 30.0

    @property
    def address(self) -> str:
        return f"{self.hostname}:{self.port}"


class SignalSettings(_Frozen):
    #: of source, kafka, file
    channels: tuple[str, ...] = ("source",)
    data_collection: TableId | None = None
    kafka_topic: str = ""
    kafka_bootstrap_servers: str = ""
    #: Only the name under which we read: progress is kept in our own offset, not in the group.
    kafka_group_id: str = "kafka-signal"
    consumer: dict[str, str] = Field(default_factory=dict, repr=False)
    file: str = "file-signals.txt"
    poll_interval_ms: int = 100

    @field_serializer("consumer")
    def _consumer(self, value: dict[str, str], info: SerializationInfo) -> dict[str, str]:
        return _client(value, info)


#: The first is taken where none is given, as by Debezium.
SNAPSHOT_MODES = ("initial", "initial_only", "when_needed", "always", "no_data", "recovery")


class SnapshotSettings(_Frozen):
    #: one of SNAPSHOT_MODES
    mode: str = SNAPSHOT_MODES[0]
    #: of the tables that the job reads at its start, by snapshot.mode: Java regexes; all where there are none
    include: tuple[str, ...] = ()
    #: by table, which of its rows are read then (SQL)
    conditions: dict[str, str] = Field(default_factory=dict)
    #: rows of a chunk; None: found by time and bytes
    chunk_size: int | None = None
    #: chunks read at the same time; None: chosen from Spark's cores
    threads: int | None = None
    #: what nine of ten live changes may take beside a snapshot
    latency_target_ms: int = 250
    #: what holds reading back: limits by name (incsnap.snapshot.throttle), 0 is none
    throttle: dict[str, int] = Field(default_factory=dict)
    #: whose lag is looked at for that: (host, port)
    throttle_replicas: tuple[tuple[str, int], ...] = ()

    @property
    def reads_at_start(self) -> bool:
        """Does a new job begin with a snapshot?"""
        return self.mode not in ("no_data", "recovery")

    def included(self, table: TableId) -> bool:
        """Is the table read at the start, if it is captured?"""
        return not self.include or any_matches(self.include, str(table), ignore_case=True)


class StartPlace(_Frozen):
    """Where a new job begins in the binlog: behind the transactions of a set, or at a byte of a file; else now."""

    gtid_set: str | None = None
    #: "" for none
    file: str = ""
    position: int = 4

    @property
    def is_given(self) -> bool:
        return self.gtid_set is not None or bool(self.file)


class KafkaSettings(_Frozen):
    bootstrap_servers: str
    #: librdkafka's names (``producer.`` cut off)
    producer: dict[str, str] = Field(default_factory=dict, repr=False)

    @field_serializer("producer")
    def _producer(self, value: dict[str, str], info: SerializationInfo) -> dict[str, str]:
        return _client(value, info)


class RegistrySettings(_Frozen):
    """The schema registry of Avro keys and values; its client's own names (``basic.auth.user.info``)."""

    url: str = ""
    client: dict[str, str] = Field(default_factory=dict, repr=False)

    @field_serializer("client")
    def _client(self, value: dict[str, str], info: SerializationInfo) -> dict[str, str]:
        return _client(value, info)


class Formats(_Frozen):
    key: FormatChoice = FormatChoice()
    value: FormatChoice = FormatChoice()
    key_registry: RegistrySettings = RegistrySettings()
    value_registry: RegistrySettings = RegistrySettings()
    #: schema.name.adjustment.mode: none | avro | avro_unicode
    schema_names: str = "none"

    @property
    def show_schemas(self) -> bool:
        """Do the records bring a schema, or name one?"""
        return any(choice.schemas or choice.kind == "avro" for choice in (self.key, self.value))


class FailureHandling(_Frozen):
    """What cannot be read: ``fail`` stops the job, ``warn`` and ``skip`` go on without it, the former says so."""

    #: event.processing.failure.handling.mode: a rows event that cannot be decoded
    processing: str = "fail"
    #: event.converting.failure.handling.mode: a value that cannot be converted; warn and skip write null
    converting: str = "warn"
    #: inconsistent.schema.handling.mode: a rows event that does not fit its table map
    inconsistent_schema: str = "fail"


class TopicGroup(_Frozen):
    """Topics that are made alike, by Kafka Connect's topic.creation.<name>.*; the patterns are Java regexes."""

    name: str = "default"
    include: tuple[str, ...] = (".*",)
    exclude: tuple[str, ...] = ()
    #: -1: the broker's default
    partitions: int = -1
    replication_factor: int = -1
    #: further topic settings, by Kafka's names (``cleanup.policy``)
    config: dict[str, str] = Field(default_factory=dict)

    def takes(self, topic: str) -> bool:
        return any_matches(self.include, topic, ignore_case=False) and not any_matches(
            self.exclude, topic, ignore_case=False
        )


class TopicCreation(_Frozen):
    """The first of ``groups`` that takes a topic says how it is made, else ``default``."""

    groups: tuple[TopicGroup, ...] = ()
    default: TopicGroup = TopicGroup()

    def group_of(self, topic: str) -> TopicGroup:
        return next((group for group in self.groups if group.takes(topic)), self.default)


class Notifications(_Frozen):
    #: of sink, log
    channels: tuple[str, ...] = ()
    sink_topic: str | None = None


class HeartbeatSettings(_Frozen):
    #: 0: there are none
    interval_ms: int = 0
    topic: str = ""
    #: executed at each of them; "": nothing is
    action_query: str = ""


class RetrySettings(_Frozen):
    #: -1: for ever
    max_retries: int = -1
    initial_delay_ms: int = 300
    max_delay_ms: int = 10_000


class MonitoringSettings(_Frozen):
    #: of metrics, health and page; None: nothing listens
    port: int | None = None
    host: str = "127.0.0.1"
    #: what a button of the page must bring; "": there are no buttons
    token: Secret = SecretStr("")
    #: text | json
    log_format: str = "text"


class FrameSettings(_Frozen):
    """A DataFrame of changes, in place of Kafka's topics."""

    #: None: several tables, as the records that Kafka would be sent
    table: TableId | None = None
    #: before and after, in place of the row alone
    envelope: bool = False
    #: a digest of the table's columns as the DataFrame has them
    columns: str = ""


class Settings(_Frozen):
    mysql: MySqlSettings
    topic_prefix: str
    topic_delimiter: str = "."
    #: topic.naming.strategy=DefaultUnicodeTopicNamingStrategy
    unicode_topics: bool = False
    tables: TableFilter = TableFilter()
    signals: SignalSettings = SignalSettings()
    read_only: bool = False
    snapshot: SnapshotSettings = SnapshotSettings()
    start: StartPlace = StartPlace()
    kafka: KafkaSettings
    topic_creation: TopicCreation = TopicCreation()
    modes: Modes = Modes()
    columns: ColumnRules = ColumnRules()
    transforms: Chain = ()
    formats: Formats = Formats()
    failures: FailureHandling = FailureHandling()
    tombstones_on_delete: bool = True
    #: of c, u, d, t
    skipped_operations: frozenset[str] = frozenset("t")
    #: skip.messages.without.change
    skip_unchanged: bool = False
    #: provide.transaction.metadata, and the last part of its topic's name (topic.transaction)
    transaction_metadata: bool = False
    transaction_topic: str = "transaction"
    include_query: bool = False
    include_schema_changes: bool = True
    #: row events of one batch. A bound for memory and replay, so far above Debezium's 2048 (records of one poll).
    max_batch_events: int = 200_000
    #: bytes of binlog the planner holds
    max_queue_bytes: int = 64 << 20
    #: From one batch to the next at least, where its files are paid for: on an object store.
    batch_interval_ms: int = 0
    retries: RetrySettings = RetrySettings()
    notifications: Notifications = Notifications()
    heartbeat: HeartbeatSettings = HeartbeatSettings()
    monitoring: MonitoringSettings = MonitoringSettings()
    #: How long a chunk waits until what was delivered is visible. Longer only when a commit is stalled
    #: (semi-synchronous replication); then the chunk is planned again and the stream goes on.
    executed_wait_seconds: float = 2.0
    #: a path or an URI that pyarrow.fs and Spark both know
    checkpoint_location: str
    #: where that is in a bucket
    store: StoreAccess = StoreAccess()
    #: None: records go to Kafka
    frame: FrameSettings | None = None
    spark: dict[str, str] = Field(default_factory=dict, repr=False)

    @property
    def asks_for_columns(self) -> bool:
        """Must the server be asked what no table map tells of columns: DEFAULTs, and how they were defined?"""
        return self.formats.show_schemas or bool(self.columns.narrow_booleans)

    @field_serializer("columns", mode="wrap")
    def _columns(
        self, value: ColumnRules, serialize: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        shown: dict[str, Any] = serialize(value if revealing(info) else value.without_salts())
        return shown

    @field_serializer("spark")
    def _spark(self, value: dict[str, str], info: SerializationInfo) -> dict[str, str]:
        return _client(value, info)

    def to_json(self) -> str:
        """With the secrets, for Spark's workers; never log it."""
        return self.model_dump_json(context={"reveal": True})

    @classmethod
    def from_json(cls, text: str) -> Settings:
        return cls.model_validate_json(text)

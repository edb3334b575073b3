"""What a job is told, typed and frozen. Nothing here is read from a file: see ``load``.

Secrets are shown by no ``repr`` and by no ordinary dump; only ``to_json`` reveals them: Spark's workers
need them.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, SecretStr, SerializationInfo, SerializerFunctionWrapHandler, field_serializer

from incsnap.config.frozen import Frozen
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
    #: of source, kafka, file
    channels: tuple[str, ...] = ("source",)
    data_collection: TableId | None = None
    kafka_topic: str = ""
    kafka_bootstrap_servers: str = ""
    #: Only the name under which we read: progress is kept in our own offset, not in the group.
    kafka_group_id: str = "kafka-signal"
    consumer: Properties = Field(default_factory=dict, repr=False)
    file: str = "file-signals.txt"
    poll_interval_ms: int = 100


class Formats(Frozen):
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


class FailureHandling(Frozen):
    """What cannot be read: ``fail`` stops the job, ``warn`` and ``skip`` go on without it, the former says so."""

    #: event.processing.failure.handling.mode: a rows event that cannot be decoded
    processing: str = "fail"
    #: event.converting.failure.handling.mode: a value that cannot be converted; warn and skip write null
    converting: str = "warn"
    #: inconsistent.schema.handling.mode: a rows event that does not fit its table map, or whose definition is not known
    inconsistent_schema: str = "fail"


#: incsnap.oversized.change.handling.mode
FAIL, TRUNCATE, DEAD_LETTER = "fail", "truncate", "dead_letter"


class OversizedChanges(Frozen):
    """What becomes of a change that is too large for Kafka."""

    mode: str = FAIL  #: fail | truncate | dead_letter
    columns: tuple[str, ...] = ()  #: of truncate: Java regexes on db.table.column, of columns that may be cut
    topic: str = ""  #: of dead_letter: where key, position and reason are written


class Notifications(Frozen):
    #: of sink, log
    channels: tuple[str, ...] = ()
    sink_topic: str | None = None


class HeartbeatSettings(Frozen):
    #: 0: there are none
    interval_ms: int = 0
    topic: str = ""
    #: executed at each of them; "": nothing is
    action_query: str = ""


class RetrySettings(Frozen):
    #: -1: for ever
    max_retries: int = -1
    initial_delay_ms: int = 300
    max_delay_ms: int = 10_000


class MonitoringSettings(Frozen):
    #: of metrics, health and page; None: nothing listens
    port: int | None = None
    host: str = "127.0.0.1"
    #: what a button of the page must bring; "": there are no buttons
    token: Secret = SecretStr("")
    #: text | json
    log_format: str = "text"


class FrameSettings(Frozen):
    """A DataFrame of changes, in place of Kafka's topics."""

    #: None: several tables, as the records that Kafka would be sent
    table: TableId | None = None
    #: before and after, in place of the row alone
    envelope: bool = False
    #: a digest of the table's columns as the DataFrame has them
    columns: str = ""


class Settings(Frozen):
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
    oversized: OversizedChanges = OversizedChanges()
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
    #: max.batch.size: rows that changed, of one batch. None: batches are bounded by bytes alone, and no row is counted.
    max_batch_rows: int | None = None
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
    executed_wait_seconds: float = 5.0
    #: a path or an URI that pyarrow.fs and Spark both know
    checkpoint_location: str
    #: where that is in a bucket
    store: StoreAccess = StoreAccess()
    #: None: records go to Kafka
    frame: FrameSettings | None = None
    spark: Properties = Field(default_factory=dict, repr=False)

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

    def to_json(self) -> str:
        """With the secrets, for Spark's workers; never log it."""
        return self.model_dump_json(context={"reveal": True})

    @classmethod
    def from_json(cls, text: str) -> Settings:
        return cls.model_validate_json(text)

"""Declarations: types and formats of records, columns, keys and names, transforms."""

from __future__ import annotations

from incsnap.config.declarations.kinds import COLUMNS, FLAG, TEXT, described, one_of
from incsnap.config.declarations.setting import Setting
from incsnap.types.modes import CHOICES

#: Values of the settings that adjust names.
ADJUSTMENTS = ("none", "avro", "avro_unicode")
_CONVERTER = described("a class")
_JSON = "org.apache.kafka.connect.json.JsonConverter"

# fmt: off
RECORDS = (
    Setting("decimal.handling.mode", one_of(*CHOICES["decimal_handling"]), "precise", "How DECIMAL is written."),
    Setting("bigint.unsigned.handling.mode", one_of(*CHOICES["bigint_unsigned"]), "long",
            "How BIGINT UNSIGNED is written."),
    Setting("time.precision.mode", one_of(*CHOICES["time_precision"]), "adaptive_time_microseconds",
            "How dates and times are written."),
    Setting("binary.handling.mode", one_of(*CHOICES["binary_handling"]), "bytes", "How bytes are written."),
    Setting("enable.time.adjuster", one_of(*CHOICES["time_adjuster"]), "true",
            "The years 1 to 69 of DATE and DATETIME become 2001 to 2069, 70 to 99 become 1970 to 1999."),
    Setting("incsnap.debezium.version", one_of(*CHOICES["debezium"]), "3.6",
            "Release of Debezium whose types the records have.", see="the-release-of-debezium"),
    Setting("key.converter", _CONVERTER, "", "Format of keys.", _JSON, unset="JSON without schemas", see="converters"),
    Setting("key.converter.*", TEXT, "", "Settings of this converter.", "key.converter.schemas.enable=false",
            see="converters"),
    Setting("value.converter", _CONVERTER, "", "Format of values.", _JSON, unset="JSON without schemas",
            see="converters"),
    Setting("value.converter.*", TEXT, "", "Settings of this converter.",
            "value.converter.schemas.enable=false\nvalue.converter.decimal.format=numeric", see="converters"),
    Setting("provide.transaction.metadata", FLAG, "false", "Send BEGIN and END records, and a `transaction` block.",
            see="statements-and-transactions"),
    Setting("topic.transaction", TEXT, "transaction", "Last part of the name of the topic of BEGIN and END."),
    Setting("extended.headers.enabled", FLAG, "", "Headers `__debezium.context.*`: prefix, task, connector, run.",
            "true", unset="`true` in a file with `connector.class`, else `false`", see="extended-headers"),
    Setting("include.schema.changes", FLAG, "true", "Send DDL as records of the topic `<topic.prefix>`."),
    Setting("schema.history.internal.store.only.captured.tables.ddl", FLAG, "false",
            "Leave out the DDL of tables that are not captured, in databases with captured tables."),
)

COLUMN_RULES = (
    Setting("message.key.columns", described("db.table:column,column;..."), "", "Key of a table's records.",
            r"inventory\\.orders:customer,number", unset="the primary key", see="columns-keys-and-names"),
    Setting("column.mask.*", COLUMNS, "", "Write N asterisks, or a hash, in place of the values of these columns.",
            r"column.mask.with.8.chars=.*\\.password" "\n"
            r"column.mask.hash.v2.SHA-256.with.salt.CzQMA0cB5K=.*\\.email", see="columns-keys-and-names"),
    Setting("column.truncate.*", COLUMNS, "", "Cut the values of these columns to N characters.",
            r"column.truncate.to.64.chars=.*\\.comment", see="columns-keys-and-names"),
    Setting("column.propagate.source.type", COLUMNS, "", "Columns whose schemas show their definition.",
            r"inventory\\.orders\\..*", see="source-types-and-comments"),
    Setting("datatype.propagate.source.type", COLUMNS, "", "Types (`db.table.TYPE`) whose columns do the same.",
            r".*\\.VARCHAR", see="source-types-and-comments"),
    Setting("include.schema.comments", FLAG, "false", "Comments of columns in schemas, of tables in `tableChanges`.",
            see="source-types-and-comments"),
    Setting("converters", described("a list of names"), "", "Converters of columns. TINYINT(1) to boolean is known.",
            "flags\nflags.type=io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter\n"
            r"flags.selector=inventory\\.orders\\.is_.*" "\nflags.length.checker=true", see="tinyint1-as-a-boolean"),
    Setting("schema.name.adjustment.mode", one_of(*ADJUSTMENTS), "none", "How names of schemas are adjusted."),
    Setting("field.name.adjustment.mode", one_of(*ADJUSTMENTS), "",
            "How names of fields are adjusted.", "none", unset="`none`; `avro` with an Avro converter"),
    Setting("sanitize.field.names", FLAG, "false", "Older name: `true` is field.name.adjustment.mode=avro."),
)

TRANSFORMS = (
    Setting("transforms", described("a list of names"), "", "Transforms, in the order in which records pass them.",
            "unwrap", see="transforms.md"),
    Setting("transforms.*", TEXT, "", "Settings of a transform.",
            "transforms.unwrap.type=io.debezium.transforms.ExtractNewRecordState\n"
            "transforms.unwrap.delete.tombstone.handling.mode=rewrite\ntransforms.unwrap.predicate=inventory",
            see="transforms.md"),
    Setting("predicates", described("a list of names"), "", "Predicates of transforms.", "inventory",
            see="transforms.md"),
    Setting("predicates.*", TEXT, "", "Settings of a predicate.",
            "predicates.inventory.type=org.apache.kafka.connect.transforms.predicates.TopicNameMatches\n"
            r"predicates.inventory.pattern=shop\\.inventory\\..*", see="transforms.md"),
)
# fmt: on

"""The connectors that are recorded, each with its own topic.prefix, and what is set differently in each.

``{database}`` stands for the database's name. All have JSON converters; ``SCHEMAS`` has them write the schemas too,
which the golden files keep once for all records that have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SCHEMAS = {"key.converter.schemas.enable": "true", "value.converter.schemas.enable": "true"}

#: Of every configuration, ours and Debezium's.
COMMON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "include.schema.changes": "false",
    # Debezium's and Connect's own defaults are recorded in "connect-defaults" alone: four more headers on every record,
    # and a column's default in the place of a NULL.
    "extended.headers.enabled": "false",
    "key.converter.replace.null.with.default": "false",
    "value.converter.replace.null.with.default": "false",
}


_COMMON_AVRO = {
    "key.converter": "io.confluent.connect.avro.AvroConverter",
    "key.converter.schema.registry.url": "http://127.0.0.1:9",
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "http://127.0.0.1:9",
    "field.name.adjustment.mode": "avro",
    "schema.name.adjustment.mode": "avro",
    **{name: value for name, value in COMMON.items() if "converter" not in name},
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """``tables``: regular expressions of table names, none: all. ``snapshot``: rows are read again after the stream.
    ``topic``: only this one is kept. ``avro``: keys and values are Avro, with a registry.
    """

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    snapshot: bool = False
    topic: str = ""
    avro: bool = False

    @property
    def changes(self) -> bool:
        """Whether there are tables among its own that are defined anew in changes.sql."""
        return not self.tables or "evolving" in self.tables

    def properties(self, database: str) -> dict[str, str]:
        """What Debezium and we are both given."""
        chosen = {**(_COMMON_AVRO if self.avro else COMMON), **self.settings, "topic.prefix": self.name}
        if self.tables:
            names = (*self.tables, "the_end")
            chosen["table.include.list"] = ",".join(rf"{database}\.{name}" for name in names)
        else:
            chosen["database.include.list"] = database
        if self.snapshot:
            chosen["signal.data.collection"] = f"{database}.debezium_signal"
        return {name: value.replace("{database}", database) for name, value in chosen.items()}


_NUMBERS = ("decimals", "decimal_key", "defaults", "floats", "composite")
_TIMES = ("dates", "times", "datetimes", "timestamps", "zero_dates", "time_key", "defaults", "documents")
_BYTES = ("bytes", "bytes_key", "charsets", "bits", "customers", "defaults")
_PEOPLE = ("customers", "orders", "composite", "no_key")

CONFIGURATIONS = {
    each.name: each
    for each in (
        Configuration("default", snapshot=True),
        Configuration("schemas", SCHEMAS),
        Configuration(
            "connect-defaults",
            {
                "extended.headers.enabled": "true",
                "key.converter.replace.null.with.default": "true",
                "value.converter.replace.null.with.default": "true",
            },
            ("customers", "defaults", "unique_only", "composite"),
        ),
        Configuration("decimal-string", {**SCHEMAS, "decimal.handling.mode": "string"}, _NUMBERS),
        Configuration("decimal-double", {**SCHEMAS, "decimal.handling.mode": "double"}, _NUMBERS),
        Configuration(
            "bigint-precise",
            {**SCHEMAS, "bigint.unsigned.handling.mode": "precise"},
            ("integers", "unsigned_key", "defaults", "orders"),
        ),
        Configuration("time-connect", {**SCHEMAS, "time.precision.mode": "connect"}, _TIMES),
        Configuration("time-isostring", {**SCHEMAS, "time.precision.mode": "isostring"}, _TIMES),
        Configuration("time-microseconds", {**SCHEMAS, "time.precision.mode": "microseconds"}, _TIMES),
        Configuration("time-nanoseconds", {**SCHEMAS, "time.precision.mode": "nanoseconds"}, _TIMES),
        Configuration("binary-base64", {**SCHEMAS, "binary.handling.mode": "base64"}, _BYTES),
        Configuration("binary-base64-url-safe", {**SCHEMAS, "binary.handling.mode": "base64-url-safe"}, _BYTES),
        Configuration("binary-hex", {**SCHEMAS, "binary.handling.mode": "hex"}, _BYTES),
        Configuration("no-tombstones", {"tombstones.on.delete": "false"}, _PEOPLE),
        Configuration("skipped-none", {**SCHEMAS, "skipped.operations": "none"}, ("truncated", "parted.*", "no_key")),
        Configuration("skipped-u-d", {"skipped.operations": "u,d"}, (*_PEOPLE, "truncated")),
        Configuration(
            "transactions", {**SCHEMAS, "provide.transaction.metadata": "true"}, (*_PEOPLE, "truncated", "evolving")
        ),
        Configuration("query", {"include.query": "true"}, (*_PEOPLE, "evolving")),
        Configuration(
            "columns-include",
            {
                **SCHEMAS,
                "column.include.list": r"{database}\.customers\.(id|email|NAME),{database}\.composite\.[vac],"
                r"{database}\.the_end\.id,{database}\.no_key\.b",
            },
            _PEOPLE,
        ),
        Configuration(
            "columns-exclude",
            {
                **SCHEMAS,
                "column.exclude.list": r"{database}\.customers\.(secret|born),.*\.orders\.note,"
                r"{database}\.composite\.b",
            },
            _PEOPLE,
        ),
        Configuration(
            "mask",
            {
                **SCHEMAS,
                "column.mask.with.8.chars": r"{database}\.customers\.(name|secret|balance|born),"
                r".*\.orders\.note,.*\.texts\.v",
                "column.mask.with.0.chars": r"{database}\.customers\.email",
            },
            (*_PEOPLE, "texts"),
        ),
        Configuration(
            "hash",
            {
                **SCHEMAS,
                "column.mask.hash.v2.SHA-256.with.salt.CzQMA0cB5K": r"{database}\.customers\.(name|secret),"
                r".*\.orders\.note",
                "column.mask.hash.SHA-256.with.salt.CzQMA0cB5K": r"{database}\.customers\.email,.*\.texts\.(v|t|n)",
            },
            (*_PEOPLE, "texts"),
        ),
        Configuration(
            "truncate",
            {
                **SCHEMAS,
                "column.truncate.to.3.chars": r"{database}\.customers\.(name|email|secret|balance),"
                r".*\.texts\..*,.*\.composite\.b",
            },
            (*_PEOPLE, "texts"),
        ),
        Configuration(
            "key-columns",
            {
                **SCHEMAS,
                "message.key.columns": r"{database}.customers:email,id;{database}.no_key:b;(.*).composite:v,c;"
                r"{database}.orders:customer",
            },
            _PEOPLE,
        ),
        Configuration(
            "avro-names",
            {**SCHEMAS, "field.name.adjustment.mode": "avro", "schema.name.adjustment.mode": "avro"},
            ("odd-name é", "customers", "choices"),
        ),
        Configuration(
            "avro-unicode-names",
            {**SCHEMAS, "field.name.adjustment.mode": "avro_unicode", "schema.name.adjustment.mode": "avro_unicode"},
            ("odd-name é", "customers"),
        ),
        Configuration("schema-changes", {**SCHEMAS, "include.schema.changes": "true"}, topic="schema-changes"),
        Configuration("avro", avro=True),
        Configuration("delimiter", {"topic.delimiter": "_"}, ("customers", "odd-name é")),
    )
}

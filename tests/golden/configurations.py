"""The configurations of the recorded connectors. Each has its own `topic.prefix` and its own settings.

In settings `{database}` stands for the database's name. By default records are JSON without schemas. With `SCHEMAS`
they have schemas, and a golden file keeps each schema once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tests.golden import conditions

T = TypeVar("T")

SCHEMAS = {"key.converter.schemas.enable": "true", "value.converter.schemas.enable": "true"}

#: Settings of every configuration, for incsnap and Debezium.
COMMON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "include.schema.changes": "false",
    "schema.history.internal.store.only.captured.tables.ddl": "true",
    # Only "connect-defaults" records the defaults of Debezium and Connect: four more headers on every record, and a
    # column's default in place of NULL.
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
class Signal:
    """A signal for an incremental snapshot."""

    id: str
    tables: tuple[str, ...]
    stopped: bool = False  #: whether the same transaction stops the snapshot

    def rows(self, database: str) -> list[tuple[str, str, str]]:
        """Return the rows for the signal table: id, type and data."""
        collections = [f"{database}.{table}" for table in self.tables]
        rows = [(self.id, "execute-snapshot", json.dumps({"type": "incremental", "data-collections": collections}))]
        if self.stopped:
            rows.append((f"{self.id}-stop", "stop-snapshot", '{"type": "incremental"}'))
        return rows


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration of a connector, of Debezium and of incsnap."""

    name: str  #: also the topic prefix, and the name of the golden file
    settings: Mapping[str, str] = field(default_factory=dict)  #: settings that differ from `COMMON`
    tables: tuple[str, ...] = ()  #: regular expressions of table names, also with a database's name; (): all tables
    snapshot: bool = False  #: whether rows are read again after the stream
    topic: str = ""  #: the only topic that is compared; "": all topics
    first: bool = False  #: compare only the first record of each topic, because time decides how many there are
    avro: bool = False  #: whether keys and values are Avro, with a registry
    plain: bool = False  #: whether some keys or values are bytes that are not JSON
    partitions: int = 1  #: partitions of each topic
    transactions: str = ""  #: the topic of transaction metadata; "" for `<name>.transaction`
    end: str = "the_end"  #: name of the table `the_end` in its topic
    signals: tuple[Signal, ...] = ()  #: snapshots that are asked for one after the other, behind the stream

    def keeps(self, topic: str) -> bool:
        return self.topic in ("", topic)

    def kept(self, records: Sequence[T]) -> Sequence[T]:
        """Return the records of a topic that are compared."""
        return records[:1] if self.first else records

    @property
    def changes(self) -> bool:
        """Whether changes.sql changes the definition of a table that is captured or reported."""
        return not self.tables or "evolving" in self.tables or "of-others" in self.name

    def reads_again(self, table: str) -> bool:
        """Whether a signal makes a connector with `snapshot` read the table again."""
        has_table = not self.tables or any(re.fullmatch(name, table) for name in self.tables)
        return has_table and table not in ("debezium_signal", "the_end")

    def properties(self, database: str) -> dict[str, str]:
        """Return the settings that Debezium and incsnap both get."""
        chosen = {**(_COMMON_AVRO if self.avro else COMMON), **self.settings, "topic.prefix": self.name}
        if self.tables:
            names = (name if "{database}" in name else rf"{database}\.{name}" for name in (*self.tables, "the_end"))
            chosen["table.include.list"] = ",".join(names)
        else:
            chosen["database.include.list"] = database
        if self.partitions > 1:
            chosen["topic.creation.default.partitions"] = str(self.partitions)
            chosen["topic.creation.default.replication.factor"] = "1"
        if self.snapshot or self.signals:
            chosen["signal.data.collection"] = f"{database}.debezium_signal"
        return {name: value.replace("{database}", database) for name, value in chosen.items()}


_NUMBERS = ("decimals", "decimal_key", "defaults", "floats", "composite")
_TIMES = ("dates", "times", "datetimes", "timestamps", "zero_dates", "time_key", "defaults", "documents")
_BYTES = ("bytes", "bytes_key", "charsets", "bits", "customers", "defaults")
_PEOPLE = ("customers", "orders", "composite", "no_key")
_ROWS = (*_PEOPLE, "truncated")


def _unwrap(**options: str) -> dict[str, str]:
    """Return the settings of an ExtractNewRecordState. `__` stands for a dot in the name of an option."""
    given = {f"transforms.unwrap.{name.replace('__', '.')}": value for name, value in options.items()}
    type_ = {"transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState"}
    return {"transforms": "unwrap", **type_, **given}


def _outbox(name: str, **options: str) -> dict[str, str]:
    """Return the settings of an EventRouter of customers, by the first letter of their mail. `__` stands for a dot."""
    given = {
        "type": "io.debezium.transforms.outbox.EventRouter",
        "predicate": "people",
        "route.by.field": "email",
        "route.topic.regex": "(?s)([a-z]?).*",
        "route.topic.replacement": f"{name}.of-$1",
        **{option.replace("__", "."): value for option, value in options.items()},
    }
    return {
        "transforms": "outbox",
        **{f"transforms.outbox.{option}": value for option, value in given.items()},
        "predicates": "people",
        "predicates.people.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.people.pattern": r".*\.(customers|events|parcels)",
    }


def _expanded(name: str, **options: str) -> dict[str, str]:
    """Return the settings of an EventRouter of the events whose payloads are JSON, which it expands."""
    columns = {"table__field__event__key": "who", "route__by__field": "kind", "route__topic__regex": "(.*)"}
    return _outbox(name, table__expand__json__payload="true", **columns, **options)


def _parcels(column: str, **options: str) -> dict[str, str]:
    """Return the settings of an ExtractNewRecordState that sends parcels to the topics in a column."""
    return {
        **_unwrap(route__by__field=column, predicate="parcels", **options),
        "predicates": "parcels",
        "predicates.parcels.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.parcels.pattern": r".*\.parcels",
    }


def _edited(*steps: tuple[str, str], unwrapped: bool = True, **options: str) -> dict[str, str]:
    """Return the settings of Connect's transforms behind an ExtractNewRecordState that drops deletions.

    `steps`: names and classes. `options`: of the transforms, with `__` for each dot.
    """
    kafka = "org.apache.kafka.connect.transforms."
    unwrap = _unwrap(delete__tombstone__handling__mode="drop") if unwrapped else {}
    names = [*(["unwrap"] if unwrapped else []), *(name for name, _ in steps)]
    return {
        **unwrap,
        **{f"transforms.{name}.type": type_ if "." in type_ else kafka + type_ for name, type_ in steps},
        **{f"transforms.{name}.replace.null.with.default": "false" for name in names},
        **{f"transforms.{option.replace('__', '.')}": value for option, value in options.items()},
        "transforms": ",".join(names),
    }


_PARCELS = (r"{database}_outbox\.parcels",)

#: Converters that write bytes as they are, and other values as JSON without schemas.
_BINARY = {
    f"{part}.converter{name}": value
    for part in ("key", "value")
    for name, value in (
        ("", "io.debezium.converters.BinaryDataConverter"),
        (".delegate.converter.type", "org.apache.kafka.connect.json.JsonConverter"),
        (".delegate.converter.type.schemas.enable", "false"),
        (".delegate.converter.type.replace.null.with.default", "false"),
    )
}

_PREDICATES = "org.apache.kafka.connect.transforms.predicates."


def _chain(**transforms: str) -> dict[str, str]:
    """Return the settings of a chain of transforms, each with its class and options as one text: `CLASS option=value`.

    Options are separated by `; `. The class may lack Kafka Connect's package. There are predicates for the topics of
    some tables, and for tombstones.
    """
    settings = {"transforms": ",".join(transforms), "predicates": "tombstones,customers,orders,composite"}
    settings["predicates.tombstones.type"] = f"{_PREDICATES}RecordIsTombstone"
    for table in ("customers", "orders", "composite"):
        settings[f"predicates.{table}.type"] = f"{_PREDICATES}TopicNameMatches"
        settings[f"predicates.{table}.pattern"] = rf".*\.{table}"
    for name, text in transforms.items():
        class_, _, options = text.partition(" ")
        package = "" if "." in class_ else "org.apache.kafka.connect.transforms."
        settings[f"transforms.{name}.type"] = package + class_
        for option in options.split("; ") if options else ():
            key, _, value = option.partition("=")
            settings[f"transforms.{name}.{key}"] = value
        if "Header" not in class_:
            settings[f"transforms.{name}.replace.null.with.default"] = "false"
    return settings


_UNWRAP = "io.debezium.transforms.ExtractNewRecordState delete.tombstone.handling.mode="
_INSERTED = "io.debezium.connector.mysql.transforms.ReadToInsertEvent"
_EDITED = {
    "unwrap": f"{_UNWRAP}rewrite; add.fields=op,table",
    "stamp": "InsertField$Value static.field=origin; static.value=shop; topic.field=topic_name!; partition.field=part;"
    " timestamp.field=stamped",
    "trim": "ReplaceField$Value exclude=secret,__table; renames=name:full_name,__op:operation",
    "kind": "InsertHeader header=kind; value.literal=a row: of, this",
    "count": "InsertHeader header=count; value.literal=7",
}

#: Literals of headers: numbers and texts as Kafka Connect reads them.
_LITERALS = (
    "1.50",
    "1e3",
    "[1,2]",
    '{"a":1}',
    "2024-01-01",
    "2024-01-01T10:20:30.5Z",
    "00",
    "-5",
    "+7",
    "3000000000",
    "99999999999999999999",
    "NaN",
    "TRUE",
    "true",
    "False",
    "1.0",
    "0x1",
    '"quo ted"',
    "it's",
    "a:b",
    "12:30:00",
    "[a,b]",
    "0.1",
    "-0",
    "1f",
    'text \\" back',
    "12345678901234567.25",
    '"quoted"',
    '"a\\"b"',
    "12:30",
    "{a:b}",
    "1,2",
    ".5",
    "1.",
    "1e30",
    "0.0",
    "1e-7",
    'hello "x"',
    "12abc",
    "12 34",
    "[]",
    "{}",
    '"1"',
    "12:ab",
    "-",
    "123456789.125",
    "true:1",
    "a[b]",
    "http://h:80/p?q=1",
    "99.99",
    "1e400",
    "2024-01-01T10:20:30.5",
    "v1.2.3",
    "1.2.3",
)


def _literals() -> dict[str, str]:
    """Return the settings of one InsertHeader for each of `_LITERALS`."""
    settings = {"transforms": ",".join(f"h{place}" for place in range(len(_LITERALS)))}
    for place, literal in enumerate(_LITERALS):
        start = f"transforms.h{place}."
        settings[f"{start}type"] = "org.apache.kafka.connect.transforms.InsertHeader"
        settings[f"{start}header"] = f"h{place}"
        settings[f"{start}value.literal"] = literal
    return settings


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
        Configuration(
            "decimal-numbers",
            {
                **SCHEMAS,
                "key.converter.decimal.format": "NUMERIC",
                "value.converter.decimal.format": "NUMERIC",
                "bigint.unsigned.handling.mode": "precise",
            },
            (*_NUMBERS, "integers", "unsigned_key"),
        ),
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
        Configuration(
            "fields-inserted",
            {
                **SCHEMAS,
                **_edited(
                    ("place", "InsertField$Value"),
                    ("required", "InsertField$Value"),
                    ("shop", "InsertField$Key"),
                    ("origin", "InsertHeader"),
                    ("number", "InsertHeader"),
                    ("gone", "DropHeaders"),
                    place__topic__field="at_topic",
                    place__partition__field="at_partition",
                    place__timestamp__field="at_time",
                    place__static__field="place",
                    place__static__value='north "é"',
                    required__static__field="kind!",
                    required__static__value="k",
                    shop__static__field="shop",
                    shop__static__value="s1",
                    origin__header="origin",
                    origin__value__literal="mysql",
                    number__header="number",
                    number__value__literal="0042",
                    gone__headers="number,other",
                ),
            },
            _PEOPLE,
        ),
        Configuration(
            "fields-of-envelopes",
            {
                **SCHEMAS,
                **_edited(
                    ("place", "InsertField$Value"),
                    ("named", "SetSchemaMetadata$Value"),
                    ("origin", "InsertHeader"),
                    unwrapped=False,
                    place__topic__field="at_topic",
                    place__static__field="place",
                    place__static__value="north",
                    named__schema__name="com.example.Change",
                    named__schema__version="7",
                    origin__header="origin",
                    origin__value__literal="mysql",
                ),
            },
            _PEOPLE,
        ),
        Configuration(
            "fields-edited",
            {
                **SCHEMAS,
                **_edited(
                    ("fewer", "ReplaceField$Value"),
                    ("hidden", "MaskField$Value"),
                    ("starred", "MaskField$Value"),
                    ("cast", "Cast$Value"),
                    ("named", "SetSchemaMetadata$Value"),
                    fewer__exclude="notes,b",
                    fewer__renames="name:title,email:mail",
                    hidden__fields="mail,customer,t,r",
                    starred__fields="note,title",
                    starred__replacement="****",
                    cast__spec="id:string,i:int64,s:float64,d:string,f:int32,o:boolean,flag:int8",
                    named__schema__name="com.example.Row",
                    named__schema__version="3",
                ),
            },
            (*_PEOPLE, "integers", "floats"),
        ),
        Configuration(
            "keys-from-values",
            {
                **SCHEMAS,
                **_edited(
                    ("keyed", "ValueToKey"),
                    ("plain", "ExtractField$Key"),
                    keyed__fields="email",
                    keyed__predicate="people",
                    plain__field="email",
                    plain__predicate="people",
                ),
                "predicates": "people",
                "predicates.people.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
                "predicates.people.pattern": r".*\.customers",
                "tombstones.on.delete": "false",
            },
            ("customers",),
        ),
        Configuration(
            "keys-of-columns",
            {
                **_edited(
                    ("keyed", "ValueToKey"),
                    ("named", "SetSchemaMetadata$Key"),
                    keyed__fields="customer,id",
                    keyed__predicate="orders",
                    named__predicate="orders",
                    named__schema__name="com.example.Key",
                ),
                "tombstones.on.delete": "false",
                "predicates": "orders",
                "predicates.orders.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
                "predicates.orders.pattern": r".*\.orders",
            },
            ("orders",),
        ),
        Configuration(
            "hoisted",
            {
                **SCHEMAS,
                **_edited(
                    ("row", "HoistField$Value"),
                    ("flat", "Flatten$Value"),
                    ("key", "HoistField$Key"),
                    row__field="row",
                    flat__delimiter="_",
                    key__field="key",
                ),
            },
            (*_PEOPLE, "shapes"),
        ),
        Configuration(
            "times-converted",
            {
                **SCHEMAS,
                **_edited(
                    ("text", "TimestampConverter$Value"),
                    ("unix", "TimestampConverter$Value"),
                    ("day", "TimestampConverter$Value"),
                    ("moment", "TimestampConverter$Value"),
                    text__field="t",
                    text__target__type="string",
                    text__format="yyyy-MM-dd'T'HH:mm:ss.SSS",
                    unix__field="t6",
                    unix__target__type="unix",
                    unix__unix__precision="microseconds",
                    day__field="t1",
                    day__target__type="Date",
                    moment__field="t2",
                    moment__target__type="Timestamp",
                ),
            },
            ("datetimes",),
        ),
        Configuration(
            "times-cast",
            {
                **SCHEMAS,
                "time.precision.mode": "connect",
                **_edited(
                    ("cast", "Cast$Value"),
                    cast__spec="d:string,dn:string,dd:string,t:string,tn:string,"
                    + ",".join(f"t{digits}:string" for digits in range(1, 7)),
                ),
            },
            ("dates", "times", "datetimes"),
        ),
        Configuration(
            "headers-moved",
            {
                **SCHEMAS,
                **_edited(
                    ("more", "InsertHeader"),
                    ("moved", "io.debezium.transforms.HeaderToValue"),
                    more__header="origin",
                    more__value__literal="mysql",
                    moved__headers="__op,origin",
                    moved__fields="operation,origin",
                    moved__operation="move",
                    unwrap__add__headers="op,table",
                ),
            },
            _PEOPLE,
        ),
        Configuration(
            "changed-fields",
            {
                **_edited(
                    ("state", "io.debezium.transforms.ExtractChangedRecordState"),
                    unwrapped=False,
                    state__header__changed__name="Changed",
                    state__header__unchanged__name="Unchanged",
                )
            },
            (*_PEOPLE, "floats", "documents"),
        ),
        Configuration(
            "changed-fields-unwrapped",
            {
                **_edited(
                    ("state", "io.debezium.transforms.ExtractChangedRecordState"),
                    ("unwrap", "io.debezium.transforms.ExtractNewRecordState"),
                    unwrapped=False,
                    state__header__changed__name="Changed",
                    unwrap__delete__tombstone__handling__mode="rewrite-with-tombstone",
                    unwrap__add__headers="op",
                )
            },
            (*_PEOPLE,),
        ),
        Configuration(
            "zones",
            {
                **SCHEMAS,
                **_edited(
                    ("zone", "io.debezium.transforms.TimezoneConverter"),
                    ("unwrap", "io.debezium.transforms.ExtractNewRecordState"),
                    unwrapped=False,
                    zone__converted__timezone="Europe/Berlin",
                    zone__exclude__list="source:orders,datetimes:t1",
                    unwrap__delete__tombstone__handling__mode="drop",
                ),
            },
            ("orders", "timestamps", "datetimes", "dates"),
        ),
        Configuration(
            "reads-as-insertions",
            {
                **SCHEMAS,
                # An envelope whose schema has another name is no envelope to the class.
                **_chain(
                    named="SetSchemaMetadata$Value predicate=composite; schema.name=com.example.Change",
                    inserted=_INSERTED,
                    unwrap=f"{_UNWRAP}rewrite; predicate=customers; add.fields=op,source.snapshot; add.headers=op",
                    late=_INSERTED,
                ),
            },
            ("customers", "orders", "composite"),
            snapshot=True,
        ),
        Configuration(
            "zones-of-envelopes",
            {
                **SCHEMAS,
                **_edited(
                    ("zone", "io.debezium.transforms.TimezoneConverter"),
                    unwrapped=False,
                    zone__converted__timezone="+05:30",
                ),
            },
            ("orders", "timestamps", "datetimes"),
        ),
        Configuration(
            "edits-avro",
            {
                **_edited(
                    ("place", "InsertField$Value"),
                    ("fewer", "ReplaceField$Value"),
                    ("cast", "Cast$Value"),
                    ("keyed", "ValueToKey"),
                    ("plain", "ExtractField$Key"),
                    place__topic__field="at_topic!",
                    place__partition__field="at_partition",
                    place__timestamp__field="at_time",
                    place__static__field="place",
                    place__static__value="north",
                    fewer__exclude="secret",
                    fewer__renames="name:title",
                    cast__spec="customer:int64,note:string",
                    keyed__fields="id",
                    keyed__predicate="customers",
                    plain__field="id",
                    plain__predicate="customers",
                ),
                "predicates": "customers",
                "predicates.customers.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
                "predicates.customers.pattern": r".*\.customers",
            },
            ("customers", "orders", "composite"),
            avro=True,
        ),
        Configuration(
            "edits",
            {
                **SCHEMAS,
                **_chain(
                    **_EDITED,
                    key="ValueToKey fields=email; predicate=customers",
                    bare="ExtractField$Key field=email; predicate=customers",
                    keys="ValueToKey fields=customer,id; predicate=orders",
                    named="ReplaceField$Key exclude=c; renames=b:name; predicate=composite",
                ),
            },
            ("customers", "orders", "composite"),
        ),
        Configuration(
            "edits-plain",
            _chain(
                count="InsertHeader header=count; value.literal=true",
                unwrap=f"{_UNWRAP}drop",
                kept="ReplaceField$Value include=id,email,customer,note,a",
                key="ValueToKey fields=id,email; predicate=customers",
                moved="ValueToKey fields=note,customer; predicate=orders",
                bare="ExtractField$Key field=a; predicate=composite",
            ),
            ("customers", "orders", "composite"),
            partitions=3,
        ),
        Configuration(
            "edits-types",
            {
                **SCHEMAS,
                **_chain(
                    number="InsertHeader header=number; value.literal=12",
                    word="InsertHeader header=word; value.literal=word",
                    unwrap=f"{_UNWRAP}drop",
                    taken="io.debezium.transforms.HeaderToValue headers=word; fields=told; operation=move",
                    less="DropHeaders headers=number",
                    cast="Cast$Value spec=id:string; predicate=customers",
                    wider="Cast$Value spec=customer:int64,id:float64; predicate=orders",
                    mask="MaskField$Value fields=email; predicate=customers",
                    hide="MaskField$Value fields=name; replacement=hidden; predicate=customers",
                    named="SetSchemaMetadata$Value schema.name=com.example.Row; schema.version=3",
                    hoisted="HoistField$Key field=the_key; predicate=composite",
                    flat="Flatten$Key delimiter=_; predicate=composite",
                    wrapped="HoistField$Value field=row; predicate=orders",
                ),
            },
            ("customers", "orders", "composite"),
        ),
        Configuration("header-texts", _literals(), ("made",)),
        Configuration(
            "schema-changes-of-others",
            {
                "include.schema.changes": "true",
                "schema.history.internal.store.only.captured.tables.ddl": "false",
                "database.include.list": "{database}",
            },
            ("customers", "keyed_later"),
            topic="schema-changes-of-others",
        ),
        Configuration(
            "notifications",
            {"notification.enabled.channels": "sink", "notification.sink.topic.name": "notifications.told"},
            ("customers", "orders", "two_b", "absent_but_listed"),
            topic="notifications.told",
            signals=(
                Signal("one", ("customers",)),
                Signal("two", ("customers", "orders")),
                Signal("empty", ("two_b",)),
                Signal("not-captured", ("no_key",)),
                Signal("absent", ("absent",)),
                Signal("absent-and-one", ("absent", "customers")),
                Signal("one-and-absent", ("customers", "absent")),
                Signal("listed", ("absent_but_listed",)),
                Signal("listed-and-one", ("absent_but_listed", "customers")),
                Signal("by-pattern", ("absent.*",)),
                Signal("by-patterns", ("absent.*", "custom.*")),
                Signal("stopped", ("customers", "orders"), stopped=True),
            ),
        ),
        Configuration("avro", avro=True),
        Configuration(
            "hyphens-avro",
            {"schema.name.adjustment.mode": "none", "field.name.adjustment.mode": "none"},
            ("customers", "orders"),
            avro=True,
        ),
        Configuration(
            "comments",
            {**SCHEMAS, "include.schema.comments": "true", "column.propagate.source.type": r".*\.(doc|a)"},
            ("defaults", "commented", "evolving"),
        ),
        Configuration("comments-avro", {"include.schema.comments": "true"}, ("commented",), avro=True),
        Configuration(
            "comments-told",
            {"include.schema.changes": "true", "include.schema.comments": "true"},
            ("commented", "defaults", "evolving"),
            topic="comments-told",
        ),
        Configuration(
            "unchanged",
            {
                "skip.messages.without.change": "true",
                "column.include.list": r"{database}\.customers\.(id|email|NAME),{database}\.composite\.[ac],"
                r"{database}\.the_end\.id,{database}\.no_key\.b,{database}\.texts\.(id|c),{database}\.floats\.(id|r)",
                "provide.transaction.metadata": "true",
            },
            (*_PEOPLE, "texts", "floats"),
        ),
        Configuration(
            "booleans",
            {
                **SCHEMAS,
                "converters": "flags",
                "flags.type": "io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter",
                "flags.selector": r"{database}\.integers\.(t|flag|ONE|one_u|i),.*\.defaults\..*",
                "flags.length.checker": "false",
            },
            ("integers", "defaults"),
        ),
        Configuration(
            "booleans-narrow",
            {
                **SCHEMAS,
                "converters": "flags",
                "flags.type": "io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter",
            },
            ("integers", "defaults", "made_later", "composite"),
            snapshot=True,
        ),
        Configuration(
            "unicode-topics",
            {**SCHEMAS, "topic.naming.strategy": "io.debezium.schema.DefaultUnicodeTopicNamingStrategy"},
            ("customers", "odd-name é", "no_key"),
            end="the_u005fend",
        ),
        Configuration(
            "source-types",
            {
                **SCHEMAS,
                "column.propagate.source.type": r"{database}\.(?!orders|customers|texts).*\..*",
                "datatype.propagate.source.type": r".*\.ORDERS\.BIGINT.*,.+\.varchar",
                "column.mask.with.8.chars": r"{database}\.customers\.name",
                "column.truncate.to.3.chars": r"{database}\.texts\.v",
            },
            (
                *("integers", "bits", "decimals", "floats", "filled", "texts", "bytes", "choices", "dates", "times"),
                *("documents", "shapes", "vectors", "made", "defaults", "composite", "orders", "customers"),
                *("charsets", "evolving", "no_key", "timestamps", "odd-name é"),
            ),
            snapshot=True,
        ),
        Configuration(
            "source-types-avro",
            {"column.propagate.source.type": ".*"},
            ("integers", "decimals", "choices", "datetimes", "odd-name é", "shapes", "defaults"),
            avro=True,
        ),
        Configuration(
            "outbox",
            _outbox(
                "outbox",
                table__field__event__key="email",
                table__field__event__payload="name",
                table__fields__additional__placement="born:header,balance:header:amount,secret:header,name:header:who",
                table__field__event__schema__version="id",
            ),
            ("customers", "orders"),
        ),
        Configuration(
            "outbox-schemas",
            {
                **SCHEMAS,
                **_outbox(
                    "outbox-schemas",
                    table__field__event__id="email",
                    table__field__event__key="id",
                    table__field__event__payload="balance",
                    route__tombstone__on__empty__payload="true",
                    table__op__invalid__behavior="error",
                ),
            },
            ("customers", "orders"),
        ),
        Configuration(
            "outbox-envelope",
            {
                **_outbox(
                    "outbox-envelope",
                    table__field__event__key="name",
                    table__field__event__payload="name",
                    table__fields__additional__placement="id:envelope,secret:envelope:hidden,email:header:to,nobody:header",
                    table__field__additional__missing="ignore",
                    route__tombstone__on__empty__payload="true",
                ),
                "binary.handling.mode": "hex",
                "message.key.columns": r"{database}\.customers:email",
            },
            ("customers", "orders"),
        ),
        Configuration(
            "outbox-expanded",
            _expanded("outbox-expanded", route__tombstone__on__empty__payload="true"),
            (r"{database}_outbox\.events",),
        ),
        Configuration(
            "outbox-expanded-schemas",
            {
                **SCHEMAS,
                **_expanded("outbox-expanded-schemas", table__json__payload__null__behavior="optional_bytes"),
            },
            (r"{database}_outbox\.events",),
        ),
        Configuration(
            "outbox-expanded-envelope",
            _expanded(
                "outbox-expanded-envelope", table__fields__additional__placement="at:envelope,who:envelope:whose"
            ),
            (r"{database}_outbox\.events",),
        ),
        Configuration(
            "outbox-bytes",
            {
                **_outbox("outbox-bytes", table__field__event__key="ref", route__by__field="shop"),
                **_BINARY,
            },
            _PARCELS,
            plain=True,
        ),
        Configuration(
            "outbox-partitions",
            _outbox(
                "outbox-partitions",
                table__field__event__key="shop",
                route__by__field="shop",
                table__fields__additional__placement="ref:header,place:partition",
                route__tombstone__on__empty__payload="true",
            ),
            _PARCELS,
            partitions=3,
        ),
        Configuration(
            "heartbeats",
            {**SCHEMAS, "heartbeat.interval.ms": "10"},
            ("customers",),
            topic="__debezium-heartbeat.heartbeats",
            first=True,
        ),
        Configuration(
            "heartbeats-avro",
            {"heartbeat.interval.ms": "10", "topic.heartbeat.prefix": "beats"},
            ("customers",),
            topic="beats.heartbeats-avro",
            first=True,
            avro=True,
        ),
        Configuration("delimiter", {"topic.delimiter": "_"}, ("customers", "odd-name é")),
        Configuration("unwrap", {**_unwrap(), "skipped.operations": "none"}, _ROWS),
        Configuration(
            "unwrap-schemas",
            {
                **SCHEMAS,
                **_unwrap(add__fields="transaction.id,total_order,data_collection_order:nth,snapshot,nobody,gtid"),
                "provide.transaction.metadata": "true",
            },
            (*_PEOPLE, "evolving"),
        ),
        Configuration(
            "unwrap-rewrite",
            {
                **SCHEMAS,
                **_unwrap(
                    delete__tombstone__handling__mode="rewrite",
                    replace__null__with__default="false",
                    add__fields="op,table,source.ts_ms,source.row:line,snapshot,db,sequence,transaction.id,ts_ns,source.pos",
                ),
            },
            (*_PEOPLE, "defaults"),
            snapshot=True,
        ),
        Configuration(
            "unwrap-rewrite-with-tombstone",
            {
                **_unwrap(
                    delete__tombstone__handling__mode="rewrite-with-tombstone",
                    replace__null__with__default="false",
                    add__headers="op,source.table:from,db,row,sequence,ts_ms,transaction.total_order",
                    add__headers__prefix="h-",
                    add__fields="op:what,nobody,server_id,connector,name",
                    add__fields__prefix="meta_",
                ),
                "provide.transaction.metadata": "true",
            },
            _ROWS,
        ),
        Configuration(
            "unwrap-rewrite-default",
            {**SCHEMAS, **_unwrap(delete__tombstone__handling__mode="rewrite")},
            ("defaults", "composite"),
        ),
        Configuration(
            "unwrap-drop",
            {
                **SCHEMAS,
                **_unwrap(delete__tombstone__handling__mode="drop", add__headers="op", predicate="people"),
                "predicates": "people",
                "predicates.people.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
                "predicates.people.pattern": r".*\.(customers|no_key)",
            },
            _ROWS,
        ),
        Configuration(
            "unwrap-delete-to-tombstone",
            {
                **SCHEMAS,
                **_unwrap(
                    delete__tombstone__handling__mode="delete-to-tombstone",
                    add__headers="op,table",
                    predicate="moved",
                    negate="true",
                ),
                "predicates": "moved",
                "predicates.moved.type": "org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
                "predicates.moved.name": "__debezium.newkey",
            },
            _ROWS,
        ),
        Configuration("unwrap-avro", _unwrap(), _ROWS, avro=True),
        Configuration(
            "unwrap-avro-rewrite",
            _unwrap(
                delete__tombstone__handling__mode="rewrite",
                replace__null__with__default="false",
                add__fields="op,table,source.ts_ms,snapshot,source.row,gtid",
            ),
            (*_ROWS, "defaults", "odd-name é"),
            avro=True,
        ),
        Configuration(
            "unwrap-tombstones",
            {
                **_unwrap(predicate="tombstone"),
                "transforms.unwrap.negate": "true",
                "predicates": "tombstone",
                "predicates.tombstone.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
            },
            ("customers",),
        ),
        Configuration(
            "by-lane",
            _parcels("lane", delete__tombstone__handling__mode="rewrite-with-tombstone", add__headers="op,table"),
            _PARCELS,
        ),
        Configuration("by-kind", {**SCHEMAS, **_parcels("kind")}, _PARCELS),
        Configuration("by-set", _parcels("weights", delete__tombstone__handling__mode="delete-to-tombstone"), _PARCELS),
        Configuration(
            "routed",
            {
                **SCHEMAS,
                "transforms": "route,tell",
                "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
                "transforms.route.regex": r"(?<prefix>[^.]+)\.{database}\.(customers|no_key|orders)",
                "transforms.route.replacement": "${prefix}.routed.$2_$10",
                "transforms.tell.type": "org.apache.kafka.connect.transforms.RegexRouter",
                "transforms.tell.regex": "(routed)(.transaction)",
                "transforms.tell.replacement": "$1.told$2",
                "provide.transaction.metadata": "true",
            },
            _ROWS,
            transactions="routed.told.transaction",
        ),
        Configuration(
            "routed-unwrapped",
            {
                **_unwrap(
                    delete__tombstone__handling__mode="rewrite-with-tombstone",
                    replace__null__with__default="false",
                    add__headers="op,table",
                ),
                "transforms": "route,unwrap",
                "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
                "transforms.route.regex": r"(.*)\.(customers|no_key)",
                "transforms.route.replacement": "$1.of.$2",
            },
            _ROWS,
        ),
        Configuration(
            "filtered",
            {
                **_unwrap(
                    delete__tombstone__handling__mode="rewrite-with-tombstone",
                    replace__null__with__default="false",
                    add__headers="op",
                ),
                "transforms": "moved,unwrap,people",
                "transforms.moved.type": "org.apache.kafka.connect.transforms.Filter",
                "transforms.moved.predicate": "moved",
                "transforms.people.type": "org.apache.kafka.connect.transforms.Filter",
                "transforms.people.predicate": "people",
                "transforms.people.negate": "true",
                "predicates": "moved,people",
                "predicates.moved.type": "org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
                "predicates.moved.name": "__debezium.newkey",
                "predicates.people.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
                "predicates.people.pattern": r".*\.(customers|orders|the_end)",
            },
            _ROWS,
        ),
        Configuration("conditions", conditions.filters("groovy", conditions.GROOVY), tuple(conditions.GROOVY)),
        Configuration(
            "nulls-in-groovy",
            conditions.filters("groovy", conditions.NULLS_IN_GROOVY),
            tuple(conditions.NULLS_IN_GROOVY),
        ),
        Configuration(
            "nulls-in-javascript",
            conditions.filters("graal.js", conditions.NULLS_IN_JAVASCRIPT),
            tuple(conditions.NULLS_IN_JAVASCRIPT),
        ),
        Configuration(
            "conditions-script", conditions.filters("graal.js", conditions.JAVASCRIPT), tuple(conditions.JAVASCRIPT)
        ),
        Configuration(
            "conditions-of-rows",
            {
                **conditions.filters("groovy", conditions.OF_ROWS, null__handling__mode="drop"),
                **_unwrap(
                    delete__tombstone__handling__mode="rewrite-with-tombstone",
                    replace__null__with__default="false",
                    add__fields="op",
                ),
                "transforms": ",".join(("unwrap", *conditions.OF_ROWS)),
            },
            _PEOPLE,
        ),
        Configuration(
            "topics-by-conditions",
            conditions.router("groovy", conditions.ENVELOPES_TO_TOPICS.replace("topics.", "topics-by-conditions.")),
            _ROWS,
        ),
        Configuration(
            "logical",
            {
                **SCHEMAS,
                "transforms": "logical",
                "transforms.logical.type": "io.debezium.transforms.ByLogicalTableRouter",
                "transforms.logical.topic.regex": r"([^.]+)(?:\.{database}\.(?!the_end)(.*))?",
                "transforms.logical.topic.replacement": "$1.one-$2",
                "transforms.logical.key.field.name": "whose",
                "transforms.logical.key.field.regex": r".*\.{database}\.(cust|o)(.*)",
                "transforms.logical.key.field.replacement": "$2-$1",
                "transforms.logical.schema.name.adjustment.mode": "avro",
            },
            _ROWS,
            snapshot=True,
        ),
        Configuration(
            "logical-unwrapped",
            {
                "transforms": "logical,unwrap,again",
                "transforms.logical.type": "io.debezium.transforms.ByLogicalTableRouter",
                "transforms.logical.topic.regex": r"(.*)\.{database}\.(customers|no_key|orders)",
                "transforms.logical.topic.replacement": "$1.{database}.all.$2",
                "transforms.logical.key.enforce.uniqueness": "false",
                "transforms.logical.schema.name.adjustment.mode": "avro_unicode",
                "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
                "transforms.unwrap.add.fields": "table",
                "transforms.again.type": "io.debezium.transforms.ByLogicalTableRouter",
                "transforms.again.topic.regex": r"(.*)\.{database}\.(all\.orders|composite)",
                "transforms.again.topic.replacement": "$1.{database}.again.$2",
                "transforms.again.schema.name.adjustment.mode": "avro",
            },
            _ROWS,
            avro=True,
        ),
    )
}

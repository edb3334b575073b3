"""The Connect schema of a column under the modes, as Debezium 3.6.1 gives it: type, logical name, version, parameters.

https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-data-types. What a table map does not
tell cannot be in it: BOOLEAN is int16 as any TINYINT, FLOAT(M,D) is float32 as any FLOAT.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from incsnap.tables import Column
from incsnap.types.connect_schema import Schema
from incsnap.types.modes import Modes
from incsnap.types.shapes import GEOMETRIES, geometry_schema, vector_schema

#: Bits of the integer that holds a column's values: signed, unsigned.
_INTEGERS = {"tinyint": (16, 16), "smallint": (16, 32), "mediumint": (32, 32), "int": (32, 64), "bigint": (64, 64)}
_TIME, _CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."
#: time.precision.mode -> (type, logical name) of DATE, TIME and DATETIME.
_DAYS = ("int32", _TIME + "Date")
_TEMPORAL = {
    "adaptive_time_microseconds": (_DAYS, ("int64", _TIME + "MicroTime"), ("int64", _TIME + "MicroTimestamp")),
    "microseconds": (_DAYS, ("int64", _TIME + "MicroTime"), ("int64", _TIME + "MicroTimestamp")),
    "nanoseconds": (_DAYS, ("int64", _TIME + "NanoTime"), ("int64", _TIME + "NanoTimestamp")),
    "connect": (("int32", _CONNECT + "Date"), ("int32", _CONNECT + "Time"), ("int64", _CONNECT + "Timestamp")),
    "isostring": (("string", _TIME + "IsoDate"), ("string", _TIME + "IsoTime"), ("string", _TIME + "IsoTimestamp")),
}
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_MILLIS = ("int64", _TIME + "Timestamp")
_PLACES = {"date": 0, "time": 1, "datetime": 2}


def field_schema(column: Column, modes: Modes) -> Schema:
    """Optional as the column is nullable; no default. The column's type must be one that ``describe`` knows."""
    return _SCHEMAS[column.type](column, modes)


def _integer(column: Column, modes: Modes) -> Schema:
    if column.type == "bigint" and column.unsigned and modes.bigint_unsigned == "precise":
        return _precise(column, 20, 0)
    return Schema(f"int{_INTEGERS[column.type][column.unsigned]}", column.nullable)


def _decimal(column: Column, modes: Modes) -> Schema:
    if modes.decimal_handling == "precise":
        return _precise(column, column.precision, column.scale)
    return Schema("string" if modes.decimal_handling == "string" else "float64", column.nullable)


def _precise(column: Column, precision: int, scale: int) -> Schema:
    parameters = (("scale", str(scale)), ("connect.decimal.precision", str(precision)))
    return Schema("bytes", column.nullable, _CONNECT + "Decimal", 1, parameters)


def _bit(column: Column, modes: Modes) -> Schema:
    if column.length == 1:
        return Schema("boolean", column.nullable)
    return Schema("bytes", column.nullable, "io.debezium.data.Bits", 1, (("length", str(column.length)),))


def _bytes(column: Column, modes: Modes) -> Schema:
    return Schema("bytes" if modes.binary_handling == "bytes" else "string", column.nullable)


def _temporal(column: Column, modes: Modes) -> Schema:
    type_, name = _TEMPORAL[modes.time_precision][_PLACES[column.type]]
    if column.type == "datetime" and modes.time_precision == "adaptive_time_microseconds" and column.fraction <= 3:
        type_, name = _MILLIS
    return Schema(type_, column.nullable, name, 1)


def _choice(name: str) -> Callable[[Column, Modes], Schema]:
    def schema(column: Column, modes: Modes) -> Schema:
        # 3.6.1 escapes the comma inside a literal, and not the backslash. What is beyond U+FFFF in a literal the server
        # tells as "?" in information_schema and SHOW CREATE TABLE, but as it is in table maps: both must be one schema.
        allowed = ",".join(_BEYOND.sub("?", value).replace(",", "\\,") for value in column.values)
        return Schema("string", column.nullable, name, 1, (("allowed", allowed),))

    return schema


def _named(type_: str, name: str | None = None) -> Callable[[Column, Modes], Schema]:
    return lambda column, _: Schema(type_, column.nullable, name, 1 if name else None)


_SCHEMAS: dict[str, Callable[[Column, Modes], Schema]] = {
    **dict.fromkeys(_INTEGERS, _integer),
    "decimal": _decimal,
    "float": _named("float32"),
    "double": _named("float64"),
    "bit": _bit,
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _named("string")),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _bytes),
    "enum": _choice("io.debezium.data.Enum"),
    "set": _choice("io.debezium.data.EnumSet"),
    "json": _named("string", "io.debezium.data.Json"),
    **dict.fromkeys(_PLACES, _temporal),
    "timestamp": _named("string", _TIME + "ZonedTimestamp"),
    "year": _named("int32", _TIME + "Year"),
    **dict.fromkeys(GEOMETRIES, lambda column, _: geometry_schema(column.type == "point", column.nullable)),
    "vector": lambda column, _: vector_schema(column.nullable),
}

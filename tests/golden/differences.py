"""The differences from Debezium that are intended or cannot be avoided, each with its reason.

An entry allows a difference if its patterns match the whole configuration, topic, operation and place, and if the
values satisfy `when`. An entry that allows no difference any more fails the tests, and must be removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.golden.comparison import ABSENT, Difference
from tests.golden.written_json import Number


@dataclass(frozen=True, slots=True)
class Allowed:
    reason: str  #: why the difference is right, for the reader of a failure
    place: str  #: pattern of `Difference.place`
    when: Callable[[Any, Any], bool]  #: whether these values, Debezium's and ours, are the difference that is meant
    topic: str = ".*"  #: pattern of the topic's name behind its prefix
    operation: str = ".*"  #: pattern of `Difference.operation`
    configuration: str = ".*"  #: pattern of the configuration's name

    def takes(self, difference: Difference) -> bool:
        patterns = (
            (self.place, difference.place),
            (self.topic, difference.topic.removeprefix(difference.configuration)[1:]),
            (self.operation, difference.operation),
            (self.configuration, difference.configuration),
        )
        matches = all(re.fullmatch(pattern, text) for pattern, text in patterns)
        return matches and self.when(difference.theirs, difference.ours)


_ROW = r"value\.((before|after)\.)?"
_FIELD = r"value\.schema\.fields\.((before|after)(\.type\[1\])?\.fields\.)?"
_JSON_COLUMNS = _ROW + "(j|jn)"


def _pairs(*pairs: tuple[object, object]) -> Callable[[Any, Any], bool]:
    """Return a test for exactly these values of Debezium and of ours, written as texts."""
    texts = {(str(theirs), str(ours)) for theirs, ours in pairs}
    return lambda theirs, ours: (str(theirs), str(ours)) in texts


def _reordered(theirs: Any, ours: Any) -> bool:
    """Whether both lists have the same elements, in another order."""
    return sorted(theirs) == sorted(ours)


def _year_zero(theirs: Any, ours: Any) -> bool:
    """Whether ours differs only in years: it has 0, and Debezium 1900 or 2000."""
    if isinstance(theirs, str) and not isinstance(theirs, Number) and theirs.startswith("{"):
        return bool(re.sub(r'"y":(1900|2000)\b', '"y":0', theirs) == ours)
    return str(theirs) in ("1900", "2000") and str(ours) == "0"


def _time(left: Any, right: Any) -> bool:
    """Whether both are the same time, apart from zeros at the end of the fraction."""
    return isinstance(left, str) and isinstance(right, str) and _short(left) == _short(right)


def _short(text: str) -> str:
    return re.sub(r"\.?0*Z$", "Z", text) if "." in text else text


def _close(left: Any, right: Any) -> bool:
    """Whether both are the same number, written differently, to the precision of a FLOAT."""
    return isinstance(left, str) and isinstance(right, str) and _near(float(left), float(right), 1e-5)


def _equal_number(left: Any, right: Any) -> bool:
    return isinstance(left, str) and isinstance(right, str) and _near(float(left), float(right), 1e-7)


def _same_number(left: str, right: str) -> bool:
    return isinstance(left, Number) and isinstance(right, Number) and float(left) == float(right)


def _near(left: float, right: float, tolerance: float) -> bool:
    return bool(abs(left - right) <= tolerance * max(abs(left), abs(right)))


def _decoded(text: Any) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _alike(theirs: Any, ours: Any) -> bool:
    """Whether both are the same document, apart from the spelling of numbers, times and opaque values."""
    if isinstance(ours, dict):
        return theirs.keys() == ours.keys() and all(_alike(theirs[key], ours[key]) for key in ours)
    if isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(_alike, theirs, ours))
    if isinstance(ours, float | int) and not isinstance(ours, bool):
        return _near(float(theirs), float(ours), 1e-15)
    if isinstance(ours, str) and ours.startswith("base64:type"):
        return theirs in (ours, ours.rpartition(":")[2])
    if isinstance(ours, str) and re.fullmatch(r"-?[0-9]+[-0-9:. ]+", ours):
        return bool(re.fullmatch(r"[-0-9:. ]+", theirs))
    return bool(theirs == ours)


def _blanks(theirs: Any, ours: Any) -> bool:
    """Equal but for the blanks that the server prints between values."""
    if theirs is None or ours is None:
        return False
    return bool(theirs.replace(": ", ":").replace(", ", ",") == ours) or theirs.startswith("SHA-256")


_INVISIBLE = "Debezium's snapshot selects *, which leaves out invisible columns; we read them, as the binlog has them."
_SHORTEST = (
    "Java before 19 does not always find the shortest text of a number (JDK-4511638); ours is the shortest that reads"
    " back the same."
)
_FLOAT_DECIMALS = (
    "Table maps do not tell FLOAT(7,2) from FLOAT, so both are float32; Debezium reads the DDL and makes it a double,"
    " which shows the binary fraction."
)
_CHARSETS = (
    "Bytes that the character set does not define read as the server itself converts them; Java has other tables."
)
_ESCAPES = "Debezium takes ENUM and SET literals as they are escaped in the DDL, and writes values of the stream so."
_YEARS = "Debezium makes the year 0 of a YEAR into 1900 in the stream and 2000 in a snapshot; ours is what is stored."
_DDL_TYPES = "Debezium reads DDL: BOOLEAN there is boolean and REAL is float; a table map knows TINYINT and DOUBLE."
_SNAPSHOT_TIMES = "Debezium's snapshot drops zeros at the end of fractions; ours writes the stream's form in both."

DIFFERENCES: tuple[Allowed, ...] = (
    # The envelope
    Allowed(
        "Recorded with replace.null.with.default=false: a stream's event has no snapshot then; with Connect's default"
        " it is the field's default, which is what we write.",
        r"value\.source\.snapshot",
        configuration="(?!connect-defaults).*",
        when=lambda theirs, ours: theirs is None and ours == "false",
    ),
    Allowed(
        "A row that is read has no transaction of its own: Debezium writes the last one it has seen in the stream.",
        r"value\.source\.(gtid|thread)",
        operation="r",
        when=lambda theirs, ours: ours == "null",
    ),
    Allowed(
        "The tables of a transaction stand in the order of a Java hash map.",
        r"value\.data_collections \(order\)",
        when=_reordered,
    ),
    Allowed(
        "A truncation has no row; Debezium shows the number of the row it has seen last.",
        r"value\.source\.row",
        operation="t",
        when=lambda theirs, ours: ours == 0,
    ),
    Allowed(
        "Each start of a job has an id of its own, and so has each start of Debezium.",
        r"header\.__debezium\.context\.runId",
        configuration="connect-defaults",
        when=lambda theirs, ours: len(theirs) == len(ours) == 36,
    ),
    Allowed(
        "Connect's converters write a column's DEFAULT in place of a NULL (replace.null.with.default, true unless"
        " switched off), so that the two cannot be told apart any more; ours is the NULL.",
        _ROW + ".*",
        configuration="connect-defaults|avro|hyphens-avro|edits-avro|source-types-avro|unwrap-avro.*|logical-unwrapped",
        when=lambda theirs, ours: theirs is not None and ours is None,
    ),
    Allowed(
        "The same does ExtractNewRecordState, where it adds __deleted and replace.null.with.default is not false.",
        _ROW + ".*",
        configuration="unwrap-rewrite-default",
        when=lambda theirs, ours: theirs is not None and ours is None,
    ),
    Allowed(
        "The same does EventRouter, always: what it takes from a row is the DEFAULT where the row has a NULL.",
        r"header\.amount",
        configuration="outbox",
        when=lambda theirs, ours: theirs == "0.00" and ours is None,
    ),
    Allowed(
        "So an empty payload is none there, where its column has a DEFAULT.",
        "record",
        topic="of-b",
        configuration="outbox-schemas",
        when=lambda theirs, ours: '"value":"AA=="' in theirs or '"value":null' in ours,
    ),
    Allowed(
        "A header shows letters beyond the basic plane as they are, ours as JSON may escape them, as in values.",
        r"header\.__debezium\.(old|new)key",
        topic=".*customers",
        when=lambda theirs, ours: _decoded(theirs) == _decoded(ours),
    ),
    # Numbers
    Allowed(_SHORTEST, _ROW + "(f20|dp)", topic=".*floats", when=_equal_number),
    Allowed(_FLOAT_DECIMALS, _ROW + "(f72|f)", topic=".*(floats|filled)", when=_close),
    Allowed(
        _FLOAT_DECIMALS,
        _FIELD + r"(f72|f)\.type(\[1\])?",
        when=lambda theirs, ours: (theirs, ours) == ("double", "float"),
    ),
    Allowed(
        "Debezium's snapshot gets FLOAT as the server prints it, with six digits.",
        _ROW + "(f|fu|fn|f20)",
        topic=".*floats",
        operation="r",
        when=_close,
    ),
    Allowed(
        "TinyIntOneToBooleanConverter gets the byte of an unsigned TINYINT as a signed one: 128 to 255 are false in"
        " Debezium's stream, and true in its snapshots. Ours are true in both.",
        _ROW + "one_u",
        configuration="booleans",
        when=lambda theirs, ours: (theirs, ours) == (False, True),
    ),
    # Text
    Allowed(
        _CHARSETS,
        _ROW + "(latin1|cp1251|greek|big5|sjis|koi8u)",
        topic=".*charsets",
        when=_pairs(
            ("\\~•\ufffd\ufffd", "\\~•\ufffd"),
            ("\ufffd", "?"),
            ("€\ufffd", "??"),
            ("Прив╕т", "Привіт"),
            ("€\ufffd\ufffd\ufffd\ufffd\ufffd\xa0ÿ", "€\x81\x8d\x8f\x90\x9d\xa0ÿ"),
            ("\\~ソ\uff3c", "\\~ソ\\"),
            ("ソ表日本\uff3c", "ソ表日本\\"),
        ),
    ),
    Allowed(_ESCAPES, _ROW + "(e2|s2)", topic=".*choices", when=lambda theirs, ours: "\\" in theirs),
    Allowed(
        _ESCAPES,
        _FIELD + r"(e2|s2)(\.type\[1\]\.connect)?\.parameters\.allowed",
        topic=".*choices",
        when=lambda theirs, ours: theirs.replace("\\\\", "\\") == ours,
    ),
    # Times
    Allowed(
        "A zero date where NULL is not allowed is the epoch. Debezium writes the column's DEFAULT, which a table map"
        " does not tell, and which would be another value in a backlog.",
        _ROW + "(dd|td|sd)",
        topic=".*zero_dates",
        when=lambda theirs, ours: theirs != ours and str(ours) in ("0", "1970-01-01Z", "1970-01-01T00:00:00Z"),
    ),
    Allowed(_YEARS, r"(value(\.(before|after))?|key)\.(y|yn)", topic=r".*(dates|defaults|enum_key)", when=_year_zero),
    Allowed(_YEARS, r"header\.__debezium\.(old|new)key", topic=".*enum_key", when=_year_zero),
    Allowed(
        "Debezium's snapshot reads dates before 1582 by the Julian calendar.",
        _ROW + "t",
        topic=".*datetimes",
        operation="r",
        when=_pairs((-12218860800000, -12219724800000)),
    ),
    Allowed(_SNAPSHOT_TIMES, r"(value\.after|key)\..*", operation="r", when=_time),
    Allowed(
        "Debezium's snapshot reads the day 0 as the day before the month: MySQL cannot say so, it is a zero date.",
        _ROW + "dnd",
        topic=".*zero_dates",
        operation="r",
        when=_pairs((10957, None)),
    ),
    # JSON
    Allowed(
        "The server prints JSON with blanks, Debezium's snapshot keeps them.",
        _JSON_COLUMNS,
        operation="r",
        when=_blanks,
    ),
    Allowed(
        "Numbers, times and opaque values inside JSON are written as the server prints them; Debezium's stream writes"
        " doubles as decimals of up to 750 digits, negative times as garbage, and opaque values without their type.",
        _JSON_COLUMNS,
        topic=".*documents",
        when=lambda theirs, ours: _alike(_decoded(theirs), _decoded(ours)),
    ),
    # Columns and keys
    Allowed(
        _INVISIBLE,
        _ROW + "(hidden|hidden_default)",
        topic=".*made",
        operation="r",
        when=_pairs((None, 1), (None, 7), (None, "hid")),
    ),
    Allowed(
        _DDL_TYPES,
        _ROW + "(flag|b)",
        topic=".*made_later",
        when=_pairs((False, 0), (True, 1), (True, None)),
    ),
    Allowed(
        _DDL_TYPES,
        _FIELD + r"(flag|b|r)\.(type(\[[01]\](\.(connect\.)?(type|default))?)?|default)",
        topic=".*made_later",
        when=_pairs(
            ("boolean", "int16"),
            ("boolean", "int"),
            ("boolean", {"type": "int", "connect.type": "int16"}),
            (ABSENT, "int16"),
            ("float", "double"),
            (True, 1),
        ),
    ),
    Allowed(
        "Table maps do not tell of unique keys over a column's prefix, so such a table has no key.",
        "key",
        topic=".*unique_prefix",
        when=lambda theirs, ours: "abcdefgh" in str(theirs) and ours is None,
    ),
    Allowed(
        "A table without a key is not in a snapshot.",
        "record",
        topic=".*unique_prefix",
        operation="r",
        when=lambda theirs, ours: theirs.startswith('{"key":{"a":"abcdefgh"},') and ours == ABSENT,
    ),
    # Schemas
    Allowed(
        "Debezium takes the default of a string as SHOW CREATE TABLE escapes it, cuts that of an unsigned number at"
        " 2^63 - 1 and makes the year 0 into 2000; ours is what the column would hold.",
        _FIELD + r"(bu|v|bi|yn)\.(type(\[0\])?\.connect\.)?default",
        topic=".*defaults",
        when=_pairs(
            ("YWJcMFww", "YWIAAA=="),
            ("61625c305c30", "61620000"),
            ("ab\\0\\0", "ab\0\0"),
            (9223372036854775807, -1),
            ("it''s \"x\", é", 'it\'s "x", é'),
            (2000, 0),
        ),
    ),
    Allowed(
        "A number in the JSON of an Avro schema, where its spelling means nothing.",
        _FIELD + r".*\.default",
        configuration="avro|source-types-avro|unwrap-avro-rewrite",
        when=lambda theirs, ours: isinstance(theirs, str) and isinstance(ours, str) and _same_number(theirs, ours),
    ),
    # Transforms of fields
    Allowed(
        "HoistField gives a record without a key a key that is a map of null; no key stays no key here.",
        "key",
        topic=r"golden\.no_key",
        configuration="hoisted",
        when=lambda theirs, ours: ours is None,
    ),
    Allowed(
        "HoistField, Flatten and HeaderToValue write the DEFAULT in place of a NULL; a NULL stays NULL here.",
        r"value\.(row_)?balance",
        configuration="hoisted|headers-moved|edits-types",
        when=lambda theirs, ours: ours is None,
    ),
    Allowed(
        "Java's format has Julian dates before 1582; ours are Gregorian, as MySQL's are.",
        r"value\.t",
        configuration="times-converted",
        when=lambda theirs, ours: str(theirs) < "1582-10-15",
    ),
    Allowed(
        "Java 17 writes more digits of some floats than they need; Java 19 and later write ours.",
        r"header\.h\d+",
        configuration="header-texts",
        when=lambda theirs, ours: "E" in str(theirs) and abs(float(theirs) / float(ours) - 1) < 1e-7,
    ),
    # Notifications
    Allowed(
        "Debezium writes additional data in the order of a hash table.",
        r"value\.additional_data \(order\)",
        configuration="notifications",
        when=_reordered,
    ),
    Allowed(
        "A first snapshot is an incremental one here. This start has none, so there is nothing to report.",
        "record",
        configuration="notifications",
        when=lambda theirs, ours: '"aggregate_type":"Initial Snapshot"' in theirs and ours == ABSENT,
    ),
    Allowed(
        "Chunks of several tables are read in one batch, and a table ends with the batch behind its last rows. So the"
        " progress of the second table comes before the end of the first one.",
        "record",
        configuration="notifications",
        when=lambda theirs, ours: all(
            each == ABSENT or ('"id":"two"' in each and '"current_collection_in_progress":"golden.orders"' in each)
            for each in (theirs, ours)
        ),
    ),
    Allowed(
        "A table that does not exist ends at once here, and in Debezium when its turn comes.",
        r"record|value\.additional_data\.data_collections",
        configuration="notifications",
        when=lambda theirs, ours: (
            (theirs, ours) == ("golden.customers,golden.absent", "golden.customers")
            or all(
                each == ABSENT or ('"id":"one-and-absent"' in each and '"status":"UNKNOWN_SCHEMA"' in each)
                for each in (theirs, ours)
            )
        ),
    ),
    Allowed(
        "Debezium reads a chunk as soon as it sees a signal. It reports its progress, then a stop as a completion, and"
        " as ABORTED with an id that no signal has. No chunk is read here, and the stop is reported alone.",
        "record|key.id|value.id|value.additional_data.data_collections",
        configuration="notifications",
        when=lambda theirs, ours: (
            ours == "stopped"
            or (theirs, ours) == ("golden.orders,golden.customers", "golden.customers,golden.orders")
            or ('"id":"stopped"' in theirs and ours == ABSENT)
        ),
    ),
    # The topic of schema changes
    Allowed(
        "A Debezium that starts tells of all tables being dropped first, of the database, and of the server's character"
        " set: nothing of that has happened.",
        "record",
        configuration="schema-changes(-of-others)?|comments-told",
        when=lambda theirs, ours: bool(re.search(r'"ddl":"(DROP \w+ IF|CREATE DATABASE|USE|SET) ', theirs)),
    ),
    Allowed(
        "Debezium names the tables of a statement in the order of a hash table.",
        "record",
        configuration="schema-changes(-of-others)?",
        when=lambda theirs, ours: "two_d,two_b" in theirs or "two_b,two_d" in ours,
    ),
    Allowed(
        "Debezium tells of databases that are not captured, and so another record is the last one of its start.",
        r"record|value\.source\.snapshot",
        configuration="schema-changes-of-others",
        when=lambda theirs, ours: '"databaseName":"golden_outbox"' in theirs or (theirs, ours) == ("true", "last"),
    ),
    Allowed(
        "Debezium's parser ends the text of a statement before the comment that holds its partitions is closed.",
        r"value\.ddl",
        configuration="schema-changes(-of-others)?",
        when=lambda theirs, ours: theirs + " */" == ours,
    ),
    Allowed(
        "Debezium leaves out the first word of a CREATE UNIQUE INDEX that may make a key. That is no statement.",
        r"value\.ddl",
        configuration="schema-changes-of-others",
        when=lambda theirs, ours: theirs.startswith("UNIQUE INDEX ") and "CREATE " + theirs == ours,
    ),
    Allowed(
        "Debezium reports no index if it reports captured tables alone, and so not the key that a table has got.",
        "record",
        configuration="schema-changes",
        when=lambda theirs, ours: theirs == ABSENT and '"ddl":"CREATE UNIQUE INDEX by_' in ours and "keyed_" in ours,
    ),
    Allowed(
        "The binlog does not tell whether CREATE TABLE IF NOT EXISTS has made a table of another engine than InnoDB. A"
        " record too many has a definition that is right.",
        "record",
        configuration="schema-changes(-of-others)?",
        when=lambda theirs, ours: '"ddl":"CREATE TABLE IF NOT EXISTS in_memory ' in theirs + ours,
    ),
    Allowed(
        "Debezium shows statements about events, as it knows no such statement. They define no table.",
        "record",
        configuration="schema-changes-of-others",
        when=lambda theirs, ours: bool(re.search(r'"ddl":"(CREATE DEFINER=\S+|ALTER|DROP) EVENT ', theirs)),
    ),
    Allowed(
        "VARCHAR(0) and CHAR(0) are given the length 10 by Debezium.",
        r"value\.tableChanges\[0\]\.table\.columns\.(v0|c0)\.length",
        when=lambda theirs, ours: (theirs, ours) == (10, 0),
    ),
    Allowed(
        "The same, where the schema shows how the column was defined.",
        _FIELD + r"v0\.parameters\.__debezium\.source\.column\.length",
        configuration="source-types",
        when=lambda theirs, ours: (theirs, ours) == ("10", "0"),
    ),
    Allowed(
        "Debezium keeps a column's type as the statement spells it (INT8, CHARACTER VARYING); ours is the server's.",
        r"value\.tableChanges\[0\]\.table\.columns\.(flag|b|r|f|nc|nv|i|c|cv|de|fx|dp|lv|i1|i8)\.\w+",
        configuration="schema-changes(-of-others)?",
        when=_pairs(
            ("TRUE", 1),
            (16, 5),
            (None, 1),
            (24, None),
            (-15, 1),
            (-9, 12),
            (7, 8),
            ("utf8", "utf8mb3"),
            ("BOOL", "TINYINT"),
            ("BOOLEAN", "TINYINT"),
            ("CHARACTER", "CHAR"),
            ("CHARACTER VARYING", "VARCHAR"),
            ("DEC", "DECIMAL"),
            ("FIXED", "DECIMAL"),
            ("DOUBLE PRECISION", "DOUBLE"),
            ("REAL", "DOUBLE"),
            ("INTEGER", "INT"),
            ("INT1", "TINYINT"),
            ("INT8", "BIGINT"),
            ("LONG VARCHAR", "MEDIUMTEXT"),
            ("NCHAR", "CHAR"),
            ("NVARCHAR", "VARCHAR"),
        ),
    ),
    Allowed(
        "A statement has no row; Debezium shows the number of the row it has seen last.",
        r"value\.source\.row",
        configuration="schema-changes(-of-others)?",
        when=lambda theirs, ours: ours == 0,
    ),
)

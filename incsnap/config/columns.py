"""``column.*`` and ``message.key.columns`` become rules."""

from __future__ import annotations

import re

from incsnap.config.converters import booleans
from incsnap.config.patterns import split_list
from incsnap.config.reading import SettingsReader
from incsnap.config.record_settings import field_names
from incsnap.config.settings import Formats
from incsnap.envelope.column_rules import ColumnRules, TransformRule
from incsnap.envelope.masks import DIGESTS, Transform

_NUMBER = re.compile(r"column\.(?:mask\.with|truncate\.to)\.(?P<number>.+)\.chars")
_HASH = re.compile(r"column\.mask\.(?P<kind>hash|hash\.v2)\.(?P<algorithm>[^.]+)\.with\.salt\.(?P<salt>.+)")
_FORMS = (
    "column.truncate.to.N.chars, column.mask.with.N.chars, column.mask.hash.ALGORITHM.with.salt.SALT,"
    " column.mask.hash.v2.ALGORITHM.with.salt.SALT"
)
_LARGEST = 2**31 - 1

_KEYS = "message.key.columns"


def column_rules(reading: SettingsReader, formats: Formats) -> ColumnRules:
    if reading.given("column.include.list") and reading.given("column.exclude.list"):
        reading.problems.append("column.include.list, column.exclude.list: give only one of the two")
    every, narrow = booleans(reading)
    return ColumnRules(
        include=_patterns(reading, "column.include.list"),
        exclude=_patterns(reading, "column.exclude.list"),
        transforms=_transforms(reading),
        keys=_keys(reading),
        field_names=_field_names(reading, formats),
        booleans=every,
        narrow_booleans=narrow,
        typed=_patterns(reading, "column.propagate.source.type"),
        typed_as=_patterns(reading, "datatype.propagate.source.type"),
        comments=reading.flag("include.schema.comments", False),
    )


def _field_names(reading: SettingsReader, formats: Formats) -> str:
    """With an Avro converter Debezium adjusts the names of fields though it is not told to."""
    mode = field_names(reading)
    return "avro" if mode == "none" and "avro" in (formats.key.kind, formats.value.kind) else mode


def _patterns(reading: SettingsReader, name: str, shown: str = "") -> tuple[str, ...]:
    """``shown``: the name for messages, where ``name`` holds a salt."""
    patterns = tuple(part.replace(r"\,", ",") for part in split_list(reading.text(name)))
    return tuple(pattern for pattern in patterns if reading.sound(shown or name, pattern))


def _transforms(reading: SettingsReader) -> tuple[TransformRule, ...]:
    rules = []
    for name in sorted(reading.names()):
        if not name.startswith(("column.mask.", "column.truncate.")) or not reading.given(name):
            continue
        shown = without_salt(name)
        transform = _transform(reading, name, shown)
        patterns = _patterns(reading, name, shown)
        if transform is not None and patterns:
            rules.append(TransformRule(shown, patterns, transform))
    return tuple(rules)


def _transform(reading: SettingsReader, name: str, shown: str) -> Transform | None:
    if match := _NUMBER.fullmatch(name):
        number = match["number"]
        if number.isascii() and number.isdigit() and int(number) <= _LARGEST:
            return Transform("mask" if name.startswith("column.mask.") else "truncate", int(number))
        reading.problems.append(f"{shown}: {number!r} is not a whole number from 0 to {_LARGEST}")
    elif match := _HASH.fullmatch(name):
        algorithm = match["algorithm"].upper()
        if algorithm in DIGESTS:
            return Transform(match["kind"].replace(".", "_"), algorithm=algorithm, salt=match["salt"])
        reading.problems.append(f"{shown}: {match['algorithm']} is not one of: {', '.join(DIGESTS)}")
    else:
        reading.problems.append(f"{shown}: not a setting; there are {_FORMS}")
    return None


def _keys(reading: SettingsReader) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """``db.table:column,column;...``; the parts are patterns, and a table's key is what all that match it name."""
    keys: list[tuple[str, tuple[str, ...]]] = []
    for entry in reading.text(_KEYS).rstrip("; ").split(";") if reading.given(_KEYS) else ():
        table, colon, rest = (part.strip() for part in entry.partition(":"))
        columns = tuple(column.strip() for column in rest.split(","))
        if not table or not colon or not all(columns) or ":" in rest:
            reading.problems.append(f"{_KEYS}: {entry.strip()!r} is not of the form database.table:column,column")
        elif re.search(r"(?<!\\),", table):
            reading.problems.append(f"{_KEYS}: {table!r} is not one pattern; write a comma in it as \\,")
        elif len({column.lower() for column in columns}) < len(columns):
            reading.problems.append(f"{_KEYS}: {entry.strip()!r} names a column twice")
        else:
            plain = table.replace(r"\,", ",")
            if all(reading.sound(_KEYS, f"{plain}.{column}") for column in columns):
                keys.append((plain, columns))
    return tuple(keys)


def without_salt(name: str) -> str:
    """The name of a setting as it may be shown: salts are told to nobody, so neither is the name that holds one."""
    return re.sub(r"(\.salt\.).*", r"\1*", name)
